import { readFileSync } from 'node:fs';

/**
 * Whether the processor has instructions for AES, which make AES-GCM the cheapest cipher; without them it is
 * ChaCha20-Poly1305. Found from what the system says, not by timing: the answer is part of what a kept session
 * depends on, and must be the same after a restart.
 */
export function hasAesInstructions(platform: string = process.platform, cpuinfo: () => string = readCpuinfo): boolean {
    if (platform !== 'linux') return true;
    const flags = /^(?:flags|Features)\s*:(.*)$/m.exec(cpuinfo());
    // Unknown layouts are of processors that have them (s390x, POWER), or of machines without /proc.
    return flags === null || ` ${flags[1]} `.includes(' aes ');
}

function readCpuinfo(): string {
    try {
        return readFileSync('/proc/cpuinfo', 'latin1');
    } catch {
        return '';
    }
}
