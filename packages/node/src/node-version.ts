import { QuadrilleError } from './errors.js';

/** The first release of each line in which a session is bound to the server's name (CVE-2026-48934). */
const FIXED: ReadonlyMap<number, readonly [minor: number, patch: number]> = new Map([
    [22, [23, 0]],
    [24, [17, 0]],
    [26, [3, 1]],
]);
const FIXED_FROM = 27;

/**
 * Returns whether this Node resumes a session only for the server name that it was made for (CVE-2026-48934). Lines
 * that ended without the fix (20, 21, 23, 25) never do.
 */
export function bindsSessionsToNames(version: string = process.versions.node): boolean {
    const [major = 0, minor = 0, patch = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
    if (major >= FIXED_FROM) return true;
    const fix = FIXED.get(major);
    return fix !== undefined && (minor > fix[0] || (minor === fix[0] && patch >= fix[1]));
}

/** Throws if a store on disk would be unsafe. */
export function requirePersistenceIsSafe(version: string = process.versions.node): void {
    if (bindsSessionsToNames(version)) return;
    throw new QuadrilleError(
        'ERR_QUADRILLE_UNSAFE_NODE',
        `Node ${version} does not bind TLS sessions to the server's name (CVE-2026-48934), so sessions are not kept on ` +
            'disk: use Node 22.23.0, 24.17.0, 26.3.1 or later, or a MemorySessionStore',
    );
}
