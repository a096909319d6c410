import type { IncomingHttpHeaders } from 'node:http';

/** A server's limits for an open connection (the Keep-Alive header, RFC 2068, section 19.7.1.1). */
export interface KeepAliveHint {
    /** Time for which the server keeps it open when idle. */
    readonly timeoutMs: number | undefined;
    /** Number of further requests that it accepts. */
    readonly requestsLeft: number | undefined;
}

export interface KeepAliveLimits {
    /** Maximum idle time of a socket in milliseconds. */
    readonly freeSocketTimeout: number;
    /** Maximum age of a socket in milliseconds. */
    readonly socketLifetime: number;
}

/** Parses parameters in any order, such as `timeout=5, max=100`; unknown ones are ignored. */
export function keepAliveHint(headers: IncomingHttpHeaders | undefined): KeepAliveHint {
    const value = headers?.['keep-alive'];
    if (value === undefined) return NO_HINT;
    const text = String(value);
    if (text !== last.text) last = { text, hint: parse(text) };
    return last.hint;
}

/**
 * Returns the maximum time until a socket's next request, in milliseconds; 0 if it must be closed. It ends a while
 * before the server's timeout, so that a request does not cross with the server's FIN.
 */
export function idleTime(hint: KeepAliveHint, limits: KeepAliveLimits, ageMs: number): number {
    if (hint.requestsLeft === 0) return 0;
    const server = hint.timeoutMs === undefined ? Infinity : hint.timeoutMs - SAFETY_MARGIN;
    return Math.max(0, Math.min(limits.freeSocketTimeout, limits.socketLifetime - ageMs, server));
}

function parse(text: string): KeepAliveHint {
    const seconds = numberIn(TIMEOUT, text);
    return { timeoutMs: seconds === undefined ? undefined : seconds * 1000, requestsLeft: numberIn(MAX, text) };
}

function numberIn(pattern: RegExp, text: string): number | undefined {
    const match = pattern.exec(text);
    return match ? Number(match[1]) : undefined;
}

const NO_HINT: KeepAliveHint = { timeoutMs: undefined, requestsLeft: undefined };
/** Cache of the last header, which most servers repeat. */
let last: { readonly text: string; readonly hint: KeepAliveHint } = { text: '', hint: NO_HINT };
const TIMEOUT = /(?:^|[,;\s])timeout\s*=\s*"?(\d+)/i;
const MAX = /(?:^|[,;\s])max\s*=\s*"?(\d+)/i;
const SAFETY_MARGIN = 1000;
