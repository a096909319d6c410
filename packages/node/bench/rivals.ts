import * as http from 'node:http';
import * as https from 'node:https';
import { HttpsAgent } from 'agentkeepalive';
import { FileSessionStore, MemorySessionStore, type SessionStore, TlsAgent } from 'quadrille-agent';
import { createDispatcher } from 'quadrille-agent/undici';
import { Agent } from 'undici';

export interface Setting {
    readonly ca: string;
    readonly version: 'TLSv1.2' | 'TLSv1.3';
    readonly keepAlive: boolean;
    /** Of a FileSessionStore, where a rival has one. */
    readonly dir?: string;
}

/** Sends one GET and reads the whole answer. */
export type Send = (port: number) => Promise<void>;

export interface Rival {
    readonly name: string;
    start(setting: Setting): Send;
}

export const rivals: Rival[] = [
    {
        name: 'https.Agent, no sessions',
        start: (setting) => byAgent(new https.Agent({ ...nodeOptions(setting), maxCachedSessions: 0 })),
    },
    {
        name: 'TlsAgent, no sessions',
        start: (setting) => byAgent(new TlsAgent({ ...nodeOptions(setting), store: new NoStore() })),
    },
    {
        name: 'http.Agent',
        start: ({ keepAlive }) => byAgent(new http.Agent({ keepAlive }), http),
    },
    { name: 'https.Agent', start: (setting) => byAgent(new https.Agent(nodeOptions(setting))) },
    { name: 'agentkeepalive', start: (setting) => byAgent(new HttpsAgent(nodeOptions(setting))) },
    {
        name: 'undici',
        start: (setting) => byUndici(new Agent({ connections: SOCKETS, connect: tlsOptions(setting) }), setting),
    },
    {
        name: 'TlsAgent',
        start: (setting) => byAgent(new TlsAgent({ ...nodeOptions(setting), policy: 'fast', store: storeOf(setting) })),
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

/** As many for all, so that none wins by having more. */
export const SOCKETS = 8;

function tlsOptions({ ca, version }: Setting) {
    return { ca, minVersion: version, maxVersion: version };
}

function nodeOptions(setting: Setting): https.AgentOptions {
    // With a bound, https.Agent hands sockets from request to request also when keep-alive is off.
    return { ...tlsOptions(setting), keepAlive: setting.keepAlive, maxSockets: setting.keepAlive ? SOCKETS : Infinity };
}

function storeOf({ dir }: Setting): SessionStore {
    return dir === undefined ? new MemorySessionStore() : new FileSessionStore({ dir, key: Buffer.alloc(32, 1) });
}

function byAgent(agent: http.Agent, { get }: Pick<typeof http, 'get'> = https): Send {
    return (port) =>
        new Promise((resolve, reject) => {
            const request = get({ host: 'localhost', family: 4, port, path: '/', agent }, (response) => {
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
