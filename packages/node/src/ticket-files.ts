import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import {
    ensurePrivateDirectory,
    isMissing,
    namesIn,
    readPrivateFile,
    removeFile,
    writePrivateFile,
} from './private-files.js';
import { Sealer, type StoreKey } from './sealed.js';
import { expiresAt, type SessionEntry } from './session.js';
import type { SessionKey } from './store.js';

/** The parts of a session file's name. */
export interface TicketFile {
    readonly directory: string;
    readonly id: string;
    readonly expiresAt: number;
    readonly used: boolean;
}

/**
 * Sessions on disk: a directory per origin, with one file per session.
 *
 * ```
 * DIR/5f0c…e2/mi3k2w9s-0d9c…41.fresh        names are keyed hashes that do not reveal the origin
 *             └expiry  └random   └or .used
 * ```
 *
 * One file is one session, so that the file system is the lock between processes: a session is claimed by unlink(2),
 * which succeeds for only one process. A process that dies holds no lock.
 */
export class TicketFiles {
    readonly #sealer: Sealer;

    constructor(
        readonly dir: string,
        key: StoreKey,
        private readonly limits: { maxOrigins: number; perOrigin: number; maxAge: number },
    ) {
        ensurePrivateDirectory(dir);
        this.#sealer = new Sealer(key, dir);
    }

    /** Returns the unexpired files of a key: unused before used, then the longest-lived first. */
    list(key: SessionKey, now: number): TicketFile[] {
        const directory = this.#directoryOf(key);
        const files = namesIn(directory).flatMap((name) => parseName(directory, name) ?? []);
        return files
            .filter((file) => now < file.expiresAt)
            .sort((one, other) => Number(one.used) - Number(other.used) || other.expiresAt - one.expiresAt);
    }

    /** Reads a session; undefined if the file is gone. If the content is not authentic, removes the file and throws. */
    read(key: SessionKey, file: TicketFile): SessionEntry | undefined {
        const sealed = readPrivateFile(pathOf(file), LONGEST_FILE);
        if (!sealed) return undefined;
        const plain = this.#sealer.open(sealed, contextOf(key, file));
        if (!plain) {
            removeFile(pathOf(file));
            throw new Error(`${pathOf(file)} was damaged, or written under another key; it is removed`);
        }
        const { bytes, ...entry } = JSON.parse(plain.toString()) as Omit<SessionEntry, 'bytes'> & { bytes: string };
        plain.fill(0);
        return { ...entry, bytes: Buffer.from(bytes, 'base64'), used: file.used };
    }

    write(key: SessionKey, entry: SessionEntry): TicketFile {
        const id = randomBytes(8).toString('hex');
        const file = {
            directory: this.#directoryOf(key),
            id,
            expiresAt: expiresAt(entry, this.limits.maxAge),
            used: entry.used,
        };
        const plain = Buffer.from(JSON.stringify({ ...entry, bytes: entry.bytes.toString('base64') }));
        const sealed = this.#sealer.seal(plain, contextOf(key, file));
        plain.fill(0);
        const put = () => writePrivateFile(pathOf(file), join(this.dir, `${TEMPORARY}${id}`), sealed);
        try {
            put();
        } catch (error) {
            if (!isMissing(error)) throw error;
            // The first of its origin, or another process has just removed the directory as too old.
            fs.mkdirSync(file.directory, { recursive: true, mode: 0o700 });
            put();
            this.#trimOrigins();
        }
        return file;
    }

    /** Claims a session. Returns whether this process may use it. */
    claim(file: TicketFile): boolean {
        // Another process may have marked it in between.
        return removeFile(pathOf(file)) || removeFile(pathOf({ ...file, used: !file.used }));
    }

    /** Marks a session as used. Returns whether this process uses it first. */
    markUsed(file: TicketFile): boolean {
        try {
            fs.renameSync(pathOf(file), pathOf({ ...file, used: true }));
            return true;
        } catch (error) {
            if (!isMissing(error)) throw error;
            return false;
        }
    }

    /** Removes a key's surplus files. */
    trim(key: SessionKey, now: number): void {
        for (const file of this.list(key, now).slice(this.limits.perOrigin)) removeFile(pathOf(file));
    }

    /** Removes expired files, and incomplete files of processes that died. */
    clean(now: number): void {
        for (const name of namesIn(this.dir)) {
            const path = join(this.dir, name);
            if (name.startsWith(TEMPORARY)) this.#removeAbandoned(path, now);
            else if (/^[0-9a-f]{32}$/.test(name)) cleanOrigin(path, now);
        }
        this.#trimOrigins();
    }

    #removeAbandoned(path: string, now: number): void {
        const stats = fs.lstatSync(path, { throwIfNoEntry: false });
        if (stats && now - stats.mtimeMs > ABANDONED_AFTER) removeFile(path);
    }

    /** Removes the origins whose directories were not modified for longest. */
    #trimOrigins(): void {
        const directories = namesIn(this.dir).filter((name) => /^[0-9a-f]{32}$/.test(name));
        if (directories.length <= this.limits.maxOrigins) return;
        const touchedAt = (name: string) => fs.lstatSync(join(this.dir, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
        const byAge = directories
            .map((name) => ({ name, touched: touchedAt(name) }))
            .sort((one, other) => one.touched - other.touched);
        for (const { name } of byAge.slice(0, directories.length - this.limits.maxOrigins)) {
            fs.rmSync(join(this.dir, name), { recursive: true, force: true });
        }
    }

    #directoryOf(key: SessionKey): string {
        return join(this.dir, this.#sealer.nameFor(key.id));
    }
}

function cleanOrigin(directory: string, now: number): void {
    const names = namesIn(directory);
    const dead = names.filter((name) => now >= (parseName(directory, name)?.expiresAt ?? 0));
    for (const name of dead) fs.rmSync(join(directory, name), { recursive: true, force: true });
    if (dead.length < names.length) return;
    try {
        fs.rmdirSync(directory);
    } catch {
        // Another process has just put a session there.
    }
}

function pathOf(file: TicketFile): string {
    return join(file.directory, `${file.expiresAt.toString(36)}-${file.id}.${file.used ? 'used' : 'fresh'}`);
}

function parseName(directory: string, name: string): TicketFile | undefined {
    const match = /^([0-9a-z]{1,11})-([0-9a-f]{16})\.(fresh|used)$/.exec(name);
    if (!match?.[1] || !match[2]) return undefined;
    return { directory, id: match[2], expiresAt: Number.parseInt(match[1], 36), used: match[3] === 'used' };
}

/** Binds the content to its place: a file moved to another origin cannot be opened. */
function contextOf(key: SessionKey, file: TicketFile): string {
    return `${key.id}/${file.id}/${file.expiresAt}`;
}

const TEMPORARY = '.tmp-';
const ABANDONED_AFTER = 60_000;
/** Maximum size of a file. A session with a long certificate chain has a few thousand bytes. */
const LONGEST_FILE = 65_536;
