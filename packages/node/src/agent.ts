import type { ClientRequest, RequestOptions } from 'node:http';
import * as https from 'node:https';
import type * as tls from 'node:tls';
import { type AgentSettings, resolveSettings, type TlsAgentOptions } from './agent-options.js';
import { channels } from './channels.js';
import { Handshake, type Sessions } from './handshake.js';
import { IdleClock } from './idle-clock.js';
import { idleTime, keepAliveHint } from './keep-alive.js';
import { Meter, type Metrics } from './metrics.js';
import {
    messageOf,
    NAME,
    FULL,
    type Options,
    pool,
    poolName,
    PROFILE,
    requestSocket,
    targetOf,
    type Pool,
} from './node-agent.js';
import { Places } from './places.js';
import { type Profile, Profiles } from './profile.js';
import { type RetryReason, SocketGuard } from './retry.js';
import type { SessionStore } from './store.js';
import { type Waiter, WaitingRequests } from './waiting.js';

/** Counters of an agent, and its current sockets. */
export interface AgentMetrics extends Metrics {
    readonly sockets: {
        /** In use or connecting. */
        readonly active: number;
        readonly free: number;
        /** Requests that wait for a socket. */
        readonly waiting: number;
    };
}

/**
 * An `https.Agent` that resumes sessions and reuses sockets. Node's agent keeps the sockets; this class decides which
 * request gets a socket and when a socket is closed, which session is offered, and how a failed socket is handled.
 */
export class TlsAgent extends https.Agent {
    readonly store: SessionStore;
    readonly #settings: AgentSettings;
    readonly #sessions: Sessions;
    readonly #profiles: Profiles;
    readonly #meter = new Meter();
    readonly #places = new Places();
    readonly #waiting = new WaitingRequests();
    readonly #idle = new IdleClock((now) => this.#closeExpired(now));
    readonly #sockets = new WeakMap<tls.TLSSocket, SocketState>();
    /** Sockets that are not closed yet, by the name of their pool. Node forgets them a little earlier. */
    readonly #open = new Map<string, number>();
    /** Number of idle sockets being closed in favour of waiting requests. */
    #closing = 0;
    /** The request that is being given a free socket. */
    #entering: Waiter | undefined;

