import * as http from 'node:http';
import * as https from 'node:https';
import * as tls from 'node:tls';
import { HttpsAgent } from 'agentkeepalive';
import { FileSessionStore, MemorySessionStore, type SessionStore, TlsAgent } from 'quadrille-agent';
import { createDispatcher } from 'quadrille-agent/undici';
import { Agent } from 'undici';

export interface Setting {
    readonly ca: string;
    readonly version: 'TLSv1.2' | 'TLSv1.3';
    readonly keepAlive: boolean;
    /** Host of the server. Default localhost. */
    readonly host?: string;
    /** Directory of a FileSessionStore, where a rival has one. */
    readonly dir?: string;
}

/** Sends one GET and reads the whole response. */
export type Send = (port: number) => Promise<void>;

export interface Rival {
    readonly name: string;
    start(setting: Setting): Send;
}

/** Name of the synthetic agent with the minimum cost for an agent built on Node's. */
export const LEAST = 'least https.Agent';

export const rivals: Rival[] = [
    {
        name: 'https.Agent, no sessions',
        start: (setting) => byAgent(new https.Agent({ ...nodeOptions(setting), maxCachedSessions: 0 }), setting),
    },
    {
        name: 'TlsAgent, no sessions',
        start: (setting) => byAgent(new TlsAgent({ ...nodeOptions(setting), store: new NoStore() }), setting),
    },
    {
        name: 'http.Agent',
        start: (setting) => byAgent(new http.Agent({ keepAlive: setting.keepAlive }), setting, http),
    },
    { name: LEAST, start: (setting) => byAgent(new LeastAgent(setting), setting) },
    { name: 'https.Agent', start: (setting) => byAgent(new https.Agent(nodeOptions(setting)), setting) },
    { name: 'agentkeepalive', start: (setting) => byAgent(new HttpsAgent(nodeOptions(setting)), setting) },
    {
        name: 'undici',
        start: (setting) => byUndici(new Agent({ connections: SOCKETS, connect: tlsOptions(setting) }), setting),
    },
    {
        name: 'TlsAgent',
        start: (setting) =>
            byAgent(new TlsAgent({ ...nodeOptions(setting), policy: 'fast', store: storeOf(setting) }), setting),
    },
    {
        name: 'createDispatcher',
        start: (setting) =>
            byUndici(
                createDispatcher({
                    connections: SOCKETS,
                    connect: tlsOptions(setting),
                    policy: 'fast',
                    store: storeOf(setting),
                }),
                setting,
            ),
    },
];

/** An `https.Agent` with the minimum needed to resume connections; does not check that resumption is safe. */
class LeastAgent extends https.Agent {
    readonly #context: tls.SecureContext;
    #session: Buffer | undefined;

    constructor(setting: Setting) {
        super({ ...nodeOptions(setting), maxCachedSessions: 0 });
        this.#context = tls.createSecureContext(tlsOptions(setting));
    }

    override createConnection({ host, port }: https.RequestOptions & { port: number }): tls.TLSSocket {
        const target = { host: host ?? undefined, port, family: 4, servername: host === 'localhost' ? host : '' };
        const socket = tls.connect({ ...target, secureContext: this.#context } as tls.ConnectionOptions);
        // See TlsAgent for the reason.
        if (this.#session) (socket as unknown as { setSession(session: Buffer): void }).setSession(this.#session);
        socket.on('session', (session: Buffer) => (this.#session = session));
        return socket;
    }
}

/** Number of sockets, equal for all, so that no rival benefits from more. */
export const SOCKETS = 8;

function tlsOptions({ ca, version }: Setting) {
    return { ca, minVersion: version, maxVersion: version };
}

function nodeOptions(setting: Setting): https.AgentOptions {
    // With a bound, https.Agent passes sockets from request to request even when keep-alive is off.
    return { ...tlsOptions(setting), keepAlive: setting.keepAlive, maxSockets: setting.keepAlive ? SOCKETS : Infinity };
}

function storeOf({ dir }: Setting): SessionStore {
    return dir === undefined ? new MemorySessionStore() : new FileSessionStore({ dir, key: Buffer.alloc(32, 1) });
}

function byAgent(agent: http.Agent, { host = 'localhost' }: Setting, { get }: Pick<typeof http, 'get'> = https): Send {
    return (port) =>
        new Promise((resolve, reject) => {
            const request = get({ host, family: 4, port, path: '/', agent }, (response) => {
                response.on('data', () => {});
                response.on('end', resolve);
            });
            request.on('error', reject);
        });
}

function byUndici(agent: Agent, { keepAlive }: Setting): Send {
    return async (port) => {
        const options = { origin: `https://localhost:${port}`, path: '/', method: 'GET', reset: !keepAlive } as const;
        const { body } = await agent.request(options);
        await body.dump();
    };
}

class NoStore implements SessionStore {
    take(): undefined {}
    put(): void {}
    drop(): void {}
}
