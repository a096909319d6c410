import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { MemorySessionStore, type QuadrilleError } from 'quadrille-agent';
import {
    createDispatcher,
    type DispatcherOptions,
    type TlsDispatcher,
    type UndiciModule,
} from 'quadrille-agent/undici';
import { Authority } from './support/certificates.js';
import { eventually, toLoopback } from './support/client.js';
import { type CountingServer, type Handler, serve } from './support/server.js';

const authority = new Authority('Test CA');
const certificate = authority.issue(['localhost']);
const { ca } = authority;

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const undici8 = major > 22 || (major === 22 && minor >= 19);
const versions: [name: string, load: (() => UndiciModule) | undefined][] = [
    ['undici 6', () => require('undici6') as UndiciModule],
    ['undici 7', () => require('undici') as UndiciModule],
    ['undici 8', undici8 ? () => require('undici8') as UndiciModule : undefined],
];

for (const [name, load] of versions) {
    describe(name, { skip: load ? false : `Node ${process.versions.node} is too old for it` }, () => {
        test('connections after the first resume', async (t) => {
            for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
                const { dispatcher, server } = await start(t, { connect: { ca, maxVersion: version } });
                for (let i = 0; i < 4; i++) assert.equal(await get(dispatcher, server, { reset: true }), '200 ok');
                assert.deepEqual([server.seen.full, server.seen.resumed], [1, 3]);
                const { full, resumed, reusedSockets } = dispatcher.metrics();
                assert.deepEqual([full, resumed, reusedSockets], [1, 3, 0]);
            }
        });

        test('sockets are reused, counted, and closed when free for too long', async (t) => {
            const { dispatcher, server } = await start(t, { connections: 1, freeSocketTimeout: 1500 });
            for (let i = 0; i < 4; i++) await get(dispatcher, server);
            assert.deepEqual([server.seen.full, dispatcher.metrics().reusedSockets], [1, 3]);
            await eventually(() => dispatcher.metrics().sockets.open === 0, 'the socket is closed');
        });

        test('a request on a socket that the peer has closed is sent again, POST is not', async (t) => {
            const served = new Map<Socket, number>();
            const { dispatcher, server } = await start(t, { connections: 1 }, (incoming, response) => {
                const count = (served.get(incoming.socket) ?? 0) + 1;
                served.set(incoming.socket, count);
                if (count > 1) incoming.socket.destroy();
                else response.end('ok');
            });
            for (let i = 0; i < 4; i++) assert.equal(await get(dispatcher, server), '200 ok');
            assert.equal(await get(dispatcher, server, { method: 'PUT', body: 'text' }), '200 ok');
            assert.equal(dispatcher.metrics().staleRetries, 4);
            await assert.rejects(get(dispatcher, server, { method: 'POST', body: 'pay' }), {
                code: /UND_ERR_SOCKET|ECONNRESET/,
            });
        });

        test('a request that kills every connection fails after the second', async (t) => {
            const { dispatcher, server } = await start(t, {}, (incoming) => incoming.socket.destroy());
            await assert.rejects(get(dispatcher, server), { code: /UND_ERR_SOCKET|ECONNRESET/ });
            assert.equal(server.seen.requests, 2);
        });

        test('connections holds under load, also when the server closes each one', async (t) => {
            for (const header of ['keep-alive', 'close']) {
                const { dispatcher, server } = await start(t, { connections: 3 }, async (_incoming, response) => {
                    await delay(1);
                    response.setHeader('Connection', header).end('ok');
                });
                const open = watchOpen(dispatcher);
                await Promise.all(Array.from({ length: 100 }, () => get(dispatcher, server)));
                assert.ok(open.most() <= 3, `${open.most()} open with ${header}`);
            }
        });

        test('maxTotalSockets holds over several origins, and idle sockets are closed', async (t) => {
            const servers = await Promise.all([1, 2, 3].map(() => serve(certificate)));
            const dispatcher = create(t, { maxTotalSockets: 2, freeSocketTimeout: '60s' });
            t.after(() => Promise.all(servers.map((server) => server.close())));
            const open = watchOpen(dispatcher);
            const started = Date.now();
            for (let round = 0; round < 3; round++) {
                await Promise.all(servers.flatMap((server) => [1, 2, 3, 4].map(() => get(dispatcher, server))));
            }
            assert.ok(open.most() <= 2, `${open.most()} open`);
            assert.ok(Date.now() - started < 20_000, 'it waited for freeSocketTimeout');
        });

        test('a socket older than socketLifetime is closed, though it is busy', async (t) => {
            const { dispatcher, server } = await start(t, { connections: 1, socketLifetime: 100 });
            const end = Date.now() + 450;
            while (Date.now() < end) assert.equal(await get(dispatcher, server), '200 ok');
            const { full, resumed } = server.seen;
            assert.ok(full + resumed >= 2 && full + resumed <= 6, `${full + resumed} connections in 450 ms`);
        });

        test('a handshake that fails with a session is made again in full', async (t) => {
            const store = new MemorySessionStore();
            const { dispatcher, server } = await start(t, { store, connect: { ca, maxVersion: 'TLSv1.2' } });
            await get(dispatcher, server, { reset: true });
            let toFail = 1;
            server.server.prependListener('connection', (socket) => void (toFail-- > 0 && socket.destroy()));
            assert.equal(await get(dispatcher, server, { reset: true, method: 'POST', body: 'pay once' }), '200 ok');
            const { fullRetries, failed } = dispatcher.metrics();
            assert.deepEqual([fullRetries, failed, server.seen.requests], [1, 1, 2]);
        });

        test('sessions keep to their names and options', async (t) => {
            const store = new MemorySessionStore();
            const { dispatcher, server } = await start(t, { store });
            await get(dispatcher, server, { reset: true });
            const wrong = get(dispatcher, server, { reset: true, headers: { host: 'evil.test' } });
            await assert.rejects(wrong, { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
            const strict = create(t, { store, connect: {} });
            await assert.rejects(get(strict, server), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' });
        });

        test('connection errors are reported', async (t) => {
            const server = await serve(certificate);
            await server.close();
            const dispatcher = create(t, {});
            await assert.rejects(get(dispatcher, server), { code: 'ECONNREFUSED' });
            await eventually(() => dispatcher.metrics().sockets.open === 0, 'its slot is free');
            const bad = create(t, { connect: { ciphers: 'NOTHING' } });
            await assert.rejects(get(bad, server), { code: 'ERR_SSL_NO_CIPHER_MATCH' });
            assert.equal(bad.metrics().sockets.open, 0);
        });

        test('a server that never finishes its handshake', async (t) => {
            const { createServer } = await import('node:net');
            const silent = createServer(() => {}).listen(0, '127.0.0.1');
            await new Promise((resolve) => silent.once('listening', resolve));
            t.after(() => silent.close());
            const dispatcher = create(t, { connect: { ca, timeout: 100 } });
            const server = { port: (silent.address() as { port: number }).port };
            await assert.rejects(get(dispatcher, server), { code: 'UND_ERR_CONNECT_TIMEOUT' });
        });

        test('the global fetch uses it', async (t) => {
            const { dispatcher, server } = await start(t, {});
            const undici = load?.() as typeof import('undici');
            const before = undici.getGlobalDispatcher();
            undici.setGlobalDispatcher(dispatcher);
            t.after(() => undici.setGlobalDispatcher(before));
            for (let i = 0; i < 3; i++) {
                const response = await fetch(`https://localhost:${server.port}/`, { headers: { connection: 'close' } });
                assert.equal(await response.text(), 'ok');
            }
            assert.deepEqual([dispatcher.metrics().full, dispatcher.metrics().resumed], [1, 2]);
        });
    });

    async function start(t: TestContext, options: DispatcherOptions, handler?: Handler) {
        const server = await serve(certificate, handler ? { handler } : {});
        const dispatcher = create(t, options);
        t.after(() => server.close());
        return { dispatcher, server };
    }

    function create(t: TestContext, { connect = { ca }, ...options }: DispatcherOptions): TlsDispatcher {
        const dispatcher = createDispatcher({
            ...(load ? { undici: load() } : {}),
            ...options,
            connect: { lookup: toLoopback, ...connect },
        });
        t.after(() => dispatcher.destroy());
        return dispatcher;
    }
}

test('invalid options are named', () => {
    assert.throws(() => createDispatcher({ connections: -1 }), {
        code: 'ERR_QUADRILLE_OPTION',
        message: /connections is -1/,
    });
    const Module = require('node:module') as { _load: (...args: unknown[]) => unknown };
    const load = Module._load;
    Module._load = (...args) => {
        if (args[0] === 'undici') throw new Error('Cannot find module');
        return load(...args);
    };
    try {
        assert.throws(
            () => createDispatcher(),
            (error: QuadrilleError) =>
                error.code === 'ERR_QUADRILLE_PEER_MISSING' && /npm install undici/.test(error.message),
        );
    } finally {
        Module._load = load;
    }
});

async function get(
    dispatcher: TlsDispatcher,
    server: Pick<CountingServer, 'port'>,
    options: object = {},
): Promise<string> {
    const origin = `https://localhost:${server.port}`;
    const response = await dispatcher.request({ origin, path: '/', method: 'GET', ...options });
    return `${response.statusCode} ${await response.body.text()}`;
}

/** Returns the maximum number of sockets reported by a dispatcher, polled often. */
function watchOpen(dispatcher: TlsDispatcher) {
    let most = 0;
    const look = () => (most = Math.max(most, dispatcher.metrics().sockets.open));
    const timer = setInterval(look, 1).unref();
    return { most: () => (clearInterval(timer), look()) };
}
