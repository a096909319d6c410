import { randomBytes } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { bindsSessionsToNames, FileSessionStore, type FileSessionStoreOptions } from 'quadrille-agent';
import { temporaryFolder } from './certificates.js';
import { entry, keyOf } from './entries.js';

/** Reason that tests of the store on disk are skipped here, or false. */
export const skip = bindsSessionsToNames() ? false : `Node ${process.versions.node} has the memory store only`;
/** Key of the stores that `open` opens. */
export const secret = randomBytes(32);
export const key = keyOf('one');

export function newDir({ make = false } = {}): string {
    const dir = join(temporaryFolder(), 'store');
    if (make) fs.mkdirSync(dir, { mode: 0o700 });
    return dir;
}

export function open(dir: string, options: Partial<FileSessionStoreOptions> = {}): FileSessionStore {
    return new FileSessionStore({ dir, key: secret, ...options });
}

export function put(dir: string): void {
    const store = open(dir);
    store.put(key, entry(), Date.now());
    store.close();
}

export function directoriesIn(dir: string): string[] {
    return fs.readdirSync(dir).map((name) => join(dir, name));
}

export function filesBelow(dir: string): string[] {
    return directoriesIn(dir).flatMap((origin) => fs.readdirSync(origin).map((name) => join(origin, name)));
}

export function newestDirectory(dir: string): string {
    const byAge = directoriesIn(dir).sort((one, other) => fs.statSync(other).mtimeMs - fs.statSync(one).mtimeMs);
    return byAge[0] as string;
}

export function collectErrors(t: TestContext): NodeJS.ErrnoException[] {
    const errors: NodeJS.ErrnoException[] = [];
    const listener = (message: unknown) => void errors.push((message as { error: Error }).error);
    subscribe('quadrille:store:error', listener);
    t.after(() => unsubscribe('quadrille:store:error', listener));
    t.mock.method(process, 'emitWarning', () => {});
    return errors;
}
