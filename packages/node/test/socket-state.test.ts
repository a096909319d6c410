/**
 * Compares everything that an application can observe of a connection's socket with that of Node's own agent: applications
 * check pins, names and protocols there.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import * as https from 'node:https';
import { test, type TestContext } from 'node:test';
import * as tls from 'node:tls';
import { FileSessionStore, MemorySessionStore, QuadrilleError, TlsAgent, type TlsAgentOptions } from 'quadrille-agent';
import { createDispatcher } from 'quadrille-agent/undici';
import * as undici from 'undici';
import { Authority, temporaryFolder } from './support/certificates.js';
import { eventually, request, type RequestOptions } from './support/client.js';
import { serve } from './support/server.js';

const authority = new Authority('Test CA');
const { ca } = authority;
const localhost = authority.issue(['localhost']);
const client = authority.issue(['client']);

interface Scenario {
    readonly name: string;
    readonly server?: https.ServerOptions;
    readonly agent?: TlsAgentOptions;
    readonly request?: RequestOptions & Pick<tls.ConnectionOptions, 'ALPNProtocols'>;
}

const scenarios: Scenario[] = [
    { name: 'TLS 1.3' },
    { name: 'TLS 1.2', server: { maxVersion: 'TLSv1.2' } },
    { name: 'kept-alive connections', agent: { keepAlive: true } },
    { name: 'a protocol by ALPN', server: { ALPNProtocols: ['http/1.1'] }, request: { ALPNProtocols: ['http/1.1'] } },
    { name: 'a server without ALPN', request: { ALPNProtocols: ['http/1.1'] } },
    { name: 'a client certificate', server: { requestCert: true, ca }, agent: { cert: client.cert, key: client.key } },
    { name: 'a wrong name, tolerated', request: { servername: 'wrong.test', rejectUnauthorized: false } },
    { name: 'an unknown authority, tolerated', agent: { ca: authority.issue(['x']).cert, rejectUnauthorized: false } },
    { name: 'a wrong name', request: { servername: 'wrong.test' } },
    { name: 'an address instead of a name', request: { host: '127.0.0.1', rejectUnauthorized: false } },
    { name: 'a stapled OCSP response', agent: { requestOCSP: true } as TlsAgentOptions },
    { name: 'a timeout', agent: { timeout: 60_000 } },
    { name: 'no common version', server: { maxVersion: 'TLSv1.2' }, request: { minVersion: 'TLSv1.3' } },
    { name: 'a key exchange by finite field', server: dheOnly(), request: { ciphers: 'DHE-RSA-AES128-GCM-SHA256' } },
];

for (const { name, server: serverOptions, agent: agentOptions, request: requestOptions = {} } of scenarios) {
    test(`the socket is as with https.Agent: ${name}`, async (t) => {
        const certificate = serverOptions?.dhparam ? authority.issue(['localhost'], { keyType: 'RSA' }) : localhost;
        const server = await serve(certificate, serverOptions);
        t.after(() => server.close());
        server.server.on('OCSPRequest', (_leaf, _issuer, respond: (error: null, response: Buffer) => void) =>
            respond(null, Buffer.from('stapled')),
        );
        // Without sessions, both make full handshakes. The defaults of bounds differ, and with them a header.
        const options = { ca, keepAlive: false, maxSockets: 50, maxCachedSessions: 0, ...agentOptions };
        const expected = await observe(new (recording(https.Agent))(options), server.port, requestOptions);
        const full = await observe(new (recording(TlsAgent))(options), server.port, requestOptions);
        assert.deepEqual(full, expected);
        const resuming = new (recording(TlsAgent))({ ...options, maxCachedSessions: 100 });
        assert.deepEqual((await observe(resuming, server.port, requestOptions))[0], expected[0]);
        const { events, states } = expected[0] ?? { events: [], states: {} };
        assert.ok(events.length > 5, `too few events to compare: ${events.join()}`);
        if (events.includes('secureConnect'))
            assert.match(JSON.stringify(states.response), /"fingerprint256":"[0-9A-F]/);
    });
}

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`${version}: a pin check passes on each connection, full, resumed and reused`, async (t) => {
        const server = await serve(localhost, { maxVersion: version, minVersion: version });
        t.after(() => server.close());
        const pin = new X509Certificate(localhost.cert).fingerprint256;
        const store = new MemorySessionStore();
        for (const keepAlive of [false, true]) {
            const agent = new (recording(TlsAgent))({ ca, store, keepAlive });
            t.after(() => agent.destroy());
            for (let i = 0; i < 3; i++) await request(server.port, { agent });
            for (const { states } of agent.recorded)
                for (const at of ['secureConnect', 'response', 'end'])
                    if (states[at]) assert.deepEqual(pinsOf(states[at]), [pin, pin], at);
        }
        assert.ok(server.seen.resumed >= 2, `${server.seen.resumed} connections were resumed`);
    });

    test(`${version}: the certificate of a resumed connection equals that of the full handshake`, async (t) => {
        const server = await serve(localhost, { maxVersion: version, minVersion: version });
        t.after(() => server.close());
        const agent = new TlsAgent({ ca, keepAlive: false });
        const certificates: unknown[] = [];
        const whole: (X509Certificate | undefined)[] = [];
        for (const resumed of [false, true, true]) {
            const socket = agent.createConnection({
                host: '127.0.0.1',
                port: server.port,
                servername: 'localhost',
                ca,
            });
            await once(socket, 'secureConnect');
            assert.equal(socket.isSessionReused(), resumed);
            certificates.push(socket.getPeerCertificate());
            whole.push(socket.getPeerX509Certificate());
            socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
            await once(socket, 'data');
            socket.destroy();
            assert.equal(socket.getPeerCertificate(), null);
        }
        assert.deepEqual(certificates[1], certificates[0]);
        assert.deepEqual(certificates[2], certificates[0]);
        assert.deepEqual(
            whole.map((certificate) => certificate?.raw),
            whole.map(() => new X509Certificate(localhost.cert).raw),
        );
    });

    test(`${version}: undici's connections have the certificate, full and resumed`, async (t) => {
        const server = await serve(localhost, { maxVersion: version, minVersion: version });
        t.after(() => server.close());
        const url = `https://localhost:${server.port}/`;
        const expected = await undiciStates(t, new undici.Agent({ connect: { ca }, maxCachedSessions: 0 }), url, 1);
        const dispatcher = createDispatcher({ connect: { ca } });
        const [full, resumed] = await undiciStates(t, dispatcher, url, 2);
        assert.deepEqual(full, expected[0]);
        assert.deepEqual([full?.['isSessionReused()'], resumed?.['isSessionReused()']], [false, true]);
        assert.deepEqual(resumed?.['getPeerCertificate()'], full?.['getPeerCertificate()']);
    });
}

test('the certificate is there on the first connection after a restart', async (t) => {
    const server = await serve(localhost);
    t.after(() => server.close());
    const dir = `${temporaryFolder()}/sessions`;
    const stored = () => new FileSessionStore({ dir, key: Buffer.alloc(32, 7) });
    try {
        stored();
    } catch (error) {
        if (error instanceof QuadrilleError && error.code === 'ERR_QUADRILLE_UNSAFE_NODE')
            return t.skip('this Node may not store sessions');
        throw error;
    }
    for (const resumed of [false, true]) {
        const store = stored();
        const agent = new (recording(TlsAgent))({ ca, store, keepAlive: false });
        assert.equal((await request(server.port, { agent })).resumed, resumed);
        const pin = new X509Certificate(localhost.cert).fingerprint256;
        assert.deepEqual(pinsOf(agent.recorded[0]?.states.secureConnect), [pin, pin]);
        await store.flush();
    }
});

test('maxCachedSessions: 0 turns resumption off, as in Node and undici', async (t) => {
    const server = await serve(localhost);
    t.after(() => server.close());
    const store = new MemorySessionStore();
    const agent = new TlsAgent({ ca, store, keepAlive: false, maxCachedSessions: 0 });
    for (let i = 0; i < 3; i++) assert.equal((await request(server.port, { agent })).resumed, false);
    assert.deepEqual([agent.metrics().bypassed, store.size], [3, 0]);
    const url = `https://localhost:${server.port}/`;
    for (const options of [{ maxCachedSessions: 0, connect: { ca } }, { connect: { ca, maxCachedSessions: 0 } }]) {
        const states = await undiciStates(t, createDispatcher({ ...options, store }), url, 2);
        assert.deepEqual(
            states.map((state) => state['isSessionReused()']),
            [false, false],
        );
    }
    assert.equal(store.size, 0);
});

test('an error without a listener is not hidden on a connection of the caller', async (t) => {
    const server = await serve(localhost, { maxVersion: 'TLSv1.2' });
    t.after(() => server.close());
    const options = { host: '127.0.0.1', port: server.port, servername: 'localhost', ca };
    for (const agent of [new https.Agent(), new TlsAgent()]) {
        const socket = (agent as TlsAgent).createConnection(options);
        assert.equal(socket.listenerCount('error'), 0);
        await once(socket, 'secureConnect');
        assert.throws(() => socket.emit('error', new Error('a defect')), { message: 'a defect' });
        socket.destroy();
    }
});

interface Recorded {
    /** Names of the socket's events, in their order. */
    readonly events: string[];
    /** State of the socket at an event of the socket, or of the request. */
    readonly states: Record<string, State>;
}

