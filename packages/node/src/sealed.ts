import {
    createCipheriv,
    createDecipheriv,
    createHmac,
    createSecretKey,
    hkdfSync,
    KeyObject,
    randomBytes,
} from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync, realpathSync } from 'node:fs';
import { sep } from 'node:path';
import { QuadrilleError } from './errors.js';

/** 32 bytes, or a file that contains them, raw or as hexadecimal or base64 text. */
export type StoreKey = Uint8Array | KeyObject | { readonly file: string };

/**
 * Encryption of single files: AES-256-GCM under a key that HKDF (RFC 5869) derives from the store's key and 32 random
 * bytes, so that the number of files and processes does not wear out the key.
 *
 * The format is: `QSS1` | salt (32) | ciphertext | tag (16).
 */
export class Sealer {
    readonly #root: KeyObject;
    readonly #names: KeyObject;

    constructor(key: StoreKey, dir: string) {
        this.#root = readKey(key, dir);
        this.#names = derive(this.#root, Buffer.alloc(0), 'quadrille session names');
    }

    /** Seals the plaintext; `context` must be equal to open it again. */
    seal(plaintext: Uint8Array, context: string): Buffer {
        const salt = randomBytes(SALT);
        const cipher = createCipheriv('aes-256-gcm', this.#keyFor(salt), NONCE).setAAD(Buffer.from(context));
        return Buffer.concat([MAGIC, salt, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
    }

    /**
     * Opens sealed bytes; undefined if they were sealed under another key or context, were changed, or have another
     * format.
     */
    open(sealed: Buffer, context: string): Buffer | undefined {
        if (sealed.length < MAGIC.length + SALT + TAG || !sealed.subarray(0, MAGIC.length).equals(MAGIC))
            return undefined;
        const salt = sealed.subarray(MAGIC.length, MAGIC.length + SALT);
        const decipher = createDecipheriv('aes-256-gcm', this.#keyFor(salt), NONCE).setAAD(Buffer.from(context));
        decipher.setAuthTag(sealed.subarray(-TAG));
        try {
            return Buffer.concat([decipher.update(sealed.subarray(MAGIC.length + SALT, -TAG)), decipher.final()]);
        } catch {
            return undefined;
        }
    }

    /** Returns a file name that does not reveal `text`. */
    nameFor(text: string): string {
        return createHmac('sha256', this.#names).update(text).digest('hex').slice(0, 32);
    }

    #keyFor(salt: Uint8Array): KeyObject {
        return derive(this.#root, salt, 'quadrille session file');
    }
}

function derive(root: KeyObject, salt: Uint8Array, purpose: string): KeyObject {
    const bytes = Buffer.from(hkdfSync('sha256', root, salt, purpose, KEY));
    const key = createSecretKey(bytes);
    bytes.fill(0);
    return key;
}

function readKey(key: StoreKey, dir: string): KeyObject {
    if (key instanceof KeyObject) {
        if (key.type !== 'secret' || key.symmetricKeySize !== KEY) throw badKey('the KeyObject');
        return key;
    }
    if (key instanceof Uint8Array) {
        if (key.byteLength !== KEY) throw badKey('the key');
        return createSecretKey(key);
    }
    if (typeof key === 'object' && key !== null && typeof key.file === 'string') return readKeyFile(key.file, dir);
    throw badKey('the key');
}

function readKeyFile(file: string, dir: string): KeyObject {
    if (`${realpathSync(file)}`.startsWith(realpathSync(dir) + sep)) {
        throw new QuadrilleError(
            'ERR_QUADRILLE_KEY',
            `the key ${file} is inside the directory that it protects: a copy of the directory would contain both. Keep it elsewhere`,
        );
    }
    const descriptor = openSync(file, constants.O_RDONLY);
    try {
        if ((fstatSync(descriptor).mode & 0o007) !== 0) {
            throw new QuadrilleError(
                'ERR_QUADRILLE_KEY',
                `the key ${file} can be read or changed by all users: chmod o-rwx it`,
            );
        }
        const bytes = readFileSync(descriptor);
        const decoded = decodeKey(bytes);
        bytes.fill(0);
        if (!decoded) throw badKey(file);
        const key = createSecretKey(decoded);
        decoded.fill(0);
        return key;
    } finally {
        closeSync(descriptor);
    }
}

function decodeKey(bytes: Buffer): Buffer | undefined {
    if (bytes.length === KEY) return Buffer.from(bytes);
    const text = bytes.toString('latin1').trim();
    if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex');
    const decoded = /^[\w+/-]{43}=?$/.test(text) ? Buffer.from(text, 'base64') : undefined;
    return decoded?.length === KEY ? decoded : undefined;
}

function badKey(what: string): QuadrilleError {
    return new QuadrilleError(
        'ERR_QUADRILLE_KEY',
        `${what} is not 32 random bytes (or hexadecimal or base64 text of them): make it once with ` +
            '`openssl rand -hex 32`, and keep it apart from the store',
    );
}

const MAGIC = Buffer.from('QSS1');
const KEY = 32;
const SALT = 32;
const TAG = 16;
/** A constant nonce: each key seals one file. */
const NONCE = Buffer.alloc(12);
