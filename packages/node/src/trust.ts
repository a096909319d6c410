import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as tls from 'node:tls';

/**
 * A digest of the authorities that Node trusts when a connection names none: those built in, NODE_EXTRA_CA_CERTS, the
 * system's, and what `tls.setDefaultCACertificates` set. A session verified under one set is worth nothing under another.
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

/** The certificates themselves: one array, until the set changes. */
export function trustedByDefault(): readonly string[] {
    return getCACertificates?.('default') ?? tls.rootCertificates;
}

/** What Node reads at its start and does not tell by getCACertificates, or, before Node 22.15, not at all. */
function environment(): string {
    const { NODE_EXTRA_CA_CERTS, NODE_OPTIONS, SSL_CERT_DIR, SSL_CERT_FILE } = startEnvironment;
    const flags = [...process.execArgv, ...(NODE_OPTIONS ?? '').split(/\s+/)].filter((flag) => flag.includes('-ca'));
    return JSON.stringify([NODE_EXTRA_CA_CERTS, extraCertificates, SSL_CERT_DIR, SSL_CERT_FILE, flags]);
}

/** Node reads these once, so later changes to process.env must not count. */
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
/** Since Node 22.15 and 23.10; the types are older. */
const { getCACertificates } = tls as { getCACertificates?: (type: 'default') => readonly string[] };