type State = Record<string, unknown>;
type Socket = tls.TLSSocket & Record<string | symbol, unknown>;
interface Recording {
    readonly recorded: (Recorded & { socket: Socket })[];
}

/** Returns a subclass of an agent that records what happens on its sockets. */
function recording(Agent: new (options: TlsAgentOptions) => https.Agent) {
    return class extends (Agent as new (options: TlsAgentOptions) => TlsAgent) implements Recording {
        readonly recorded: Recording['recorded'] = [];

        override createConnection(options: Parameters<TlsAgent['createConnection']>[0]): tls.TLSSocket {
            const socket = super.createConnection(options) as Socket;
            const events: string[] = [];
            const states: Record<string, State> = { created: stateOf(socket) };
            const emit = socket.emit.bind(socket) as (event: string, ...args: unknown[]) => boolean;
            Object.assign(socket, {
                emit: (event: string, ...args: unknown[]) => {
                    if (typeof event === 'string' && !ABOUT_LISTENERS.includes(event)) events.push(event);
                    return emit(event, ...args);
                },
            });
            for (const event of ['connect', 'secure', 'secureConnect', 'session', 'close', 'OCSPResponse'])
                socket.once(event, () => (states[event] = stateOf(socket)));
            this.recorded.push({ events, states, socket });
            return socket;
        }
    };
}

