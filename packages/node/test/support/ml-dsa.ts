import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** Certificates with ML-DSA keys and signatures (RFC 9881). The openssl command has them from 3.5 on only. */
export class MlDsaAuthority {
    /** The root, in the form of the option `ca`. */
    readonly ca: string;
    readonly #keys = keyPair('ml-dsa-44');

    constructor() {
        this.ca = this.#certify(ROOT, this.#keys.publicKey, [extension('551d13', true, sequence(boolean(true)))]);
    }

    /** Issues a certificate for a server of this name, or for a client. */
    issue(set: ParameterSet, name: string): { readonly cert: string; readonly key: string } {
        const { publicKey, privateKey } = keyPair(set);
        const names = sequence(element(0x82, Buffer.from(name)));
        const cert = this.#certify(name, publicKey, [extension('551d11', false, names)]);
        return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
    }

    #certify(subject: string, key: KeyObject, extensions: Buffer[]): string {
        const validity = sequence(time(Date.now() - HOUR), time(Date.now() + 24 * HOUR));
        const content = sequence(
            element(0xa0, integer(Buffer.from([2]))),
            integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
            ALGORITHM,
            name(ROOT),
            validity,
            name(subject),
            key.export({ type: 'spki', format: 'der' }),
            element(0xa3, sequence(...extensions)),
        );
        const signature = sign(null, content, this.#keys.privateKey);
        const certificate = sequence(content, ALGORITHM, element(0x03, Buffer.concat([Buffer.from([0]), signature])));
        const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
        return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
    }
}

export type ParameterSet = 'ml-dsa-44' | 'ml-dsa-65' | 'ml-dsa-87';

/** Returns whether this Node has ML-DSA: from 24.6 on, with OpenSSL 3.5. */
export function hasMlDsa(): boolean {
    try {
        keyPair('ml-dsa-44');
        return true;
    } catch {
        return false;
    }
}

/** Generates a key. The types of Node are older. */
function keyPair(set: ParameterSet): { publicKey: KeyObject; privateKey: KeyObject } {
    return generateKeyPairSync(set as 'ed25519');
}

function name(common: string): Buffer {
    const attribute = sequence(oid('550403'), element(0x0c, Buffer.from(common)));
    return sequence(element(0x31, attribute));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
    return sequence(oid(id), ...(critical ? [boolean(true)] : []), element(0x04, value));
}

function time(milliseconds: number): Buffer {
    const digits = new Date(milliseconds).toISOString().replace(/\.\d+|\D/g, '');
    return element(0x18, Buffer.from(`${digits}Z`));
}

function sequence(...parts: Buffer[]): Buffer {
    return element(0x30, Buffer.concat(parts));
}

function oid(hexadecimal: string): Buffer {
    return element(0x06, Buffer.from(hexadecimal, 'hex'));
}

function integer(bytes: Buffer): Buffer {
    return element(0x02, bytes);
}

function boolean(value: boolean): Buffer {
    return element(0x01, Buffer.from([value ? 0xff : 0]));
}

/** Encodes an element in DER. */
function element(tag: number, content: Buffer): Buffer {
    const { length } = content;
    const header = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
    return Buffer.concat([Buffer.from([tag, ...header]), content]);
}

const HOUR = 3_600_000;
const ROOT = 'ML-DSA Test CA';
/** ML-DSA-44, without parameters. */
const ALGORITHM = sequence(oid('608648016503040311'));
