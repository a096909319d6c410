import type { SecureVersion } from 'node:tls';
import { hasAesInstructions } from './cpu.js';
import { choiceOption } from './errors.js';

/**
 * Parameters offered to servers. Options set by the caller (`ciphers`, `ecdhCurve`, `minVersion`, `maxVersion`) take
 * precedence.
 *
 * - `'compatible'`: Node's own ciphers and groups; TLS 1.2 at least.
 * - `'fast'`: the cheapest safe choice. Authenticated ciphers with forward secrecy only, 128-bit AES-GCM first where
 * the processor has AES, otherwise ChaCha20-Poly1305 first; X25519, then P-256. No post-quantum group.
 * - `'modern'`: TLS 1.3 only, and the hybrid post-quantum group first where Node has it (OpenSSL 3.5).
 */
export type Policy = 'compatible' | 'fast' | 'modern';

/** The options of `tls.createSecureContext` set by a policy. */
export interface PolicyOptions {
    readonly ciphers?: string;
    readonly ecdhCurve?: string;
    readonly minVersion?: SecureVersion;
    readonly maxVersion?: SecureVersion;
}

export interface Capabilities {
    readonly aes: boolean;
    /** Whether X25519MLKEM768 is available. */
    readonly hybridGroups: boolean;
}

export function policyOptions(policy: Policy | undefined, capabilities: Capabilities = detected()): PolicyOptions {
    switch (choiceOption('policy', policy, ['compatible', 'fast', 'modern'], 'compatible')) {
        case 'compatible':
            return { minVersion: 'TLSv1.2' };
        case 'fast':
            return {
                ciphers: [...suites13(capabilities.aes), ...suites12(capabilities.aes)].join(':'),
                // The two supported by all servers. X25519 costs least; a client sends one key share, the first.
                ecdhCurve: 'X25519:P-256',
                minVersion: 'TLSv1.2',
                maxVersion: 'TLSv1.3',
            };
        case 'modern':
            return {
                ciphers: suites13(capabilities.aes).join(':'),
                ecdhCurve: `${capabilities.hybridGroups ? 'X25519MLKEM768:' : ''}X25519:P-256`,
                minVersion: 'TLSv1.3',
                maxVersion: 'TLSv1.3',
            };
    }
}

function detected(): Capabilities {
    found ??= { aes: hasAesInstructions(), hybridGroups: hasHybridGroups(process.versions.openssl) };
    return found;
}

let found: Capabilities | undefined;

/** Returns whether OpenSSL has ML-KEM, available since 3.5. */
export function hasHybridGroups(openssl: string): boolean {
    const [major = 0, minor = 0] = openssl.split('.').map((part) => Number.parseInt(part, 10));
    return major > 3 || (major === 3 && minor >= 5);
}

/** Orders 128 bits before 256: 10 rounds instead of 14, and no known attack on either. */
function suites13(aes: boolean): string[] {
    const gcm = ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384'];
    const chacha = ['TLS_CHACHA20_POLY1305_SHA256'];
    return aes ? [...gcm, ...chacha] : [...chacha, ...gcm];
}

/** Orders ECDSA before RSA: a signature costs the server a tenth. */
function suites12(aes: boolean): string[] {
    const gcm = ['AES128-GCM-SHA256', 'AES256-GCM-SHA384'];
    const ciphers = aes ? [...gcm, 'CHACHA20-POLY1305'] : ['CHACHA20-POLY1305', ...gcm];
    return ciphers.flatMap((cipher) => [`ECDHE-ECDSA-${cipher}`, `ECDHE-RSA-${cipher}`]);
}
