import type { SessionEntry, TicketReuse } from './session.js';

/** Names everything that a session's validity depends on: see `profile.ts`. */
export interface SessionKey {
    /** Hexadecimal SHA-256. */
    readonly id: string;
    /** Whether it means the same in another process; keys that name objects in memory do not. */
    readonly persistable: boolean;
}

/** Where sessions are kept. Methods are called on the path of a connection, so they answer at once. */
export interface SessionStore {
    /** A session to offer, if there is one; 'strict' never gives a TLS 1.3 session twice. */
    take(key: SessionKey, reuse: TicketReuse, now: number): SessionEntry | undefined;
    /** Keeps a session of a verified connection. */
    put(key: SessionKey, entry: SessionEntry, now: number): void;
    /** Forgets a session that a server declined, or that made a handshake fail. */
    drop(key: SessionKey, entry: SessionEntry): void;
}