const ABOUT_LISTENERS = ['newListener', 'removeListener'];

/** Sends two requests, and returns what happened on the connections. */
async function observe(agent: Recording & https.Agent, port: number, options: RequestOptions): Promise<Recorded[]> {
    let keys = 0;
    agent.on('keylog', () => keys++);
    for (let i = 0; i < 2; i++) await observeRequest(agent, port, options);
    agent.destroy();
    const closed = () => agent.recorded.every(({ socket, states }) => socket.destroyed && states.close);
    await eventually(closed, 'the connections are closed');
    assert.ok(keys > 0 || agent.recorded.every(({ events }) => !events.includes('secureConnect')), 'keys are logged');
    return agent.recorded.map(({ events, states }) => ({ events, states }));
}

async function observeRequest(agent: Recording & https.Agent, port: number, options: RequestOptions): Promise<void> {
    const state = (at: string) => {
        const last = agent.recorded.at(-1);
        if (last) last.states[at] = stateOf(last.socket);
    };
    await new Promise<void>((resolve) => {
        const sent = https.get({ host: 'localhost', family: 4, port, agent, ...options }, (response) => {
            state('response');
            response.resume().on('end', () => state('end'));
        });
        sent.on('socket', () => state('socket'));
        sent.on('error', (error: NodeJS.ErrnoException) => {
            state('error');
            const last = agent.recorded.at(-1);
            if (last) last.states.failure = { code: error.code, message: error.message };
        });
        sent.on('close', resolve);
    });
}

