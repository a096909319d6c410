import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as tls from 'node:tls';

/**
 * Returns a digest of the authorities that Node trusts by default: the built-in ones, NODE_EXTRA_CA_CERTS, the
 * system's, and those set by `tls.setDefaultCACertificates`. A session verified under one set is not valid under
 * another.
 */
export function defaultTrust(): string {
    const certificates = trustedByDefault();
    let digest = digests.get(certificates);
    if (digest === undefined) {
        const hash = createHash('sha256');
        for (const certificate of certificates) hash.update(certificate).update('\0');
        digest = hash.update(environment()).digest('hex');
        digests.set(certificates, digest);
    }
    return digest;
}

/** Returns the certificates themselves: the same array, until the set changes. */
export function trustedByDefault(): readonly string[] {
    return getCACertificates?.('default') ?? tls.rootCertificates;
}

/**
 * Returns settings that Node reads at startup and does not report by getCACertificates, or, before Node 22.15, not at
 * all.
 */
function environment(): string {
    const { NODE_EXTRA_CA_CERTS, NODE_OPTIONS, SSL_CERT_DIR, SSL_CERT_FILE } = startEnvironment;
    const flags = [...process.execArgv, ...(NODE_OPTIONS ?? '').split(/\s+/)].filter((flag) => flag.includes('-ca'));
    return JSON.stringify([NODE_EXTRA_CA_CERTS, extraCertificates, SSL_CERT_DIR, SSL_CERT_FILE, flags]);
}

/** Environment at startup: Node reads these variables once, so later changes must not count. */
const startEnvironment = { ...process.env };
const extraCertificates = contentOf(startEnvironment.NODE_EXTRA_CA_CERTS);

function contentOf(path: string | undefined): string | undefined {
    if (!path) return undefined;
    try {
        return readFileSync(path, 'latin1');
    } catch {
        return undefined;
    }
}

const digests = new WeakMap<readonly string[], string>();
/** Available since Node 22.15 and 23.10; the types are older. */
const { getCACertificates } = tls as { getCACertificates?: (type: 'default') => readonly string[] };
