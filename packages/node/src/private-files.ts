import * as fs from 'node:fs';
import { constants } from 'node:fs';
import { QuadrilleError } from './errors.js';

/** Makes `dir`, or checks that nobody else can enter it: a directory, no link, ours, mode 0700. */
export function ensurePrivateDirectory(dir: string): void {
    const owner = effectiveUser();
    fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
    const stats = fs.lstatSync(dir);
    if (!stats.isDirectory())
        throw unsafe(dir, 'is not a directory (a link to one is refused too)', 'name the directory itself');
    if (stats.uid !== owner)
        throw unsafe(dir, `belongs to user ${stats.uid}, and this is user ${owner}`, `chown it, or choose another`);
    if ((stats.mode & 0o077) !== 0) throw unsafe(dir, `has mode 0${(stats.mode & 0o777).toString(8)}`, `chmod 0700 it`);
}

/** The content of a file that only we can have written; undefined if there is none. */
export function readPrivateFile(path: string, longest: number): Buffer | undefined {
    let descriptor: number;
    try {
        descriptor = fs.openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
    }
    try {
        const stats = fs.fstatSync(descriptor);
        if (!stats.isFile()) throw unsafe(path, 'is not a regular file', 'remove it');
        if (stats.uid !== effectiveUser()) throw unsafe(path, `belongs to user ${stats.uid}`, 'remove it');
        if ((stats.mode & 0o077) !== 0)
            throw unsafe(path, `has mode 0${(stats.mode & 0o777).toString(8)}`, 'remove it');
        if (stats.size > longest) throw unsafe(path, `has ${stats.size} bytes`, 'remove it');
        return fs.readFileSync(descriptor);
    } finally {
        fs.closeSync(descriptor);
    }
}

/** Puts a file in place whole or not at all, by way of `temporary` on the same file system. Mode 0600. */
export function writePrivateFile(path: string, temporary: string, content: Uint8Array): void {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    const descriptor = fs.openSync(temporary, flags, 0o600);
    try {
        try {
            fs.writeFileSync(descriptor, content);
        } finally {
            fs.closeSync(descriptor);
        }
        fs.renameSync(temporary, path);
    } catch (error) {
        removeFile(temporary);
        throw error;
    }
}

/** Whether it was there. Of several processes that remove a file, one gets true. */
export function removeFile(path: string): boolean {
    try {
        fs.unlinkSync(path);
        return true;
    } catch (error) {
        if (isMissing(error)) return false;
        throw error;
    }
}

/** The names in a directory; none if it does not exist. */
export function namesIn(dir: string): string[] {
    try {
        return fs.readdirSync(dir);
    } catch (error) {
        if (isMissing(error)) return [];
        throw error;
    }
}

export function isMissing(error: unknown): boolean {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

function effectiveUser(): number {
    if (process.geteuid) return process.geteuid();
    throw new QuadrilleError(
        'ERR_QUADRILLE_UNSAFE_PATH',
        'this system has no file owners as POSIX knows them, so that a private directory cannot be proved: use a MemorySessionStore',
    );
}

function unsafe(path: string, what: string, remedy: string): QuadrilleError {
    return new QuadrilleError(
        'ERR_QUADRILLE_UNSAFE_PATH',
        `${path} ${what}, so that others might read or plant sessions: ${remedy}`,
    );
}
