import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export interface Node {
    readonly version: string;
    readonly path: string;
}

/** The lines that are supported. */
export const LINES = [20, 22, 24];

/** Returns this Node, and the newest of each other line, from the npm registry's `node` package; reports missing ones. */
export function nodes(): Node[] {
    const own = { version: process.versions.node, path: process.execPath };
    const others = LINES.filter((line) => line !== Number.parseInt(own.version, 10));
    return [own, ...others.flatMap((line) => fetchNode(line) ?? [])].sort(
        (one, other) => Number.parseInt(one.version, 10) - Number.parseInt(other.version, 10),
    );
}

/** Stored outside of the clone, so that the next clone does not fetch it again. */
function fetchNode(line: number): Node | undefined {
    const caches =
        process.env.QUADRILLE_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'quadrille');
    const folder = join(caches, 'node', `v${line}`);
    const path = join(folder, 'node_modules', 'node', 'bin', 'node');
    try {
        if (!existsSync(path)) {
            console.error(`fetching Node ${line} from the npm registry`);
            mkdirSync(folder, { recursive: true });
            execFileSync('npm', ['install', '--silent', '--prefix', folder, `node@${line}`], {
                stdio: ['ignore', 'ignore', 'inherit'],
            });
        }
        return { version: execFileSync(path, ['--version'], { encoding: 'utf8' }).trim().slice(1), path };
    } catch {
        console.error(`Node ${line} is not available: NOT TESTED ON IT`);
        return undefined;
    }
}
