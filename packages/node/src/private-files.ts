import * as fs from 'node:fs';
import { constants } from 'node:fs';
import { QuadrilleError } from './errors.js';

/** Creates `dir`, or checks that it is private: a directory, not a link, owned by this user, mode 0700. */
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

/** Reads a file that only this user can have written; undefined if it does not exist. */
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

/** Writes a file atomically, by way of `temporary` on the same file system. Mode 0600. */
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

/** Removes a file. Returns whether it existed; among several processes that remove it, one gets true. */
export function removeFile(path: string): boolean {
    try {
        fs.unlinkSync(path);
        return true;
    } catch (error) {
        if (isMissing(error)) return false;
        throw error;
    }
}

/** Returns the names in a directory; an empty list if it does not exist. */
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
        'this system has no POSIX file owners, so that a directory cannot be verified to be private: use a MemorySessionStore',
    );
}

function unsafe(path: string, what: string, remedy: string): QuadrilleError {
    return new QuadrilleError(
        'ERR_QUADRILLE_UNSAFE_PATH',
        `${path} ${what}, so other users might read or plant sessions: ${remedy}`,
    );
}
