import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Another program that runs JavaScript written for Node. */
export interface Runtime {
    readonly name: string;
    readonly command: readonly string[];
    readonly version: string;
}

/** Bun or Deno, from the search path or from the npm package in the cache; undefined if it is not installed. */
export function runtime(name: 'bun' | 'deno'): Runtime | undefined {
    const caches =
        process.env.QUADRILLE_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'quadrille');
    const cached = join(caches, 'node', name, 'node_modules', '.bin', name);
    const path = existsSync(cached) ? cached : name;
    try {
        const version = /\d+\.\d+\.\d+/.exec(execFileSync(path, ['--version'], { encoding: 'utf8' }))?.[0];
        return version === undefined
            ? undefined
            : { name, version, command: [path, ...(name === 'deno' ? ['run', '--quiet', '-A'] : [])] };
    } catch {
        return undefined;
    }
}
