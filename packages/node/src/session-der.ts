/** The fields of OpenSSL's session encoding that decide whether, and how long, a session is kept. */
export interface ParsedSession {
    readonly protocol: 'TLSv1.2' | 'TLSv1.3';
    /** Whether it has a ticket or a session id, which resumption requires. */
    readonly resumable: boolean;
    /** X.509 verification result; 0 is X509_V_OK. */
    readonly verifyResult: number;
    /** The server's hint, or OpenSSL's own timeout where the server gave none (TLS 1.2). */
    readonly lifetimeSeconds: number;
}

/**
 * Parses an SSL_SESSION as written by `i2d_SSL_SESSION` (OpenSSL, ssl/ssl_asn1.c: a SEQUENCE of untagged fields
 * followed by explicitly tagged optional ones). Returns undefined for other bytes, or a version before TLS 1.2.
 */
export function parseSession(bytes: Uint8Array): ParsedSession | undefined {
    const fields = fieldsOf(bytes);
    const [structure, protocol, , sessionId] = fields ?? [];
    if (!fields || structure?.tag !== INTEGER || protocol?.tag !== INTEGER || sessionId?.tag !== OCTET_STRING)
        return undefined;
    const version = PROTOCOLS.get(integer(protocol.content));
    if (version === undefined) return undefined;
    const tagged = (number: number) => fields.find((field) => field.tag === CONTEXT + number);
    const ticket = tagged(10);
    const hint = taggedInteger(tagged(9));
    const timeout = taggedInteger(tagged(2)) ?? 0;
    return {
        protocol: version,
        resumable: ticket !== undefined || sessionId.content.length > 0,
        verifyResult: taggedInteger(tagged(5)) ?? 0,
        // In TLS 1.3 a hint of 0, which is omitted in the encoding, means: discard at once.
        lifetimeSeconds: version === 'TLSv1.3' ? (hint ?? 0) : hint || timeout,
    };
}

/** Returns the server's certificate of an SSL_SESSION, in DER. */
export function certificateOf(bytes: Uint8Array): Uint8Array | undefined {
    return fieldsOf(bytes)?.find((field) => field.tag === CONTEXT + 3)?.content;
}

function fieldsOf(bytes: Uint8Array): Element[] | undefined {
    const encoded = withoutName(bytes);
    const outer = readElement(encoded, 0);
    if (outer?.tag !== SEQUENCE || outer.end !== encoded.length) return undefined;
    return readElements(outer.content);
}

/**
 * Strips the server name that a Node with the fix of CVE-2026-48934 prepends: a mark, two bytes of length, the name.
 */
function withoutName(bytes: Uint8Array): Uint8Array {
    if (!NAME_MARK.equals(bytes.subarray(0, NAME_MARK.length))) return bytes;
    const length = integer(bytes.subarray(NAME_MARK.length, NAME_MARK.length + 2));
    return bytes.subarray(NAME_MARK.length + 2 + length);
}

interface Element {
    readonly tag: number;
    readonly content: Uint8Array;
    /** Offset of the next element. */
    readonly end: number;
}

function readElements(content: Uint8Array): Element[] | undefined {
    const elements: Element[] = [];
    for (let at = 0; at < content.length;) {
        const element = readElement(content, at);
        if (!element) return undefined;
        elements.push(element);
        at = element.end;
    }
    return elements;
}

function readElement(bytes: Uint8Array, at: number): Element | undefined {
    const tag = bytes[at];
    const first = bytes[at + 1];
    if (tag === undefined || first === undefined) return undefined;
    let start = at + 2;
    let length = first;
    if (first & 0x80) {
        const count = first & 0x7f;
        if (count < 1 || count > 3 || start + count > bytes.length) return undefined;
        length = integer(bytes.subarray(start, start + count));
        start += count;
    }
    const end = start + length;
    return end <= bytes.length ? { tag, content: bytes.subarray(start, end), end } : undefined;
}

function taggedInteger(element: Element | undefined): number | undefined {
    const inner = element && readElement(element.content, 0);
    return inner?.tag === INTEGER ? integer(inner.content) : undefined;
}

/** Parses a big-endian unsigned integer, the form of all fields read here. */
function integer(bytes: Uint8Array): number {
    return bytes.reduce((value, byte) => value * 256 + byte, 0);
}

const NAME_MARK = Buffer.from('\0nodejs:tls:session:1\0', 'latin1');
const INTEGER = 0x02;
const OCTET_STRING = 0x04;
const SEQUENCE = 0x30;
/** Tag class: context-specific and constructed. */
const CONTEXT = 0xa0;
const PROTOCOLS: ReadonlyMap<number, 'TLSv1.2' | 'TLSv1.3'> = new Map([
    [0x0303, 'TLSv1.2'],
    [0x0304, 'TLSv1.3'],
]);
