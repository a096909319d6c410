import type { ClientRequest, RequestOptions } from 'node:http';
import * as https from 'node:https';
import * as tls from 'node:tls';
import { type AgentSettings, resolveSettings, type TlsAgentOptions } from './agent-options.js';
import { channels } from './channels.js';
import { identityOf } from './fingerprint.js';
import { Handshake } from './handshake.js';
import { idleTime, keepAliveHint } from './keep-alive.js';
import { Meter, type Metrics } from './metrics.js';
import {
    messageOf,
    NAME,
    FULL,
    type Options,
    pool,
    PROFILE,
    requestSocket,
    servernameOf,
    targetOf,
    type Pool,
} from './node-agent.js';
import { type Profile, Profiles } from './profile.js';
import { type RetryReason, SocketGuard } from './retry.js';
import type { SessionStore } from './store.js';
import { type Waiter, WaitingRequests } from './waiting.js';

/** What an agent counts, and what it holds at this moment. */
export interface AgentMetrics extends Metrics {
    readonly sockets: {
        /** In use or being connected. */
        readonly active: number;
        readonly free: number;
        /** Requests that wait for one. */
        readonly waiting: number;
    };
}

/**
 * An `https.Agent` that resumes, reuses and remembers. Node's agent keeps the sockets; this one decides who gets one and
 * when it must go, which session is offered, and what happens when a socket fails.
 */
export class TlsAgent extends https.Agent {
    readonly store: SessionStore;
    readonly #settings: AgentSettings;
    readonly #profiles: Profiles;
    readonly #meter = new Meter();
    readonly #waiting = new WaitingRequests<Options>();
    readonly #sockets = new WeakMap<tls.TLSSocket, SocketState>();
    /** Sockets that are not closed yet, by the name of their pool. Node forgets them a little earlier. */
    readonly #open = new Map<string, number>();
    /** Idle sockets that are being closed for somebody who waits. */
    #closing = 0;