    constructor(options: TlsAgentOptions = {}) {
        const settings = resolveSettings(options);
        super(settings.nodeOptions);
        this.#settings = settings;
        this.store = settings.store;
        const { store, ticketReuse, isOff } = settings;
        this.#sessions = { store, ticketReuse, isOff, meter: this.#meter };
        this.#profiles = new Profiles(settings.policy, 100);
        // Node's own listener adds the socket to the free ones, or closes it.
        const [park] = this.listeners('free') as [(socket: tls.TLSSocket, options: Options) => void];
        this.removeListener('free', park);
        this.on('free', (socket: tls.TLSSocket, options: Options) => {
            if (this.#handOver(socket)) return;
            park(socket, options);
            this.#admitWaiting();
        });
    }

    /** Returns the counters since the start, and the open sockets. */
    metrics(): AgentMetrics {
        const free = Object.values(this.#pool.freeSockets).reduce((sum, sockets) => sum + (sockets?.length ?? 0), 0);
        const sockets = { active: this.#pool.totalSocketCount - free, free, waiting: this.#waiting.size };
        return { ...this.#meter.snapshot(), sockets };
    }

    override destroy(): void {
        super.destroy();
        this.#idle.stop();
    }

    /** Called by `http.request`. */
    addRequest(request: ClientRequest, requestOptions: RequestOptions): void {
        const options = requestOptions as Options;
        const common = this.#pool.options;
        const profile = this.#profiles.of(options, common);
        const place = this.#places.of(request, options, common, profile);
        this.#enterOrWait({ request, place, options, isFresh: false });
    }

    override getName(options: Options = {}): string {
        return options[NAME] ?? poolName(options, this.#profileOf(options));
    }

    /** Called by Node's agent, with the options of `https.request`; also by callers that want a separate connection. */
    override createConnection(options: Options): tls.TLSSocket {
        const profile = this.#profileOf(options);
        const handshake = new Handshake(this.#sessions, targetOf(options, profile));
        // Node's agent has made a private copy; a caller's own options are not modified.
        const own = NAME in options ? options : { ...options };
        const socket = handshake.connect(own as tls.ConnectionOptions);
        const name = this.getName(options);
        this.#sockets.set(socket, {
            name,
            guard: new SocketGuard(socket, handshake),
            bornAt: performance.now(),
            idleSince: 0,
            idleUntil: Infinity,
        });
        this.#countOpen(socket, name);
        return socket;
    }

    /**
     * Called by Node's agent when a request is done. Returns whether the socket may serve another, and sets its idle
     * time.
     */
    override keepSocketAlive(socket: tls.TLSSocket): boolean {
        const state = this.#sockets.get(socket);
        if (!state || this.#isNeededElsewhere(state.name)) return false;
        const now = performance.now();
        const time = idleTime(keepAliveHint(messageOf(socket)?.res?.headers), this.#settings, now - state.bornAt);
        if (time <= 0) return false;
        state.idleSince = now;
        state.idleUntil = now + time;
        this.#idle.expectAt(state.idleUntil, now);
        socket.setKeepAlive(true, this.#pool.keepAliveMsecs);
        socket.unref();
        // Also where it is undefined, which is then 0, as in Node.
        if (socket.timeout !== 0) socket.setTimeout(0);
        return true;
    }

    /** Called by Node's agent when a request gets a free socket. */
    override reuseSocket(socket: tls.TLSSocket, request: ClientRequest): void {
        nodeAgent.reuseSocket.call(this, socket, request);
        const { timeout } = this.#pool.options;
        if (timeout) socket.setTimeout(timeout);
        const state = this.#sockets.get(socket);
        if (state && this.#entering) this.#reuse(state, this.#entering);
    }

    /** Called by Node's agent when a socket has left the agent, or has become free. */
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

    #enterOrWait(waiter: Waiter): void {
        const enter = this.#wayIn(waiter);
        if (enter) enter();
        else this.#waiting.add(waiter);
    }

    /** Returns how a request may proceed now, if it may: with a free socket, or with a new one within the bounds. */
    #wayIn(waiter: Waiter): (() => void) | undefined {
        const { name } = waiter.place;
        const free = this.#liveFreeSockets(name);
        if (free.length > 0 && !waiter.isFresh) return () => this.#enterFree(waiter);
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
        return () => this.#connect(waiter);
    }

    #enterFree(waiter: Waiter): void {
        const { highWaterMark } = waiter.options as { highWaterMark?: number };
        const { forReuse } = waiter.place;
        this.#entering = waiter;
        try {
            // Node copies these options, so they are few.
            const options = highWaterMark === undefined ? forReuse : { ...forReuse, highWaterMark };
            nodeAgent.addRequest.call(this, waiter.request, options);
        } finally {
            this.#entering = undefined;
        }
    }

    #connect(waiter: Waiter): void {
        const { request } = waiter;
        this.#pool.createSocket(request, connectOptions(waiter), (error, socket) => {
            if (error || !socket)
                return requestSocket(request).onSocket(null, error ?? new Error('no socket was made'));
            const guard = this.#sockets.get(socket)?.guard;
            if (guard) this.#standBetween(guard, waiter, false);
            this.#give(socket, request);
        });
    }

    #reuse({ guard }: SocketState, waiter: Waiter): void {
        this.#meter.reused(guard.handshake.origin);
        this.#standBetween(guard, waiter, true);
    }

    /** Watches a request that is about to get its socket, until the response starts. */
    #standBetween(guard: SocketGuard, waiter: Waiter, isReused: boolean): void {
        guard.watch(waiter.request, isReused, (reason) => {
            this.#countRetry(guard.handshake.origin, reason);
            const options: Options = { ...waiter.options, [FULL]: reason === 'full' };
            attempt(waiter.request, () => this.#enterOrWait({ ...waiter, options, isFresh: true }));
        });
    }

    /** Gives a socket at once to a request that waits for one of its pool, even with keepAlive off, as Node does. */
    #handOver(socket: tls.TLSSocket): boolean {
        const state = this.#sockets.get(socket);
        if (!state || this.#waiting.size === 0 || !socket.writable) return false;
        const hint = keepAliveHint(messageOf(socket)?.res?.headers);
        const isTooOld = performance.now() - state.bornAt >= this.#settings.socketLifetime;
        if (isTooOld || hint.requestsLeft === 0 || this.#isNeededElsewhere(state.name)) return false;
        return this.#waiting.admitTo(state.name, (waiter) => {
            waiter.request.reusedSocket = true;
            this.#reuse(state, waiter);
            this.#give(socket, waiter.request);
        });
    }

