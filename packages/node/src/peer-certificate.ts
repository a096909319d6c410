import { X509Certificate } from 'node:crypto';
import type * as tls from 'node:tls';
import { certificateOf } from './session-der.js';

/**
 * Makes the server's certificate available on a resumed connection, from the session. Node reports none there, because
 * the server sends none; an application that compares fingerprints would then reject each resumed connection. The session
 * contains the leaf certificate only, so a detailed result has no issuers.
 */
export function providePeerCertificate(socket: tls.TLSSocket, session: Uint8Array): void {
    const { getPeerCertificate, getPeerX509Certificate } = socket;
    let known: X509Certificate | undefined;
    // Parsed at first use: few applications read it.
    const certificate = () => (known ??= decoded(certificateOf(session)));
    define(socket, 'getPeerCertificate', (detailed?: boolean) => {
        const own: unknown = getPeerCertificate.call(socket, detailed as true);
        return isEmpty(own) ? (legacyOf(certificate(), detailed) ?? own) : own;
    });
    define(socket, 'getPeerX509Certificate', () => {
        const own = getPeerX509Certificate.call(socket);
        return own ?? (socket.destroyed ? undefined : certificate());
    });
}

function decoded(encoded: Uint8Array | undefined): X509Certificate | undefined {
    try {
        return encoded && new X509Certificate(encoded);
    } catch {
        return undefined;
    }
}

/** Returns the form of `getPeerCertificate`, as a new object on each call, as in Node. */
function legacyOf(certificate: X509Certificate | undefined, detailed?: boolean): object | undefined {
    const legacy = certificate?.toLegacyObject() as tls.DetailedPeerCertificate | undefined;
    if (legacy && detailed && certificate?.checkIssued(certificate)) legacy.issuerCertificate = legacy;
    return legacy;
}

/** Returns whether Node has no certificate; it returns null for a destroyed socket, and an empty object otherwise. */
function isEmpty(certificate: unknown): boolean {
    return typeof certificate === 'object' && certificate !== null && Object.keys(certificate).length === 0;
}

/** Replaces a method of the prototype for one socket, without a visible property. */
function define(socket: tls.TLSSocket, name: string, value: (...args: never[]) => unknown): void {
    Object.defineProperty(socket, name, { value, configurable: true, writable: true, enumerable: false });
}
