import type { SessionEntry, TicketReuse } from './session.js';

/** Identifies everything that a session's validity depends on: see `profile.ts`. */
export interface SessionKey {
    /** Hexadecimal SHA-256. */
    readonly id: string;
    /** Whether it is valid in another process; keys that name objects in memory are not. */
    readonly persistable: boolean;
}

/** Storage of sessions. Methods run on the path of a connection, so they are synchronous. */
export interface SessionStore {
    /** Returns a session to offer, if there is one; 'strict' never returns a TLS 1.3 session twice. */
    take(key: SessionKey, reuse: TicketReuse, now: number): SessionEntry | undefined;
    /** Stores a session of a verified connection. */
    put(key: SessionKey, entry: SessionEntry, now: number): void;
    /** Removes a session that a server declined, or that made a handshake fail. */
    drop(key: SessionKey, entry: SessionEntry): void;
}
