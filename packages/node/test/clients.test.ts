/** Unmodified libraries with this package's agent. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { HttpRequest } from '@smithy/protocol-http';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import axios from 'axios';
import { TlsAgent } from 'quadrille-agent';
import { createDispatcher } from 'quadrille-agent/undici';
import { fetch as undiciFetch } from 'undici';
import { Authority } from './support/certificates.js';
import { toLoopback } from './support/client.js';
import { type CountingServer, serve } from './support/server.js';

const authority = new Authority('Test CA');
const { ca } = authority;

/** Sends a GET, or a POST with a body, and returns the response's text. */
type Send = (agent: TlsAgent, url: string, body?: string) => Promise<string>;

const clients: [name: string, send: Send][] = [
    [
        'axios',
        async (agent, url, body) => {
            const options = { httpsAgent: agent, responseType: 'text', timeout: 20_000 } as const;
            const answer = await (body === undefined
                ? axios.get<string>(url, options)
                : axios.post<string>(url, body, options));
            return answer.data;
        },
    ],
    [
        'got',
        async (agent, url, body) => {
            const { default: got } = await import('got');
            const options = {
                agent: { https: agent },
                retry: { limit: 0 },
                timeout: { request: 20_000, connect: 10_000, secureConnect: 10_000 },
            };
            return (body === undefined ? got(url, options) : got.post(url, { ...options, body })).text();
        },
    ],
    [
        'node-fetch',
        async (agent, url, body) => {
            const { default: fetch } = await import('node-fetch');
            const answer = await fetch(url, { agent, ...(body === undefined ? {} : { method: 'POST', body }) });
            return answer.text();
        },
    ],
    [
        "the AWS SDK's NodeHttpHandler",
        async (agent, url, body) => {
            const handler = new NodeHttpHandler({
                httpsAgent: agent,
                connectionTimeout: 10_000,
                requestTimeout: 20_000,
            });
            const { hostname, port, pathname: path } = new URL(url);
            const method = body === undefined ? 'GET' : 'POST';
            const headers = {
                host: `${hostname}:${port}`,
                ...(body === undefined ? {} : { 'content-length': String(body.length) }),
            };
            const request = new HttpRequest({
                protocol: 'https:',
                hostname,
                port: Number(port),
                path,
                method,
                headers,
                body,
            });
            const { response } = await handler.handle(request);
            const chunks: Buffer[] = [];
            for await (const chunk of response.body as AsyncIterable<Buffer>) chunks.push(chunk);
            return Buffer.concat(chunks).toString();
        },
    ],
];

let server: CountingServer;
let url: string;
/** Closes every connection after its first request, without announcing it. */
let treacherous: CountingServer;

before(async () => {
    const certificate = authority.issue(['localhost']);
    const handler = (incoming: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('end', () => response.end(`${incoming.method} ${Buffer.concat(chunks).toString()}`));
    };
    server = await serve(certificate, { handler });
    const served = new WeakSet<object>();
    treacherous = await serve(certificate, {
        handler: (incoming, response) => {
            if (served.has(incoming.socket)) incoming.socket.destroy();
            else handler(incoming, response);
            served.add(incoming.socket);
        },
    });
    url = `https://localhost:${server.port}/`;
});

after(() => Promise.all([server.close(), treacherous.close()]));

for (const [name, send] of clients) {
    describe(name, () => {
        for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
            test(`${version}: resumes, with bodies both ways`, async () => {
                const agent = new TlsAgent({ ca, keepAlive: false, maxVersion: version, lookup: toLoopback } as never);
                assert.equal(await send(agent, url), 'GET ');
                assert.equal(await send(agent, url, 'hello'), 'POST hello');
                assert.equal(await send(agent, url), 'GET ');
                const { full, resumed } = agent.metrics();
                assert.deepEqual([full, resumed], [1, 2]);
            });
        }

        test('reuses sockets, within the bound under load', async () => {
            const agent = new TlsAgent({ ca, maxSockets: 3, lookup: toLoopback } as never);
            const answers = await Promise.all(Array.from({ length: 30 }, (_, i) => send(agent, url, `body ${i}`)));
            assert.deepEqual(
                answers,
                Array.from({ length: 30 }, (_, i) => `POST body ${i}`),
            );
            const { full, resumed, reusedSockets, sockets } = agent.metrics();
            assert.ok(full + resumed <= 3, `${full + resumed} connections`);
            assert.ok(reusedSockets + full + resumed <= 30 && sockets.waiting === 0);
            agent.destroy();
        });

        test('hides that a reused socket was dead', async () => {
            const agent = new TlsAgent({ ca, lookup: toLoopback } as never);
            for (let i = 0; i < 4; i++)
                assert.equal(await send(agent, `https://localhost:${treacherous.port}/`), 'GET ');
            assert.ok(agent.metrics().staleRetries >= 2, JSON.stringify(agent.metrics().staleRetries));
            agent.destroy();
        });

        test('reports certificate errors unchanged', async () => {
            const agent = new TlsAgent({ lookup: toLoopback } as never);
            const error = (await send(agent, url).then(
                () => assert.fail('it trusts an unknown certificate'),
                (thrown: unknown) => thrown,
            )) as { code?: string; cause?: { code?: string } };
            assert.equal(error.code ?? error.cause?.code, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE');
        });
    });
}

test('undici fetch', async () => {
    const dispatcher = createDispatcher({ connect: { ca, lookup: toLoopback }, connections: 1 });
    for (let i = 0; i < 4; i++) {
        const answer = await undiciFetch(`https://localhost:${treacherous.port}/`, { dispatcher });
        assert.equal(await answer.text(), 'GET ');
    }
    const posted = await undiciFetch(url, { dispatcher, method: 'POST', body: 'hello' });
    assert.equal(await posted.text(), 'POST hello');
    const { full, resumed, staleRetries } = dispatcher.metrics();
    assert.deepEqual([full, resumed, staleRetries], [2, 3, 3]);
    await dispatcher.close();
});
