import type { Dispatcher } from 'undici';

/**
 * Sends a request again when its connection ended before the first byte of a response, for methods that may be
 * repeated (RFC 9110, section 9.2.2) and bodies that can be sent again.
 */
export function retryClosed(onRetry: (origin: string) => void): Dispatcher.DispatcherComposeInterceptor {
    return (dispatch) => (options, handler) => {
        if (!isRepeatable(options)) return dispatch(options, handler);
        const again = (second: Dispatcher.DispatchHandler) => {
            onRetry(originOf(options.origin));
            dispatch(options, second);
        };
        return dispatch(options, firstAttempt(handler, again));
    };
}

/**
 * Wraps `handler`: the end of the connection before the response calls `again`. Supports undici's old and new
 * handlers.
 */
function firstAttempt(
    handler: Dispatcher.DispatchHandler,
    again: (handler: Dispatcher.DispatchHandler) => void,
): Dispatcher.DispatchHandler {
    let isAnswered = false;
    const watched: Record<string, unknown> = {};
    for (const name of HANDLER_METHODS) {
        const method = (handler as Record<string, unknown>)[name];
        if (typeof method !== 'function') continue;
        watched[name] = (...args: unknown[]) => {
            if (ANSWER_METHODS.has(name)) isAnswered = true;
            // The error is the last argument of onError(error) and of onResponseError(controller, error).
            else if (ERROR_METHODS.has(name) && !isAnswered && isClosedByPeer(args.at(-1))) return again(handler);
            return Reflect.apply(method, handler, args);
        };
    }
    return watched as Dispatcher.DispatchHandler;
}

function isRepeatable({ method, body, upgrade }: Dispatcher.DispatchOptions): boolean {
    if (upgrade || !IDEMPOTENT.has(method)) return false;
    return body === null || body === undefined || typeof body === 'string' || body instanceof Uint8Array;
}

function isClosedByPeer(error: unknown): boolean {
    return CLOSED_BY_PEER.has((error as NodeJS.ErrnoException | undefined)?.code ?? '');
}

export function originOf(origin: string | URL | undefined): string {
    const url = new URL(origin ?? 'https://unknown');
    return `${url.hostname}:${url.port || (url.protocol === 'http:' ? 80 : 443)}`;
}

const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);
const CLOSED_BY_PEER: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'UND_ERR_SOCKET']);
const ERROR_METHODS: ReadonlySet<string> = new Set(['onResponseError', 'onError']);
const ANSWER_METHODS: ReadonlySet<string> = new Set(['onResponseStart', 'onHeaders', 'onRequestUpgrade', 'onUpgrade']);
const HANDLER_METHODS = [
    ...['onRequestStart', 'onRequestUpgrade', 'onResponseStart', 'onResponseData', 'onResponseEnd', 'onResponseError'],
    ...['onConnect', 'onUpgrade', 'onHeaders', 'onData', 'onComplete', 'onError'],
    ...['onBodySent', 'onRequestSent', 'onResponseStarted'],
];
