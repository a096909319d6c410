import { subscribe } from 'node:diagnostics_channel';
import type { TLSSocket } from 'node:tls';

/** State of a socket held by undici. */
export interface TrackedSocket {
    readonly socket: TLSSocket;
    /** Creation time by `performance.now()`. */
    readonly bornAt: number;
    /** Time at which its last request ended. */
    idleSince: number;
    /** Number of current requests. */
    active: number;
    /** Number of requests assigned to it. */
    requests: number;
    readonly onRequest: (tracked: TrackedSocket) => void;
    readonly onIdle: (tracked: TrackedSocket) => void;
}

/** Tracks the requests of a socket, which undici reports only on its diagnostics channels. */
export function track(
    socket: TLSSocket,
    onRequest: TrackedSocket['onRequest'],
    onIdle: TrackedSocket['onIdle'],
): TrackedSocket {
    listen();
    const now = performance.now();
    const tracked: TrackedSocket = { socket, bornAt: now, idleSince: now, active: 0, requests: 0, onRequest, onIdle };
    bySocket.set(socket, tracked);
    return tracked;
}

const bySocket = new WeakMap<object, TrackedSocket>();
const byRequest = new WeakMap<object, TrackedSocket>();
let isListening = false;

/** Subscribes to the channels, which belong to the process and are shared by all copies of undici. */
function listen(): void {
    if (isListening) return;
    isListening = true;
    subscribe('undici:client:sendHeaders', (message) => {
        const { request, socket } = message as { request: object; socket: object };
        const tracked = bySocket.get(socket);
        if (!tracked) return;
        byRequest.set(request, tracked);
        tracked.active++;
        tracked.requests++;
        tracked.onRequest(tracked);
    });
    const end = (message: unknown) => {
        const { request } = message as { request: object };
        const tracked = byRequest.get(request);
        if (!tracked) return;
        byRequest.delete(request);
        tracked.active--;
        tracked.idleSince = performance.now();
        if (tracked.active === 0) tracked.onIdle(tracked);
    };
    subscribe('undici:request:trailers', end);
    subscribe('undici:request:error', end);
}
