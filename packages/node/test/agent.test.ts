import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import * as https from 'node:https';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { QuadrilleError, TlsAgent, type TlsAgentOptions } from 'quadrille-agent';
import { Authority } from './support/certificates.js';
import { eventually, request, type RequestOptions, toLoopback } from './support/client.js';
import { type CountingServer, serve } from './support/server.js';

const authority = new Authority('Test CA');
const certificate = authority.issue(['localhost']);
const { ca } = authority;

describe('sessions', () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
        test(`${version}: connections after the first resume`, async (t) => {
            const server = await serve(certificate);
            t.after(() => server.close());
            const agent = new TlsAgent({ ca, keepAlive: false, minVersion: version, maxVersion: version });
            for (let i = 0; i < 6; i++) {
                const answer = await request(server.port, { agent });
                assert.equal(answer.protocol, version);
                assert.equal(answer.resumed, i > 0, `connection ${i}`);
                assert.equal(answer.authorized, true);
            }
            assert.deepEqual([server.seen.full, server.seen.resumed], [1, 5]);
            const metrics = agent.metrics();
            assert.deepEqual([metrics.full, metrics.resumed, metrics.ticketMiss, metrics.failed], [1, 5, 1, 0]);
            assert.deepEqual(Object.keys(metrics.origins), [`localhost:${server.port}`]);
        });
    }

    test('strict offers a TLS 1.3 ticket once: of three connections to a Node server, two resume', async (t) => {
        const server = await serve(certificate, { minVersion: 'TLSv1.3' });
        t.after(() => server.close());
        const agent = new TlsAgent({ ca, keepAlive: false, ticketReuse: 'strict' });
        for (let i = 0; i < 9; i++) await request(server.port, { agent });
        assert.deepEqual([server.seen.full, server.seen.resumed], [3, 6]);
    });

    test('strict does not spend a TLS 1.2 session', async (t) => {
        const server = await serve(certificate, { maxVersion: 'TLSv1.2' });
        t.after(() => server.close());
        const agent = new TlsAgent({ ca, keepAlive: false, ticketReuse: 'strict' });
        for (let i = 0; i < 5; i++) await request(server.port, { agent });
        assert.deepEqual([server.seen.full, server.seen.resumed], [1, 4]);
    });

    test('a session that the server declines is not offered again', async (t) => {
        const first = await serve(certificate, { maxVersion: 'TLSv1.2' });
        const agent = new TlsAgent({ ca, keepAlive: false });
        await request(first.port, { agent });
        await first.close();
        // The same port with other ticket keys.
        const second = await serve(certificate, { maxVersion: 'TLSv1.2', port: first.port });
        t.after(() => second.close());
        assert.equal((await request(second.port, { agent })).resumed, false);
        assert.equal((await request(second.port, { agent })).resumed, true);
        const { declined, ticketMiss } = agent.metrics();
        assert.deepEqual([declined, ticketMiss], [1, 1]);
    });

    test('a server that is down costs no session', async (t) => {
        const first = await serve(certificate, { ticketKeys: Buffer.alloc(48, 7) });
        const agent = new TlsAgent({ ca, keepAlive: false, ticketReuse: 'strict' });
        await request(first.port, { agent });
        await first.close();
        for (let i = 0; i < 4; i++) await assert.rejects(request(first.port, { agent }), { code: 'ECONNREFUSED' });
        const second = await serve(certificate, { ticketKeys: Buffer.alloc(48, 7), port: first.port });
        t.after(() => second.close());
        assert.equal((await request(second.port, { agent })).resumed, true);
        assert.equal(agent.metrics().failed, 4);
    });

    test('a session that the caller brings is offered, and ours is not touched', async (t) => {
        const server = await serve(certificate, { maxVersion: 'TLSv1.2' });
        t.after(() => server.close());
        const agent = new TlsAgent({ ca, keepAlive: false });
        const other = new TlsAgent({ ca, keepAlive: false });
        const socket = other.createConnection({ host: '127.0.0.1', port: server.port, servername: 'localhost', ca });
        const [session] = (await once(socket, 'session')) as [Buffer];
        socket.destroy();
        const options = { agent, session } as RequestOptions;
        assert.equal((await request(server.port, options)).resumed, true);
    });
});

