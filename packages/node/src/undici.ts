/** Support for undici, and so for the global `fetch`: a dispatcher with resumption, bounds and counters. */
import { isIP } from 'node:net';
import type * as tls from 'node:tls';
import type { Agent, buildConnector } from 'undici';
import { resolveSessionOptions, type SessionOptions } from './agent-options.js';
import { channels } from './channels.js';
import { type Duration, milliseconds } from './duration.js';
import { countOption, QuadrilleError } from './errors.js';
import { Handshake, type Sessions } from './handshake.js';
import { Meter, type Metrics } from './metrics.js';
import { Profiles, type TlsOptions } from './profile.js';
import { SocketBudget } from './socket-budget.js';
import type { SessionStore } from './store.js';
import { steady } from './undici-pool.js';
import { retryClosed } from './undici-retry.js';
import { track, type TrackedSocket } from './undici-sockets.js';

/** Options of undici's Agent, with other defaults where noted, and additional options. */
export interface DispatcherOptions extends Omit<Agent.Options, 'connect' | 'factory'>, SessionOptions {
    /** Options of `tls.connect` for every connection, such as `ca`; with `identityTag`. */
    connect?: TlsOptions & { timeout?: number; maxCachedSessions?: number };
    /** Maximum number of sockets per origin, including sockets that are connecting. Default 50. */
    connections?: number;
    /** Maximum number of sockets in all. Idle ones are closed when another origin needs a socket. Default 500. */
    maxTotalSockets?: number;
    /** Maximum idle time of a socket; a server's Keep-Alive header can shorten it. Default 4000 ms. */
    freeSocketTimeout?: Duration;
    /** Maximum age of a socket: it is closed when its current request is done (HTTP/1.1 only). Default: unlimited. */
    socketLifetime?: Duration;
    /** Whether to use HTTP/2 where the server supports it. Default false. */
    allowH2?: boolean;
    /** The undici module to use, for programs with several; by default that of `require('undici')`. */
    undici?: UndiciModule;
}

/** The part of undici that is used, from version 6 on. */
export type UndiciModule = Pick<typeof import('undici'), 'Agent' | 'buildConnector' | 'errors' | 'Pool'>;

/** An undici Agent with counters. */
export type TlsDispatcher = Agent & {
    readonly store: SessionStore;
    /** Returns the counters since the start, and the open sockets. */
    metrics(): DispatcherMetrics;
};

export interface DispatcherMetrics extends Metrics {
    readonly sockets: {
        readonly open: number;
        /** Connections that wait for a slot. */
        readonly waiting: number;
    };
}

/** For `setGlobalDispatcher(createDispatcher({ ... }))`, or `fetch(url, { dispatcher })`. */
export function createDispatcher(options: DispatcherOptions = {}): TlsDispatcher {
    const { store, policy, ticketReuse, connect = {}, undici = installedUndici(), ...rest } = options;
    const { connections, maxTotalSockets, freeSocketTimeout, socketLifetime, allowH2 = false, ...agentOptions } = rest;
    const settings = resolveSessionOptions({ store, policy, ticketReuse });
    const perOrigin = countOption('connections', connections, 50);
    const idle = milliseconds('freeSocketTimeout', freeSocketTimeout, 4000);
    const meter = new Meter();
    const connector = new Connector({
        undici,
        // As in undici: full handshakes only.
        sessions: { ...settings, meter, isOff: (connect.maxCachedSessions ?? agentOptions.maxCachedSessions) === 0 },
        profiles: new Profiles(settings.policy, 100),
        perOrigin,
        inAll: countOption('maxTotalSockets', maxTotalSockets, 500),
        lifetime: milliseconds('socketLifetime', socketLifetime, Infinity),
        allowH2,
        connect,
    });
    const agent = new undici.Agent({
        keepAliveTimeout: idle,
        // Servers may shorten it, not lengthen it.
        keepAliveMaxTimeout: idle,
        ...agentOptions,
        // undici's own bound is unreliable: it replaces a pool whose last socket has closed while requests wait there.
        connections: perOrigin === Infinity ? undefined : perOrigin,
        allowH2,
        connect: (target, callback) => connector.connect(target, callback),
        factory: (origin, poolOptions) => steady(new undici.Pool(origin, poolOptions)),
    });
    const ours = { store: settings.store, metrics: () => ({ ...meter.snapshot(), sockets: connector.sockets }) };
    const retry = retryClosed((origin) => countRetry(meter, origin, 'stale'));
    // Not with compose(), which hides the added members in undici 6.
    const dispatch = retry(agent.dispatch.bind(agent));
    return Object.assign(agent, ours, { dispatch }) as unknown as TlsDispatcher;
}

interface ConnectorSettings {
    readonly undici: UndiciModule;
    readonly sessions: Sessions;
    readonly profiles: Profiles;
    readonly perOrigin: number;
    readonly inAll: number;
    readonly lifetime: number;
    readonly allowH2: boolean;
    readonly connect: TlsOptions & { timeout?: number };
}

/** Opens undici's connections. */
class Connector {
    readonly #budget: SocketBudget;
    readonly #tracked = new Set<TrackedSocket>();
    readonly #plain: buildConnector.connector;

    constructor(private readonly settings: ConnectorSettings) {
        this.#budget = new SocketBudget(settings.perOrigin, settings.inAll, () => this.#closeIdle());
        this.#plain = settings.undici.buildConnector({ timeout: settings.connect.timeout });
    }

