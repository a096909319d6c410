import { countOption } from './errors.js';
import { type Duration, milliseconds } from './duration.js';
import { LruMap } from './lru.js';
import { isSingleUse, isUsable, type SessionEntry, type TicketReuse } from './session.js';
import type { SessionKey, SessionStore } from './store.js';

export interface MemorySessionStoreOptions {
    /**
     * Maximum number of origins, each with one set of TLS options; beyond it, the least recently used is evicted.
     * Default 500.
     */
    maxOrigins?: number;
    /** Sessions kept per origin. Default 4. */
    perOrigin?: number;
    /**
     * Maximum time after the verification of a certificate for which its sessions may be used, resumptions included.
     * Default '24h'.
     */
    maxAge?: Duration;
}

/** Sessions in this process's memory. */
export class MemorySessionStore implements SessionStore {
    readonly maxOrigins: number;
    readonly perOrigin: number;
    /** Maximum age in milliseconds. */
    readonly maxAge: number;
    readonly #origins: LruMap<string, SessionEntry[]>;

    constructor(options: MemorySessionStoreOptions = {}) {
        this.maxOrigins = countOption('maxOrigins', options.maxOrigins, 500);
        this.perOrigin = countOption('perOrigin', options.perOrigin, 4);
        this.maxAge = milliseconds('maxAge', options.maxAge, 86_400_000);
        this.#origins = new LruMap(this.maxOrigins);
    }

    /** Number of origins that have sessions. */
    get size(): number {
        return this.#origins.size;
    }

    take(key: SessionKey, reuse: TicketReuse, now: number): SessionEntry | undefined {
        const entries = this.#usable(key.id, now);
        // Among used ones the least recently used: concurrent connections share them evenly.
        const entry = entries.findLast(isFresh) ?? (reuse === 'strict' ? undefined : entries[0]);
        if (!entry) return undefined;
        if (isSingleUse(entry)) {
            this.drop(key, entry);
            if (reuse !== 'strict') this.#origins.set(key.id, [...this.list(key), entry]);
        }
        entry.used = true;
        return entry;
    }

    put(key: SessionKey, entry: SessionEntry, now: number): void {
        if (!isUsable(entry, this.maxAge, now)) return;
        const entries = this.#usable(key.id, now).filter((known) => !known.bytes.equals(entry.bytes));
        entries.push(entry);
        while (entries.length > this.perOrigin) {
            const spent = entries.findIndex((known) => !isFresh(known));
            entries.splice(Math.max(spent, 0), 1);
        }
        this.#origins.set(key.id, entries);
    }

    drop(key: SessionKey, entry: SessionEntry): void {
        const entries = this.#origins.get(key.id);
        const at = entries?.indexOf(entry) ?? -1;
        if (entries && at >= 0) entries.splice(at, 1);
        if (entries?.length === 0) this.#origins.delete(key.id);
    }

    /** Returns the sessions kept for a key, oldest first. */
    list(key: SessionKey): readonly SessionEntry[] {
        return this.#origins.get(key.id) ?? [];
    }

    clear(): void {
        this.#origins.clear();
    }

    #usable(id: string, now: number): SessionEntry[] {
        const entries = this.#origins.get(id);
        if (!entries) return [];
        const usable = entries.filter((entry) => isUsable(entry, this.maxAge, now));
        if (usable.length === 0) this.#origins.delete(id);
        else if (usable.length < entries.length) this.#origins.set(id, usable);
        return usable;
    }
}

/** Returns whether the session is unused. Use does not spend a TLS 1.2 session. */
function isFresh(entry: SessionEntry): boolean {
    return !entry.used || !isSingleUse(entry);
}