describe('one SecureContext for equal options', () => {
    test('is shared, and not with other options', async (t) => {
        const server = await serve(certificate);
        t.after(() => server.close());
        const tls = require('node:tls') as typeof import('node:tls');
        const create = t.mock.method(tls, 'createSecureContext');
        const made = () => create.mock.callCount();
        const before = made();
        const agent = new TlsAgent({ keepAlive: false });
        for (let i = 0; i < 3; i++) await request(server.port, { agent, ca });
        assert.equal(made() - before, 1, 'equal text');
        for (let i = 0; i < 3; i++) await request(server.port, { agent, ca: Buffer.from(ca) });
        assert.equal(made() - before, 1, 'the same as bytes');
        await request(server.port, { agent, ca, ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' });
        assert.equal(made() - before, 2, 'other ciphers');
    });
});

describe('keep-alive', () => {
    test('requests one after the other share a socket', async (t) => {
        const { agent, server } = await start(t, {});
        for (let i = 0; i < 5; i++) assert.equal((await request(server.port, { agent })).reusedSocket, i > 0);
        assert.equal(server.seen.full, 1);
        assert.equal(agent.metrics().reusedSockets, 4);
        assert.deepEqual(agent.metrics().sockets, { active: 0, free: 1, waiting: 0 });
    });

    test('a free socket is closed after freeSocketTimeout', async (t) => {
        const { agent, server } = await start(t, { freeSocketTimeout: 60 });
        await request(server.port, { agent });
        assert.equal(agent.metrics().sockets.free, 1);
        await eventually(() => agent.metrics().sockets.free === 0 && server.seen.open === 0, 'the socket is closed');
    });

    test('freeSocketTimeout does not end a slow response', async (t) => {
        const { agent, server } = await start(t, { freeSocketTimeout: 60 }, async (response) => {
            await delay(250);
            response.end('slow');
        });
        await request(server.port, { agent });
        const answer = await request(server.port, { agent });
        assert.deepEqual([answer.body, answer.reusedSocket], ['slow', true]);
    });

    test("a server's Keep-Alive header shortens it, parameters in any order", async (t) => {
        const { agent, server } = await start(t, {}, (response) =>
            response.setHeader('Keep-Alive', 'max=100, timeout=1').end(),
        );
        await request(server.port, { agent });
        // One second less the margin of one second: it must not be kept at all.
        await eventually(() => agent.metrics().sockets.free === 0, 'the socket is closed');
    });

    test('a server that accepts no more requests gets none', async (t) => {
        const { agent, server } = await start(t, {}, (response) =>
            response.setHeader('Keep-Alive', 'timeout=100, max=0').end(),
        );
        await request(server.port, { agent });
        assert.equal((await request(server.port, { agent })).reusedSocket, false);
    });

    test('a socket older than socketLifetime is closed, though it is busy', async (t) => {
        const { agent, server } = await start(t, { socketLifetime: 150 });
        const end = Date.now() + 600;
        while (Date.now() < end) await request(server.port, { agent });
        const { full, resumed } = server.seen;
        assert.ok(full + resumed >= 2 && full + resumed <= 6, `${full + resumed} connections in 600 ms`);
    });
});

describe('requests on sockets that the peer has closed', () => {
    /** A server that closes each connection after one response, without announcing it. */
    async function startTreacherous(t: { after(f: () => unknown): void }, options: TlsAgentOptions = {}) {
        const bodies: string[] = [];
        const sockets = new Map<Socket, number>();
        const server = await serve(certificate, {
            keepAliveTimeout: 0,
            handler: (incoming, response) => {
                const served = (sockets.get(incoming.socket) ?? 0) + 1;
                sockets.set(incoming.socket, served);
                if (served > 1) return void incoming.socket.destroy();
                const chunks: Buffer[] = [];
                incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
                incoming.on('end', () => {
                    bodies.push(Buffer.concat(chunks).toString());
                    response.end(`${incoming.method} ${bodies.at(-1)}`);
                });
            },
        });
        const agent = new TlsAgent({ ca, ...options });
        t.after(() => {
            agent.destroy();
            return server.close();
        });
        return { agent, server, bodies };
    }

    for (const method of ['GET', 'PUT', 'DELETE']) {
        test(`${method} is sent once more on a new socket`, async (t) => {
            const { agent, server } = await startTreacherous(t);
            await request(server.port, { agent });
            const body = method === 'PUT' ? 'x'.repeat(20_000) : '';
            const answer = await request(server.port, { agent, method, body });
            assert.equal(answer.body, `${method} ${body}`);
            assert.equal(agent.metrics().staleRetries, 1);
        });
    }

    test('POST is not, and fails as with https.Agent', async (t) => {
        const { agent, server } = await startTreacherous(t);
        await request(server.port, { agent });
        await assert.rejects(request(server.port, { agent, method: 'POST', body: 'pay' }), { code: 'ECONNRESET' });
        assert.equal(agent.metrics().staleRetries, 0);
    });

    test('a body that was too long to keep is not', async (t) => {
        const { agent, server } = await startTreacherous(t);
        await request(server.port, { agent });
        await assert.rejects(request(server.port, { agent, method: 'PUT', body: Buffer.alloc(100_000) }));
    });

    test('the new socket gets no retry: a failure there is final', async (t) => {
        const server = await serve(certificate, {
            handler: (incoming, response) => (incoming.url === '/die' ? incoming.socket.destroy() : response.end()),
        });
        const agent = new TlsAgent({ ca });
        t.after(() => {
            agent.destroy();
            return server.close();
        });
        await request(server.port, { agent });
        await assert.rejects(request(server.port, { agent, path: '/die' }), { code: 'ECONNRESET' });
        assert.equal(agent.metrics().staleRetries, 1);
        assert.equal(server.seen.requests, 3);
    });

    test('within the bounds, while others wait', async (t) => {
        const { agent, server } = await startTreacherous(t, { maxSockets: 2 });
        const open = watchOpen(agent);
        const answers = await Promise.all(Array.from({ length: 40 }, () => request(server.port, { agent })));
        assert.ok(answers.every(({ status }) => status === 200));
        assert.equal(open(), 2);
    });

    test('timeouts, finish and headers work on the second socket', async (t) => {
        let first = true;
        const server = await serve(certificate, {
            handler: (incoming, response) => {
                if (incoming.url === '/warm') return void response.end();
                if (first) incoming.socket.destroy();
                first = false;
            },
        });
        const agent = new TlsAgent({ ca });
        t.after(() => {
            agent.destroy();
            return server.close();
        });
        await request(server.port, { agent, path: '/warm' });
        const sent = https.get({
            host: 'localhost',
            family: 4,
            port: server.port,
            lookup: toLoopback,
            agent,
            path: '/hang',
        });
        // Like axios: after the request was created.
        sent.setTimeout(1500);
        await once(sent, 'timeout');
        assert.equal(server.seen.requests, 3);
        assert.ok(sent.writableFinished);
        sent.destroy();
        await once(sent, 'close').catch(() => {});
    });
});

describe('bounds', () => {
    test('maxSockets holds under load, connections under way included', async (t) => {
        const { agent, server } = await start(t, { maxSockets: 3 }, async (response) => {
            await delay(2);
            response.end('ok');
        });
        await load(agent, [server], 200);
        assert.equal(server.seen.mostOpen, 3);
    });

    test('maxSockets holds with keepAlive off', async (t) => {
        const { agent, server } = await start(t, { maxSockets: 3, keepAlive: false });
        const open = watchOpen(agent);
        await load(agent, [server], 60);
        assert.equal(open(), 3);
    });

    test('maxTotalSockets holds over several origins, where that of https.Agent does not', async () => {
        const most = async (agent: https.Agent, limit: number) => {
            const servers = await Promise.all(Array.from({ length: limit + 1 }, () => serve(certificate)));
            const open = watchOpen(agent);
            for (let round = 0; round < 5; round++) await load(agent, servers, 10 * servers.length);
            agent.destroy();
            await Promise.all(servers.map((server) => server.close()));
            return open();
        };
        assert.equal(await most(new TlsAgent({ ca, maxTotalSockets: 3 }), 3), 3);
        const stock = await most(new https.Agent({ ca, keepAlive: true, maxTotalSockets: 3, maxSockets: 10 }), 3);
        assert.ok(stock > 3, `https.Agent had ${stock}: this test cannot fail`);
    });

    test('idle sockets of one origin are closed in favour of another', async (t) => {
        const servers = await Promise.all([serve(certificate), serve(certificate)]);
        const agent = new TlsAgent({ ca, maxTotalSockets: 2, freeSocketTimeout: '60s' });
        t.after(async () => {
            agent.destroy();
            await Promise.all(servers.map((server) => server.close()));
        });
        const [one, two] = servers as [CountingServer, CountingServer];
        await Promise.all([request(one.port, { agent }), request(one.port, { agent })]);
        assert.equal(agent.metrics().sockets.free, 2);
        const started = Date.now();
        await request(two.port, { agent });
        assert.ok(Date.now() - started < 20_000, 'it waited for freeSocketTimeout');
    });

    test('an aborted request leaves the queue at once', async (t) => {
        const { agent, server } = await start(t, { maxSockets: 1 }, async (response) => {
            await delay(300);
            response.end();
        });
        let isDone = false;
        const busy = request(server.port, { agent }).finally(() => (isDone = true));
        const abort = new AbortController();
        const waiting = request(server.port, { agent, signal: abort.signal });
        assert.equal(agent.metrics().sockets.waiting, 1);
        abort.abort();
        await assert.rejects(waiting, { name: 'AbortError' });
        assert.equal(isDone, false);
        assert.equal(agent.metrics().sockets.waiting, 0);
        await busy;
        assert.equal(server.seen.requests, 1);
    });

    test('requests that wait for a stopped server all fail', async () => {
        const server = await serve(certificate);
        await server.close();
        const agent = new TlsAgent({ ca, maxSockets: 2 });
        const all = await Promise.allSettled(Array.from({ length: 20 }, () => request(server.port, { agent })));
        assert.ok(all.every((result) => result.status === 'rejected'));
        await eventually(() => agent.metrics().sockets.active === 0, 'no socket is left');
        assert.equal(agent.metrics().sockets.waiting, 0);
    });

    test('options that TLS rejects fail the request, also one that waited', async (t) => {
        const { agent, server } = await start(t, { maxTotalSockets: 1 });
        const busy = request(server.port, { agent });
        await assert.rejects(request(server.port, { agent, ciphers: 'NOTHING' }), { code: 'ERR_SSL_NO_CIPHER_MATCH' });
        await busy;
    });
});

describe('guarantees of Node for its agent', () => {
    test('a request that waited gets its response in its own asynchronous context', async (t) => {
        const { agent, server } = await start(t, { maxSockets: 1 });
        const context = new AsyncLocalStorage<number>();
        const seen = await Promise.all(
            [1, 2, 3, 4].map((id) =>
                context.run(id, async () => {
                    const options = { host: 'localhost', family: 4, port: server.port, agent };
                    const sent = https.get(options);
                    return new Promise((resolve) => {
                        sent.once('response', (response) => {
                            response.resume();
                            resolve(context.getStore());
                        });
                    });
                }),
            ),
        );
        assert.deepEqual(seen, [1, 2, 3, 4]);
    });

    test('an upgraded socket leaves the agent, and frees its slot', async (t) => {
        const { agent, server } = await start(t, { maxSockets: 1 });
        server.server.on('upgrade', (_request, socket: Socket) => {
            socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
            socket.pipe(socket);
        });
        const headers = { Connection: 'Upgrade', Upgrade: 'echo' };
        const sent = https.get({ host: 'localhost', family: 4, port: server.port, agent, headers });
        const waiting = request(server.port, { agent });
        const [, socket] = (await once(sent, 'upgrade')) as [unknown, Socket];
        assert.equal((await waiting).status, 200);
        socket.write('hello');
        assert.equal(String((await once(socket, 'data'))[0]), 'hello');
        socket.destroy();
    });

    test('destroy() closes every socket', async (t) => {
        const { agent, server } = await start(t, {});
        await Promise.all([1, 2, 3].map(() => request(server.port, { agent })));
        agent.destroy();
        await eventually(() => server.seen.open === 0, 'all are closed');
        const { active, free } = agent.metrics().sockets;
        assert.deepEqual([active, free], [0, 0]);
    });
});

describe('options', () => {
    test('invalid options are named', () => {
        const mistakes: [TlsAgentOptions, RegExp][] = [
            [{ policy: 'quick' as never }, /policy is 'quick': give one of 'compatible', 'fast', 'modern'/],
            [{ ticketReuse: 'never' as never }, /ticketReuse is 'never'/],
            [{ maxSockets: 0 }, /maxSockets is 0: give a whole number of at least 1/],
            [{ maxTotalSockets: 1.5 }, /maxTotalSockets is 1.5/],
            [{ freeSocketTimeout: '4 sec' as never }, /freeSocketTimeout is '4 sec': give milliseconds .* '30s'/],
            [{ proxyEnv: {} } as never, /proxyEnv is not supported/],
        ];
        for (const [options, message] of mistakes) {
            assert.throws(
                () => new TlsAgent(options),
                (error) => error instanceof QuadrilleError && message.test(error.message),
            );
        }
    });
});

async function start(
    t: { after(f: () => unknown): void },
    options: TlsAgentOptions,
    respond: (response: import('node:http').ServerResponse) => unknown = (response) => response.end('ok'),
) {
    const server = await serve(certificate, { handler: (_incoming, response) => void respond(response) });
    const agent = new TlsAgent({ ca, ...options });
    t.after(() => {
        agent.destroy();
        return server.close();
    });
    return { agent, server };
}

/** Sends `count` requests over all servers, most of them concurrently. */
async function load(agent: https.Agent, servers: CountingServer[], count: number): Promise<void> {
    const one = (i: number) => request((servers[i % servers.length] as CountingServer).port, { agent });
    const answers = await Promise.all(Array.from({ length: count }, (_, i) => one(i)));
    assert.ok(answers.every(({ status }) => status === 200));
}

/** Returns the maximum number of concurrent sockets of an agent. */
function watchOpen(agent: https.Agent): () => number {
    let [open, most] = [0, 0];
    const create = agent.createConnection.bind(agent) as (...args: unknown[]) => Socket;
    agent.createConnection = ((...args: unknown[]) => {
        const socket = create(...args);
        most = Math.max(most, ++open);
        socket.once('close', () => open--);
        return socket;
    }) as never;
    return () => most;
}