    get sockets(): DispatcherMetrics['sockets'] {
        return { open: this.#budget.open, waiting: this.#budget.waiting };
    }

    connect(target: buildConnector.Options, callback: buildConnector.Callback): void {
        if (target.protocol !== 'https:') return void this.#plain(target, callback);
        const origin = `${target.hostname}:${target.port || 443}`;
        this.#budget.apply(origin, () => this.#open(target, origin, false, callback));
    }

    #open(target: buildConnector.Options, origin: string, full: boolean, callback: buildConnector.Callback): void {
        let socket: tls.TLSSocket;
        let handshake: Handshake;
        try {
            ({ socket, handshake } = this.#start(target, full));
        } catch (error) {
            this.#budget.release(origin);
            return callback(error as Error, null);
        }
        const timeout = this.#limitTime(socket, target);
        socket.once('secureConnect', () => {
            clearTimeout(timeout);
            this.#follow(socket, origin);
            callback(null, socket);
        });
        socket.once('error', (error) => {
            clearTimeout(timeout);
            if (handshake.isDone) return;
            if (!handshake.mayBlameSession() || isTimeout(error)) {
                socket.once('close', () => this.#budget.release(origin));
                return callback(error, null);
            }
            countRetry(this.settings.sessions.meter, origin, 'full');
            // It keeps its slot, so the old socket must be closed.
            socket.once('close', () => this.#open(target, origin, true, callback));
        });
    }

    #start(target: buildConnector.Options, full: boolean) {
        const { connect, allowH2, profiles, sessions } = this.settings;
        const { timeout: _, ...tlsOptions } = connect;
        const port = Number(target.port || 443);
        const servername =
            target.servername ?? tlsOptions.servername ?? (isIP(target.hostname) === 0 ? target.hostname : '');
        const options: TlsOptions & { highWaterMark: number } = {
            highWaterMark: HIGH_WATER_MARK,
            ALPNProtocols: allowH2 ? ['http/1.1', 'h2'] : ['http/1.1'],
            ...tlsOptions,
            host: target.hostname,
            port,
            servername,
            ...(target.localAddress ? { localAddress: target.localAddress } : {}),
            ...(target.httpSocket ? { socket: target.httpSocket } : {}),
        };
        const profile = profiles.of(options);
        const isForeign = options.session !== undefined;
        const handshake = new Handshake(sessions, {
            host: target.hostname,
            port,
            servername,
            profile,
            full,
            isForeign,
        });
        const socket = handshake.connect(options);
        socket.setNoDelay(true);
        socket.setKeepAlive(true, 60_000);
        return { socket, handshake };
    }

    #limitTime(socket: tls.TLSSocket, { hostname, port }: buildConnector.Options): NodeJS.Timeout | undefined {
        const { timeout = 10_000 } = this.settings.connect;
        if (timeout === 0) return undefined;
        const { ConnectTimeoutError } = this.settings.undici.errors;
        const message = `no TLS connection to ${hostname}:${port || 443} within ${timeout} ms`;
        return setTimeout(() => socket.destroy(new ConnectTimeoutError(message)), timeout);
    }

    #follow(socket: tls.TLSSocket, origin: string): void {
        const { sessions, lifetime } = this.settings;
        const onRequest = ({ requests }: TrackedSocket) => requests > 1 && sessions.meter.reused(origin);
        const isTooOld = (tracked: TrackedSocket) => performance.now() - tracked.bornAt >= lifetime;
        const isUnwanted = (tracked: TrackedSocket) => isTooOld(tracked) || this.#budget.waiting > 0;
        const tracked = track(socket, onRequest, (idle) => {
            if (!isUnwanted(idle)) return;
            // Not inside undici's parser, but before the socket gets the next request.
            queueMicrotask(() => idle.active === 0 && (isTooOld(idle) ? socket.destroy() : this.#closeIdle()));
        });
        this.#tracked.add(tracked);
        socket.once('close', () => {
            this.#tracked.delete(tracked);
            this.#budget.release(origin);
        });
    }

    /** Closes the socket that has been idle for longest, unless one is being closed already. */
    #closeIdle(): void {
        if (this.#budget.open < this.settings.inAll) return;
        const idle = [...this.#tracked].filter(({ active, requests }) => active === 0 && requests > 0);
        if (idle.some(({ socket }) => socket.destroyed)) return;
        idle.sort((one, other) => one.idleSince - other.idleSince)[0]?.socket.destroy();
    }
}

/** The longest TLS record, as in undici's own connector. */
const HIGH_WATER_MARK = 16_384;

function countRetry(meter: Meter, origin: string, reason: 'stale' | 'full'): void {
    meter.retried(origin, reason === 'stale' ? 'staleRetries' : 'fullRetries');
    if (channels.retry.hasSubscribers) channels.retry.publish({ origin, reason });
}

function isTimeout(error: Error): boolean {
    return (error as NodeJS.ErrnoException).code === 'UND_ERR_CONNECT_TIMEOUT';
}

function installedUndici(): UndiciModule {
    try {
        return require('undici') as UndiciModule;
    } catch (error) {
        throw new QuadrilleError(
            'ERR_QUADRILLE_PEER_MISSING',
            'createDispatcher needs undici next to this package (Node does not expose its own copy): npm install undici',
            { cause: error },
        );
    }
}
