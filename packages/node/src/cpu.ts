import { readFileSync } from 'node:fs';

/**
 * Returns whether the processor has AES instructions, which make AES-GCM the cheapest cipher; without them it is
 * ChaCha20-Poly1305. Determined from system information, not by timing: the result is part of the key of a stored
 * session, and must be the same after a restart.
 */
export function hasAesInstructions(platform: string = process.platform, cpuinfo: () => string = readCpuinfo): boolean {
    if (platform !== 'linux') return true;
    const flags = /^(?:flags|Features)\s*:(.*)$/m.exec(cpuinfo());
    // Unknown layouts belong to processors that have them (s390x, POWER), or to machines without /proc.
    return flags === null || ` ${flags[1]} `.includes(' aes ');
}

function readCpuinfo(): string {
    try {
        return readFileSync('/proc/cpuinfo', 'latin1');
    } catch {
        return '';
    }
}
