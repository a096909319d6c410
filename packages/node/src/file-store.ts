import { resolve } from 'node:path';
import { channels } from './channels.js';
import { type Duration, milliseconds } from './duration.js';
import { MemorySessionStore, type MemorySessionStoreOptions } from './memory-store.js';
import { requirePersistenceIsSafe } from './node-version.js';
import type { StoreKey } from './sealed.js';
import { isSingleUse, isUsable, type SessionEntry, type TicketReuse } from './session.js';
import type { SessionKey, SessionStore } from './store.js';
import { type TicketFile, TicketFiles } from './ticket-files.js';

export interface FileSessionStoreOptions extends MemorySessionStoreOptions {
    /**
     * A dedicated directory, local to the machine; created with mode 0700 if it does not exist. Several processes may
     * share it.
     */
    dir: string;
    /** 32 random bytes, or a `{ file }` outside of `dir` that contains them. */
    key: StoreKey;
    /** Time for which a new session may stay in memory only. Default 200 ms. */
    writeDelay?: Duration;
}

/**
 * Sessions in memory and, encrypted, on disk, so that a restarted process resumes. New sessions are written after a
 * short delay, at most `perOrigin` per origin, and when the process exits; a process that is killed loses the
 * sessions of that delay.
 *
 * Disk errors never fail a connection: they are reported (`quadrille:store:error`, and one warning), and sessions
 * stay in memory.
 */
export class FileSessionStore implements SessionStore {
    readonly dir: string;
    readonly #memory: MemorySessionStore;
    readonly #files: TicketFiles;
    readonly #writeDelay: number;
    /** File of an entry, if it is on disk. */
    readonly #places = new WeakMap<SessionEntry, TicketFile>();
    /** Keys with entries that are not on disk yet. */
    readonly #dirty = new Map<string, SessionKey>();
    #timer: NodeJS.Timeout | undefined;
    #pausedUntil = 0;
    readonly #warned = new Set<string>();

    /** Throws if Node, the path or the key is not safe. */
    constructor(options: FileSessionStoreOptions) {
        requirePersistenceIsSafe();
        this.dir = resolve(options.dir);
        this.#memory = new MemorySessionStore(options);
        this.#files = new TicketFiles(this.dir, options.key, this.#memory);
        this.#writeDelay = milliseconds('writeDelay', options.writeDelay, 200);
        this.#guarded(() => this.#files.clean(Date.now()));
        flushAtExit.add(this);
    }

    take(key: SessionKey, reuse: TicketReuse, now: number): SessionEntry | undefined {
        const known = this.#takeKnown(key, reuse, now);
        if (known || !key.persistable) return known;
        this.#load(key, now);
        return this.#takeKnown(key, reuse, now);
    }

    put(key: SessionKey, entry: SessionEntry, now: number): void {
        this.#memory.put(key, entry, now);
        this.#markDirty(key);
    }

    drop(key: SessionKey, entry: SessionEntry): void {
        this.#memory.drop(key, entry);
        const file = this.#places.get(entry);
        this.#places.delete(entry);
        if (file) this.#guarded(() => this.#files.claim(file));
    }

    /**
     * Writes entries that are in memory only. Called when the process exits; call it before ending the process
     * otherwise.
     */
    flush(): void {
        this.#stopTimer();
        const now = Date.now();
        for (const key of this.#dirty.values()) {
            if (now < this.#pausedUntil) break;
            this.#dirty.delete(key.id);
            this.#guarded(() => this.#write(key, now));
        }
        this.#dirty.clear();
    }

    /** Writes pending entries, and no longer writes at exit. */
    close(): void {
        this.flush();
        flushAtExit.delete(this);
    }

    #takeKnown(key: SessionKey, reuse: TicketReuse, now: number): SessionEntry | undefined {
        for (;;) {
            const entry = this.#memory.take(key, reuse, now);
            if (!entry) return undefined;
            const file = this.#places.get(entry);
            if (!file) return entry;
            if (!isSingleUse(entry) || (file.used && reuse !== 'strict')) return entry;
            if (reuse === 'strict' ? this.#claim(entry, file) : this.#claimFirstUse(entry, file)) return entry;
        }
    }

    /** Returns false if another process has claimed it. */
    #claim(entry: SessionEntry, file: TicketFile): boolean {
        this.#places.delete(entry);
        return this.#guarded(() => this.#files.claim(file)) ?? false;
    }

    /** Returns false if another process was first: an unused entry is preferred, and this one remains as a fallback. */
    #claimFirstUse(entry: SessionEntry, file: TicketFile): boolean {
        this.#places.set(entry, { ...file, used: true });
        // A disk error must not fail the connection.
        return this.#guarded(() => this.#files.markUsed(file)) ?? true;
    }

    #load(key: SessionKey, now: number): void {
        const files = this.#guarded(() => this.#files.list(key, now)) ?? [];
        // The best one last, so that it is the newest.
        for (const file of files.slice(0, this.#memory.perOrigin).reverse()) {
            const entry = this.#guarded(() => this.#files.read(key, file));
            if (!entry || !isUsable(entry, this.#memory.maxAge, now)) continue;
            this.#places.set(entry, file);
            this.#memory.put(key, entry, now);
        }
    }

    #write(key: SessionKey, now: number): void {
        for (const entry of this.#memory.list(key)) {
            const file = this.#places.get(entry);
            if (!file) this.#places.set(entry, this.#files.write(key, entry));
        }
        this.#files.trim(key, now);
    }

    #markDirty(key: SessionKey): void {
        if (!key.persistable) return;
        this.#dirty.set(key.id, key);
        this.#timer ??= setTimeout(() => this.flush(), this.#writeDelay).unref();
    }

    #stopTimer(): void {
        clearTimeout(this.#timer);
        this.#timer = undefined;
    }

    /** Runs a disk operation; reports its failure instead of throwing it. */
    #guarded<T>(action: () => T): T | undefined {
        try {
            return action();
        } catch (error) {
            this.#report(error as NodeJS.ErrnoException);
            return undefined;
        }
    }

    #report(error: NodeJS.ErrnoException): void {
        const code = error.code ?? 'damaged';
        if (DISK_TROUBLE.has(code)) this.#pausedUntil = Date.now() + PAUSE;
        channels.storeError.publish({ dir: this.dir, error });
        if (this.#warned.has(code)) return;
        this.#warned.add(code);
        process.emitWarning(
            `the TLS session store ${this.dir} continues in memory: ${error.message}`,
            'QuadrilleWarning',
        );
    }
}

/** Disk full, over quota, read-only or broken: an immediate retry would only cost time. */
const DISK_TROUBLE: ReadonlySet<string> = new Set([
    'ENOSPC',
    'EDQUOT',
    'EFBIG',
    'EROFS',
    'EIO',
    'EMFILE',
    'ENFILE',
    'EACCES',
    'EPERM',
]);
const PAUSE = 30_000;

const flushAtExit = new Set<FileSessionStore>();
process.on('exit', () => {
    for (const store of flushAtExit) store.flush();
});
