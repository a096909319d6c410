import type { ClientRequest, IncomingHttpHeaders } from 'node:http';
import type * as https from 'node:https';
import { isIP } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { identityOf } from './fingerprint.js';
import type { Target } from './handshake.js';
import type { Profile, TlsOptions } from './profile.js';

/** Key of a request's pool name, so that it is built once. */
export const NAME = Symbol('name');
/** Key of the profile of its options, built once. */
export const PROFILE = Symbol('profile');
/** Key of the flag to offer no session. */
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

/** Members of `http.Agent` that its types omit. Other agents override or call all of them too. */
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

/** Receiver of a request's socket, or of the error if none can be opened. */
export interface SocketReceiver {
    onSocket(socket: TLSSocket | null, error?: Error): void;
}

export function requestSocket(request: ClientRequest): SocketReceiver {
    return request as unknown as SocketReceiver;
}

/** Returns the last request that a socket has served. */
export function messageOf(socket: TLSSocket): { res?: { headers: IncomingHttpHeaders } } | undefined {
    return (socket as unknown as { _httpMessage?: { res?: { headers: IncomingHttpHeaders } } })._httpMessage;
}

/**
 * Returns the name for SNI, determined as in Node: the Host header's before the URL's, and never an address (RFC
 * 6066, section 3).
 */
export function servernameOf(options: { host?: string | undefined }, request: ClientRequest): string {
    const header = request.getHeader('host');
    const name = typeof header === 'string' ? nameOf(header) : (options.host ?? 'localhost');
    return isIP(name) === 0 ? name : '';
}

/** Returns the name of the pool that connections with these options share. */
export function poolName(options: PoolOptions, profile: Profile): string {
    const { host, port, localAddress, family, socketPath, servername } = options;
    // A caller's session is valid for that caller only.
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

/** Parses `name:port` or `[address]:port`. */
function nameOf(hostHeader: string): string {
    const bracketed = /^\[([^\]]*)\]/.exec(hostHeader);
    return bracketed?.[1] ?? hostHeader.split(':', 1)[0] ?? '';
}
