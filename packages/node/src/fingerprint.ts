import { createHash } from 'node:crypto';
import { LruMap } from './lru.js';

/** Returns a short text that is equal for options of equal meaning; long and secret values appear as a digest. */
export function tokenOf(value: unknown): string {
    if (typeof value === 'string')
        return value.length <= SHORT && !value.includes('-----') ? `"${value}` : digestOfText(value);
    if (typeof value === 'object' && value !== null) return tokenOfObject(value);
    if (typeof value === 'function') return identityOf(value);
    return String(value);
}

/** Returns the token, always as a digest. */
export function digestOf(value: unknown): string {
    return digestOfText(tokenOf(value));
}

/** Returns the digest of a private key or a passphrase, without keeping a copy of it. */
export function secretDigestOf(value: unknown): string {
    if (typeof value === 'string') return digestOfBytes(Buffer.from(value));
    if (Array.isArray(value)) return `[${value.map(secretDigestOf).join()}]`;
    if (typeof value === 'object' && value !== null && isPlain(value))
        return `{${Object.values(value).map(secretDigestOf).join()}}`;
    return tokenOf(value);
}

/** Distinguishes objects and functions within this process. */
export function identityOf(value: object): string {
    let identity = identities.get(value);
    if (identity === undefined) {
        identity = `#${++lastIdentity}`;
        identities.set(value, identity);
    }
    return identity;
}

/** Returns whether the token of `value` contains an identity, which is valid in this process only. */
export function isOpaque(value: unknown): boolean {
    if (typeof value === 'function') return true;
    if (typeof value !== 'object' || value === null) return false;
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return false;
    if (Array.isArray(value)) return value.some(isOpaque);
    return !isPlain(value) || Object.values(value).some(isOpaque);
}

function tokenOfObject(value: object): string {
    if (ArrayBuffer.isView(value))
        return digestOfBytes(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    if (value instanceof ArrayBuffer) return digestOfBytes(new Uint8Array(value));
    if (Array.isArray(value)) return `[${value.map((item) => JSON.stringify(tokenOf(item))).join()}]`;
    // { pem, passphrase } and { buf, passphrase }.
    if (isPlain(value))
        return `{${Object.entries(value)
            .map(([name, item]) => JSON.stringify([name, tokenOf(item)]))
            .join()}}`;
    return identityOf(value);
}

function isPlain(value: object): boolean {
    const prototype: unknown = Object.getPrototypeOf(value);
    return prototype === Object.prototype || prototype === null;
}

/** Digests bytes on every call, because their owner may change them; strings cannot change. */
function digestOfBytes(bytes: Uint8Array): string {
    return createHash('sha256').update(bytes).digest('base64');
}

function digestOfText(text: string): string {
    let digest = textDigests.get(text);
    if (digest === undefined) {
        digest = createHash('sha256').update(text).digest('base64');
        textDigests.set(text, digest);
    }
    return digest;
}

const SHORT = 200;
const textDigests = new LruMap<string, string>(200);
const identities = new WeakMap<object, string>();
let lastIdentity = 0;
