import type * as https from 'node:https';
import { type Duration, milliseconds } from './duration.js';
import { choiceOption, countOption, QuadrilleError } from './errors.js';
import { MemorySessionStore } from './memory-store.js';
import { type Policy, type PolicyOptions, policyOptions } from './policy.js';
import type { IdentityOptions } from './profile.js';
import type { TicketReuse } from './session.js';
import type { SessionStore } from './store.js';

/** Options shared by agents and dispatchers. */
export interface SessionOptions {
    /** Session store. Default: a new MemorySessionStore. */
    store?: SessionStore;
    /** Parameters offered to servers. Default 'compatible'. */
    policy?: Policy;
    /**
     * Whether a TLS 1.3 ticket may be offered again when there is no fresh one. 'strict' never does, so that an
     * observer cannot link connections by it; but against servers that send no ticket on a resumed connection, such
     * as Node, every third connection is then a full handshake. Default 'prefer-fresh'.
     */
    ticketReuse?: TicketReuse;
}

/** Options of `https.Agent`, with other defaults where noted, and additional options. */
export interface TlsAgentOptions extends https.AgentOptions, SessionOptions, IdentityOptions {
    /** Default true. */
    keepAlive?: boolean;
    /** Maximum number of sockets per origin, including sockets that are connecting. Default 50. */
    maxSockets?: number;
    /** Maximum number of sockets in all. Idle ones are closed when another origin needs a socket. Default 500. */
    maxTotalSockets?: number;
    /** Maximum number of idle sockets per origin. Default: `maxSockets`. */
    maxFreeSockets?: number;
    /**
     * Maximum idle time of a socket; a server's Keep-Alive header can shorten it. Default 4000 ms, as Node's servers
     * close after 5000.
     */
    freeSocketTimeout?: Duration;
    /** Maximum age of a socket: it is closed when its current request is done. Default: unlimited. */
    socketLifetime?: Duration;
}

/** Options with all defaults filled in. */
export interface AgentSettings {
    readonly store: SessionStore;
    readonly policy: PolicyOptions;
    readonly ticketReuse: TicketReuse;
    /** Whether sessions are neither offered nor kept. */
    readonly isOff: boolean;
    readonly freeSocketTimeout: number;
    readonly socketLifetime: number;
    /** Options for Node's agent. */
    readonly nodeOptions: https.AgentOptions;
}

export function resolveSettings(options: TlsAgentOptions): AgentSettings {
    const { store, policy, ticketReuse, freeSocketTimeout, socketLifetime, ...node } = options;
    if ((node as { proxyEnv?: unknown }).proxyEnv !== undefined) {
        throw new QuadrilleError(
            'ERR_QUADRILLE_OPTION',
            'proxyEnv is not supported: use an https.Agent for requests through a proxy',
        );
    }
    const maxSockets = countOption('maxSockets', node.maxSockets, 50);
    return {
        ...resolveSessionOptions({ store, policy, ticketReuse }),
        // As in Node's agent: full handshakes only.
        isOff: node.maxCachedSessions === 0,
        freeSocketTimeout: milliseconds('freeSocketTimeout', freeSocketTimeout, 4000),
        socketLifetime: milliseconds('socketLifetime', socketLifetime, Infinity),
        nodeOptions: {
            ...node,
            keepAlive: node.keepAlive ?? true,
            maxSockets,
            maxTotalSockets: countOption('maxTotalSockets', node.maxTotalSockets, 500),
            maxFreeSockets: countOption('maxFreeSockets', node.maxFreeSockets, maxSockets),
            // Node's own cache keeps sessions of unverified servers.
            maxCachedSessions: 0,
        },
    };
}

export function resolveSessionOptions({ store, policy, ticketReuse }: SessionOptions) {
    return {
        store: store ?? new MemorySessionStore(),
        policy: policyOptions(policy),
        ticketReuse: choiceOption('ticketReuse', ticketReuse, ['prefer-fresh', 'strict'], 'prefer-fresh'),
    };
}
