import { createHash, randomBytes } from 'node:crypto';
import type { SessionEntry, SessionKey } from 'quadrille-agent';

export function keyOf(name: string): SessionKey {
    return { id: createHash('sha256').update(name).digest('hex'), persistable: true };
}

export interface EntryOptions {
    now?: number;
    /** Lifetime of the ticket in seconds. */
    lifetime?: number;
    leafExpiresAt?: number;
    verifiedAt?: number;
    protocol?: SessionEntry['protocol'];
    node?: string;
}

/** A session with random bytes. */
export function entry(options: EntryOptions = {}): SessionEntry {
    const {
        now = Date.now(),
        lifetime = 7200,
        leafExpiresAt = now + 86_400_000,
        protocol = 'TLSv1.3',
        node = process.versions.node,
    } = options;
    const ticketExpiresAt = now + lifetime * 1000;
    const verifiedAt = options.verifiedAt ?? now;
    return {
        bytes: randomBytes(300),
        protocol,
        receivedAt: now,
        verifiedAt,
        ticketExpiresAt,
        leafExpiresAt,
        node,
        used: false,
    };
}