/** Returns all that a socket reports by methods and properties, apart from what each connection has of its own. */
function stateOf(socket: Socket): State {
    const state: State = { 'listeners of error': socket.listeners('error').map(({ name }) => name) };
    for (let level: object | null = socket; level && level !== Object.prototype; level = Object.getPrototypeOf(level))
        for (const name of Object.getOwnPropertyNames(level)) {
            if (name.startsWith('_') || name in state || OWN_OF_CONNECTION.has(name)) continue;
            const value = Reflect.get(socket, name) as unknown;
            if (typeof value !== 'function') state[name] = brief(value);
            else if (/^(get|is|address)([A-Z]|$)/.test(name)) state[`${name}()`] = resultOf(socket, name);
            if (name === 'getPeerCertificate') state[`${name}(true)`] = brief(socket.getPeerCertificate(true));
        }
    return state;
}

function resultOf(socket: Socket, name: string): unknown {
    // Node 24 crashes during the handshake.
    if (name === 'getEphemeralKeyInfo' && socket.secureConnecting) return 'unknown';
    try {
        return brief((socket[name] as () => unknown)());
    } catch (error) {
        return `throws ${(error as NodeJS.ErrnoException).code}`;
    }
}

/** Shortens a value to what must be equal: of bytes that differ by connection, their presence. */
function brief(value: unknown, depth = 0): unknown {
    if (ArrayBuffer.isView(value)) return 'bytes';
    if (typeof value === 'function') return `function ${value.name}`;
    if (typeof value !== 'object' || value === null) return value;
    if (value instanceof Error) return `${value.name} ${value.message}`;
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== Array.prototype && prototype !== null)
        return value.constructor.name;
    // The certificate of a root is its own issuer.
    if (depth > 4) return '...';
    const entries = Object.entries(value).filter(([name]) => name !== 'port');
    return Object.fromEntries(entries.map(([name, item]) => [name, brief(item, depth + 1)]));
}

function pinsOf(state: State | undefined): unknown[] {
    return ['getPeerCertificate()', 'getPeerCertificate(true)'].map(
        (name) => (state?.[name] as { fingerprint256?: string } | undefined)?.fingerprint256,
    );
}

/** Sends requests on new connections, and returns the states of their sockets when they are connected. */
async function undiciStates(t: TestContext, dispatcher: undici.Dispatcher, url: string, count: number) {
    const states: State[] = [];
    const listener = (message: unknown) => states.push(stateOf((message as { socket: Socket }).socket));
    subscribe('undici:client:connected', listener);
    t.after(() => dispatcher.destroy());
    for (let i = 0; i < count; i++) {
        const { body } = await undici.request(url, { dispatcher, reset: true });
        await body.text();
    }
    unsubscribe('undici:client:connected', listener);
    assert.equal(states.length, count);
    return states;
}

/** Returns options of a server that has key exchange by finite field only. */
function dheOnly(): https.ServerOptions {
    return { maxVersion: 'TLSv1.2', ciphers: 'DHE-RSA-AES128-GCM-SHA256', dhparam: 'auto' as never };
}

/**
 * Names that are not compared: the port and the session belong to one connection, and the first call of
 * getPeerX509Certificate removes the certificate in Node.
 */
const OWN_OF_CONNECTION = new Set(['localPort', 'getPeerX509Certificate', 'getSession', 'getTLSTicket', 'ssl']);