    constructor(options: TlsAgentOptions = {}) {
        const settings = resolveSettings(options);
        super(settings.nodeOptions);
        this.#settings = settings;
        this.store = settings.store;
        this.#profiles = new Profiles(settings.policy, 100);
        // Before and after Node's own listener, which gives the socket to a queued request, or to the free ones, or closes it.
        this.prependListener('free', (socket: tls.TLSSocket) => this.#handOver(socket));
        this.on('free', () => this.#admitWaiting());
    }

    /** Counters since the start, and what is open now. */
    metrics(): AgentMetrics {
        const free = Object.values(this.#pool.freeSockets).reduce((sum, sockets) => sum + (sockets?.length ?? 0), 0);
        const sockets = { active: this.#pool.totalSocketCount - free, free, waiting: this.#waiting.size };
        return { ...this.#meter.snapshot(), sockets };
    }

    /** Called by `http.request`. */
    addRequest(request: ClientRequest, requestOptions: RequestOptions): void {
        const options: Options = { ...(requestOptions as Options), ...this.#pool.options };
        if (options.socketPath) options.path = options.socketPath;
        options.servername ??= servernameOf(options, request);
        options[PROFILE] = this.#profiles.of(options, requestOptions);
        const name = (options[NAME] = this.getName(options));
        this.#standBetween(request, name, options);
        this.#enterOrWait({ request, name, options, isFresh: false });
    }

    override getName(options: Options = {}): string {
        if (options[NAME] !== undefined) return options[NAME];
        const { host, port, localAddress, family, socketPath, servername } = options;
        const profile = this.#profileOf(options);
        // What a session of the caller's proves, it proves to that caller.
        const session = options.session && identityOf(options.session);
        const place = [host ?? 'localhost', port, localAddress, family, socketPath, servername];
        return [...place, `#${profile.id}`, session].join(':');
    }

    /** Called by Node's agent, with the options of `https.request`; also by callers who want a connection of their own. */
    override createConnection(options: Options): tls.TLSSocket {
        const profile = this.#profileOf(options);
        const handshake = new Handshake({ ...this.#settings, meter: this.#meter }, targetOf(options, profile));
        const socket = tls.connect({ ...options, ...handshake.offer(Date.now()) } as tls.ConnectionOptions);
        handshake.watch(socket);
        const name = this.getName(options);
        this.#sockets.set(socket, {
            name,
            guard: new SocketGuard(socket, handshake),
            bornAt: performance.now(),
            idleSince: 0,
        });
        this.#countOpen(socket, name);
        return socket;
    }

    /** Called by Node's agent when a request is done: whether the socket may serve another, and how long it may wait. */
    override keepSocketAlive(socket: tls.TLSSocket): boolean {
        const state = this.#sockets.get(socket);
        if (!state || this.#isNeededElsewhere(state.name)) return false;
        const now = performance.now();
        const time = idleTime(keepAliveHint(messageOf(socket)?.res?.headers), this.#settings, now - state.bornAt);
        if (time <= 0) return false;
        state.idleSince = now;
        socket.setKeepAlive(true, this.#pool.keepAliveMsecs);
        socket.unref();
        socket.setTimeout(time === Infinity ? 0 : time);
        return true;
    }

    /** Called by Node's agent when a request gets a free socket. */
    override reuseSocket(socket: tls.TLSSocket, request: ClientRequest): void {
        nodeAgent.reuseSocket.call(this, socket, request);
        socket.setTimeout(this.#pool.options.timeout ?? 0);
        const state = this.#sockets.get(socket);
        if (state) this.#meter.reused(state.guard.handshake.origin);
    }

    /** Called by Node's agent when a socket has left it, or has become free. */
    removeSocket(socket: tls.TLSSocket, options: Options): void {
        nodeAgent.removeSocket.call(this, socket, options);
        if (!socket.writable) this.#admitWaiting();
    }

    #profileOf(options: Options): Profile {
        return options[PROFILE] ?? this.#profiles.of(options);
    }

    get #pool(): Pool {
        return pool(this);
    }

    /** Sees which socket the request gets, and stays beside it until the answer comes. */
    #standBetween(request: ClientRequest, name: string, options: Options): void {
        const receiver = requestSocket(request);
        const onSocket = receiver.onSocket;
        receiver.onSocket = (socket, error) => {
            const guard = socket && !error ? this.#sockets.get(socket)?.guard : undefined;
            guard?.watch(request, request.reusedSocket, (reason) => {
                this.#countRetry(guard.handshake.origin, reason);
                const again: Options = { ...options, [FULL]: reason === 'full' };
                attempt(request, () => this.#enterOrWait({ request, name, options: again, isFresh: true }));
            });
            onSocket.call(request, socket, error);
        };
    }

    #enterOrWait(waiter: Waiter<Options>): void {
        const enter = this.#wayIn(waiter);
        if (enter) enter();
        else this.#waiting.add(waiter);
    }

    /** How a request may go on now, if it may: by a free socket, or by a new one within the bounds. */
    #wayIn({ request, name, options, isFresh }: Waiter<Options>): (() => void) | undefined {
        const free = this.#liveFreeSockets(name);
        if (free.length > 0 && !isFresh) return () => nodeAgent.addRequest.call(this, request, options);
        if ((this.#open.get(name) ?? 0) >= this.#pool.maxSockets) {
            this.#closeIdle(free);
            return undefined;
        }
        if (this.#pool.totalSocketCount >= this.#pool.maxTotalSockets) {
            this.#closeIdle(
                Object.keys(this.#pool.freeSockets).flatMap((other) => this.#liveFreeSockets(other).slice(0, 1)),
            );
            return undefined;
        }
        return () => this.#connect(request, options);
    }

    #connect(request: ClientRequest, options: Options): void {
        const receiver = requestSocket(request);
        this.#pool.createSocket(request, options, (error, socket) => {
            if (error || !socket) return receiver.onSocket(null, error ?? new Error('no socket was made'));
            receiver.onSocket(socket);
            const { timeout } = request as { timeout?: number };
            if (timeout !== undefined && timeout !== this.#pool.options.timeout) socket.setTimeout(timeout);
        });
    }

    /** Gives a socket at once to a request that waits for its like, also with keepAlive off; Node does so by its own queue. */
    #handOver(socket: tls.TLSSocket): void {
        const state = this.#sockets.get(socket);
        if (!state || this.#waiting.size === 0 || !socket.writable) return;
        const hint = keepAliveHint(messageOf(socket)?.res?.headers);
        const isTooOld = performance.now() - state.bornAt >= this.#settings.socketLifetime;
        if (isTooOld || hint.requestsLeft === 0 || this.#isNeededElsewhere(state.name)) return;
        const waiter = this.#waiting.takeFor(state.name);
        if (!waiter) return;
        waiter.reusedSocket = true;
        this.#meter.reused(state.guard.handshake.origin);
        this.#pool.requests[state.name] = [waiter];
    }

    #admitWaiting(): void {
        this.#waiting.admit((waiter) => {
            const enter = this.#wayIn(waiter);
            return enter && (() => attempt(waiter.request, enter));
        });
    }

    /** Whether a socket of pool `name` stands in the way of the first request that could go on without it. */
    #isNeededElsewhere(name: string): boolean {
        if (this.#pool.totalSocketCount < this.#pool.maxTotalSockets) return false;
        for (const waiter of this.#waiting) {
            if (waiter.name === name) return false;
            if ((this.#open.get(waiter.name) ?? 0) < this.#pool.maxSockets) return true;
        }
        return false;
    }

    /** Free sockets oldest first, without those that have just been closed; Node drops these only at their 'close'. */
    #liveFreeSockets(name: string): tls.TLSSocket[] {
        const sockets = this.#pool.freeSockets[name];
        if (!sockets) return [];
        if (sockets.some((socket) => !socket.writable))
            sockets.splice(0, sockets.length, ...sockets.filter((one) => one.writable));
        if (sockets.length === 0) delete this.#pool.freeSockets[name];
        return sockets;
    }

    /** Makes room for one of those who wait, by the socket that has been idle for longest. */
    #closeIdle(candidates: tls.TLSSocket[]): void {
        if (this.#closing > this.#waiting.size) return;
        const idleSince = (socket: tls.TLSSocket) => this.#sockets.get(socket)?.idleSince ?? 0;
        const [oldest] = candidates.sort((one, other) => idleSince(one) - idleSince(other));
        if (!oldest) return;
        this.#closing++;
        oldest.once('close', () => this.#closing--);
        oldest.destroy();
    }

    #countOpen(socket: tls.TLSSocket, name: string): void {
        this.#open.set(name, (this.#open.get(name) ?? 0) + 1);
        const leave = () => {
            socket.removeListener('close', leave);
            socket.removeListener('agentRemove', leave);
            const left = (this.#open.get(name) ?? 1) - 1;
            if (left > 0) this.#open.set(name, left);
            else this.#open.delete(name);
        };
        socket.on('close', leave);
        // An upgrade: the socket is no longer ours.
        socket.on('agentRemove', leave);
        socket.once('agentRemove', () => process.nextTick(() => this.#admitWaiting()));
    }

    #countRetry(origin: string, reason: RetryReason): void {
        this.#meter.retried(origin, reason === 'stale' ? 'staleRetries' : 'fullRetries');
        if (channels.retry.hasSubscribers) channels.retry.publish({ origin, reason });
    }
}

interface SocketState {
    /** Of its pool. */
    readonly name: string;
    readonly guard: SocketGuard;
    /** By `performance.now()`. */
    readonly bornAt: number;
    idleSince: number;
}

const nodeAgent = pool(https.Agent.prototype);

/** Runs `action` where nobody could catch what it throws: the request fails with it instead. */
function attempt(request: ClientRequest, action: () => void): void {
    try {
        action();
    } catch (error) {
        requestSocket(request).onSocket(null, error as Error);
    }
}
