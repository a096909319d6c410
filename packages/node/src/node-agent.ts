import type { ClientRequest, IncomingHttpHeaders } from 'node:http';
import type * as https from 'node:https';
import { isIP } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { identityOf } from './fingerprint.js';
import type { Target } from './handshake.js';
import type { Profile, TlsOptions } from './profile.js';

/** The name of a request's pool, so that it is made once. */
export const NAME = Symbol('name');
/** The profile of its options, likewise. */
export const PROFILE = Symbol('profile');
/** Offer no session. */
export const FULL = Symbol('full');

/** Options of `https.request` and of the agent, as they go through Node's agent. */
export interface Options extends Omit<https.RequestOptions, keyof TlsOptions | 'agent'>, TlsOptions {
    host?: string;
    port?: number;
    socketPath?: string;
    [NAME]?: string;
    [PROFILE]?: Profile;
    [FULL]?: boolean;
}

/** What `http.Agent` has and its types do not tell. All of it is what other agents, too, override or call. */
export interface Pool {
    readonly options: Options;
    readonly keepAliveMsecs: number;
    readonly freeSockets: Record<string, TLSSocket[] | undefined>;
    readonly maxSockets: number;
    readonly maxTotalSockets: number;
    readonly totalSocketCount: number;
    addRequest(request: ClientRequest, options: Options): void;
    createSocket(
        request: ClientRequest,
        options: Options,
        callback: (error: Error | null, socket?: TLSSocket) => void,
    ): void;
    removeSocket(socket: TLSSocket, options: Options): void;
    reuseSocket(socket: TLSSocket, request: ClientRequest): void;
}

export function pool(agent: https.Agent): Pool {
    return agent as unknown as Pool;
}

/** How a request gets its socket, or learns that there is none. */
export interface SocketReceiver {
    onSocket(socket: TLSSocket | null, error?: Error): void;
}

export function requestSocket(request: ClientRequest): SocketReceiver {
    return request as unknown as SocketReceiver;
}

/** The request that a socket has served last. */
export function messageOf(socket: TLSSocket): { res?: { headers: IncomingHttpHeaders } } | undefined {
    return (socket as unknown as { _httpMessage?: { res?: { headers: IncomingHttpHeaders } } })._httpMessage;
}

/** The name for SNI as Node finds it: that of the Host header before that of the URL, and no address (RFC 6066, section 3). */
export function servernameOf(options: { host?: string | undefined }, request: ClientRequest): string {
    const header = request.getHeader('host');
    const name = typeof header === 'string' ? nameOf(header) : (options.host ?? 'localhost');
    return isIP(name) === 0 ? name : '';
}

/** Of the pool that connections with these options share. */
export function poolName(options: PoolOptions, profile: Profile): string {
    const { host, port, localAddress, family, socketPath, servername } = options;
    // What a session of the caller's proves, it proves to that caller.
    const session = options.session && identityOf(options.session);
    const place = [host ?? 'localhost', port, localAddress, family, socketPath, servername];
    return [...place, `#${profile.id}`, session].join(':');
}

type PoolOptions = {
    [Name in 'host' | 'port' | 'localAddress' | 'family' | 'socketPath' | 'servername' | 'session']?:
        Options[Name] | undefined;
};

export function targetOf(options: Options, profile: Profile): Target {
    return {
        host: options.socketPath ?? options.host ?? 'localhost',
        port: options.socketPath ? '' : (options.port ?? 443),
        servername: options.servername ?? '',
        profile,
        full: options[FULL] ?? false,
        isForeign: options.session !== undefined,
    };
}

/** `name:port` or `[address]:port`. */
function nameOf(hostHeader: string): string {
    const bracketed = /^\[([^\]]*)\]/.exec(hostHeader);
    return bracketed?.[1] ?? hostHeader.split(':', 1)[0] ?? '';
}