    /** Assigns the socket to the request, as Node does. */
    #give(socket: tls.TLSSocket, request: ClientRequest): void {
        requestSocket(request).onSocket(socket);
        const { timeout } = request as { timeout?: number };
        if (timeout !== undefined && timeout !== this.#pool.options.timeout) socket.setTimeout(timeout);
    }

    #admitWaiting(): void {
        this.#waiting.admit((waiter) => {
            const enter = this.#wayIn(waiter);
            return enter && (() => attempt(waiter.request, enter));
        });
    }

    /** Returns whether a socket of pool `name` blocks the first request that could proceed without it. */
    #isNeededElsewhere(name: string): boolean {
        if (this.#pool.totalSocketCount < this.#pool.maxTotalSockets) return false;
        const hasRoom = ({ place }: Waiter) => (this.#open.get(place.name) ?? 0) < this.#pool.maxSockets;
        const first = this.#waiting.find((waiter) => waiter.place.name === name || hasRoom(waiter));
        return first !== undefined && first.place.name !== name;
    }

    /** Returns free sockets, oldest first, without those just closed; Node drops these only at their 'close'. */
    #liveFreeSockets(name: string): tls.TLSSocket[] {
        const now = performance.now();
        if (this.#idle.isLate(now)) this.#idle.check(now);
        const sockets = this.#pool.freeSockets[name];
        if (!sockets) return [];
        if (!sockets.every(isWritable)) sockets.splice(0, sockets.length, ...sockets.filter(isWritable));
        if (sockets.length === 0) delete this.#pool.freeSockets[name];
        return sockets;
    }

    /** Closes expired idle sockets. Returns the time at which the next one expires. */
    #closeExpired(now: number): number {
        let next = Infinity;
        for (const sockets of Object.values(this.#pool.freeSockets)) {
            for (const socket of sockets ?? []) {
                const { idleUntil = Infinity } = this.#sockets.get(socket) ?? {};
                if (idleUntil <= now) socket.destroy();
                else next = Math.min(next, idleUntil);
            }
        }
        return next;
    }

    /** Makes room for a waiting request by closing the socket that has been idle for longest. */
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
        // An upgrade: the socket has left the agent.
        socket.on('agentRemove', leave);
        socket.once('agentRemove', () => process.nextTick(() => this.#admitWaiting()));
    }

    #countRetry(origin: string, reason: RetryReason): void {
        this.#meter.retried(origin, reason === 'stale' ? 'staleRetries' : 'fullRetries');
        if (channels.retry.hasSubscribers) channels.retry.publish({ origin, reason });
    }
}

interface SocketState {
    /** Name of the socket's pool. */
    readonly name: string;
    readonly guard: SocketGuard;
    /** Creation time by `performance.now()`. */
    readonly bornAt: number;
    idleSince: number;
    idleUntil: number;
}

const nodeAgent = pool(https.Agent.prototype);

/** Returns the options of a request for a new connection; Node's agent adds its own. */
function connectOptions({ place, options }: Waiter): Options {
    return { ...options, servername: place.servername, [PROFILE]: place.profile, [NAME]: place.name };
}

function isWritable(socket: tls.TLSSocket): boolean {
    return socket.writable;
}

/** Runs `action` where a thrown error could not be caught: the request fails with the error instead. */
function attempt(request: ClientRequest, action: () => void): void {
    try {
        action();
    } catch (error) {
        requestSocket(request).onSocket(null, error as Error);
    }
}
