import { parseSession } from './session-der.js';

/** Which ticket a connection may offer: see `ticketReuse` of the agent. */
export type TicketReuse = 'prefer-fresh' | 'strict';

/** A TLS session as it is kept, with all that decides how long. Times are milliseconds since the epoch. */
export interface SessionEntry {
    /** OpenSSL's encoding; secret. */
    readonly bytes: Buffer;
    readonly protocol: 'TLSv1.2' | 'TLSv1.3';
    readonly receivedAt: number;
    /** When the server's certificate was last verified; a resumption does not renew it. */
    readonly verifiedAt: number;
    /** The end of the ticket's life as the server set it. */
    readonly ticketExpiresAt: number;
    /** The end of the leaf certificate's validity. */
    readonly leafExpiresAt: number;
    /** Node's version: a session made by another one is not understood, and silently ignored by OpenSSL. */
    readonly node: string;
    /** Whether a connection has offered it. */
    used: boolean;
}

/** What a connection knows when a session arrives. */
export interface Origin {
    readonly verifiedAt: number;
    readonly leafExpiresAt: number;
    /** Of the connection, for sessions whose encoding is unknown. */
    readonly protocol: string | null;
}

/** Turns what Node's 'session' event gave into an entry; undefined if it cannot be resumed, or must not be. */
export function sessionEntry(bytes: Buffer, origin: Origin, now: number): SessionEntry | undefined {
    const parsed = parseSession(bytes) ?? unknownSession(origin.protocol);
    // Not 0: OpenSSL did not verify the chain, whatever the socket says.
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

/** The least of the ticket's life, the certificate's, and `maxAge` since the certificate was verified. */
export function expiresAt(entry: SessionEntry, maxAge: number): number {
    return Math.min(entry.ticketExpiresAt, entry.leafExpiresAt, entry.verifiedAt + maxAge);
}

/** Whether `entry` may still be offered. One from the future is no better: the clock was set back, its age is unknown. */
export function isUsable(entry: SessionEntry, maxAge: number, now: number): boolean {
    const fromFuture = entry.receivedAt > now + CLOCK_TOLERANCE || entry.verifiedAt > now + CLOCK_TOLERANCE;
    return !fromFuture && now < expiresAt(entry, maxAge) && entry.node === process.versions.node;
}

/** Whether offering it twice would let an observer link the connections (RFC 8446, appendix C.4). */
export function isSingleUse(entry: SessionEntry): boolean {
    return entry.protocol === 'TLSv1.3';
}

/** An encoding that we cannot read (a Node on another TLS library): short-lived, as its lifetime is unknown. */
function unknownSession(protocol: string | null) {
    if (protocol !== 'TLSv1.2' && protocol !== 'TLSv1.3') return undefined;
    return { protocol, resumable: true, verifyResult: 0, lifetimeSeconds: 300 } as const;
}

/** RFC 8446, section 4.6.1. */
const LONGEST_TICKET_LIFE = 7 * 86_400_000;
const CLOCK_TOLERANCE = 1000;
