import { parseSession } from './session-der.js';

/** Tickets that a connection may offer: see `ticketReuse` of the agent. */
export type TicketReuse = 'prefer-fresh' | 'strict';

/** A stored TLS session, with everything that limits its lifetime. Times are milliseconds since the epoch. */
export interface SessionEntry {
    /** OpenSSL's encoding; secret. */
    readonly bytes: Buffer;
    readonly protocol: 'TLSv1.2' | 'TLSv1.3';
    readonly receivedAt: number;
    /** Time at which the server's certificate was last verified; a resumption does not renew it. */
    readonly verifiedAt: number;
    /** End of the ticket's lifetime as set by the server. */
    readonly ticketExpiresAt: number;
    /** End of the leaf certificate's validity. */
    readonly leafExpiresAt: number;
    /** Node's version: OpenSSL does not parse, and silently ignores, a session made by another version. */
    readonly node: string;
    /** Whether a connection has offered it. */
    used: boolean;
}

/** Properties of the connection on which a session arrives. */
export interface Origin {
    readonly verifiedAt: number;
    readonly leafExpiresAt: number;
    /** Protocol of the connection, for sessions whose encoding is unknown. */
    readonly protocol: string | null;
}

/** Converts the argument of Node's 'session' event to an entry; undefined if it cannot or must not be resumed. */
export function sessionEntry(bytes: Buffer, origin: Origin, now: number): SessionEntry | undefined {
    const parsed = parseSession(bytes) ?? unknownSession(origin.protocol);
    // Not 0: OpenSSL did not verify the chain, even if the socket is authorized.
    if (!parsed || !parsed.resumable || parsed.verifyResult !== 0) return undefined;
    const lifetime = Math.min(parsed.lifetimeSeconds * 1000, LONGEST_TICKET_LIFE);
    if (lifetime <= 0) return undefined;
    return {
        bytes,
        protocol: parsed.protocol,
        receivedAt: now,
        verifiedAt: origin.verifiedAt,
        ticketExpiresAt: now + lifetime,
        leafExpiresAt: origin.leafExpiresAt,
        node: process.versions.node,
        used: false,
    };
}

/**
 * Returns the earliest of the end of the ticket's lifetime, of the certificate's validity, and `maxAge` after its
 * verification.
 */
export function expiresAt(entry: SessionEntry, maxAge: number): number {
    return Math.min(entry.ticketExpiresAt, entry.leafExpiresAt, entry.verifiedAt + maxAge);
}

/**
 * Returns whether `entry` may still be offered. An entry from the future is rejected: the clock was set back, so its
 * age is unknown.
 */
export function isUsable(entry: SessionEntry, maxAge: number, now: number): boolean {
    const fromFuture = entry.receivedAt > now + CLOCK_TOLERANCE || entry.verifiedAt > now + CLOCK_TOLERANCE;
    return !fromFuture && now < expiresAt(entry, maxAge) && entry.node === process.versions.node;
}

/** Returns whether offering it twice would let an observer link the connections (RFC 8446, appendix C.4). */
export function isSingleUse(entry: SessionEntry): boolean {
    return entry.protocol === 'TLSv1.3';
}

/**
 * Returns defaults for an unknown encoding (a Node on another TLS library): short-lived, as its lifetime is unknown.
 */
function unknownSession(protocol: string | null) {
    if (protocol !== 'TLSv1.2' && protocol !== 'TLSv1.3') return undefined;
    return { protocol, resumable: true, verifyResult: 0, lifetimeSeconds: 300 } as const;
}

/** Maximum ticket lifetime (RFC 8446, section 4.6.1). */
const LONGEST_TICKET_LIFE = 7 * 86_400_000;
const CLOCK_TOLERANCE = 1000;
