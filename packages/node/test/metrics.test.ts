import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { test } from 'node:test';
import { type HandshakeMessage, registerPrometheus, TlsAgent } from 'quadrille-agent';
import { createDispatcher } from 'quadrille-agent/undici';
import * as prometheus from 'prom-client';
import { Authority } from './support/certificates.js';
import { eventually, request, toLoopback } from './support/client.js';
import { serve } from './support/server.js';

const authority = new Authority('Test CA');
const { ca } = authority;

test('diagnostics channels report handshakes, failures and retries', async (t) => {
    const server = await serve(authority.issue(['localhost']));
    const messages: [string, unknown][] = [];
    for (const name of ['quadrille:handshake', 'quadrille:handshake:error', 'quadrille:retry']) {
        const listener = (message: unknown) => void messages.push([name, message]);
        subscribe(name, listener);
        t.after(() => unsubscribe(name, listener));
    }
    const agent = new TlsAgent({ ca, keepAlive: false });
    await request(server.port, { agent });
    await request(server.port, { agent });
    const outcomes = messages.map(([, message]) => (message as HandshakeMessage).outcome);
    assert.deepEqual(outcomes, ['ticketMiss', 'resumed']);
    const { milliseconds, ...handshake } = messages[1]?.[1] as HandshakeMessage;
    assert.ok(milliseconds > 0 && milliseconds < 5000);
    const origin = `localhost:${server.port}`;
    const cipher = 'TLS_AES_256_GCM_SHA384';
    assert.deepEqual(handshake, { origin, servername: 'localhost', outcome: 'resumed', protocol: 'TLSv1.3', cipher });
    await server.close();
    await assert.rejects(request(server.port, { agent }));
    await eventually(() => messages.length === 3, 'the failure is reported');
    const [name, message] = messages.at(-1) as [string, { error: Error; offeredSession: boolean }];
    assert.deepEqual([name, message.offeredSession], ['quadrille:handshake:error', true]);
    assert.match(message.error.message, /ECONNREFUSED/);
});

test('prom-client scrapes agents and dispatchers', async (t) => {
    const server = await serve(authority.issue(['localhost']));
    t.after(() => server.close());
    const agent = new TlsAgent({ ca, keepAlive: false });
    const dispatcher = createDispatcher({ connect: { ca, lookup: toLoopback } });
    const registries = [agent, dispatcher].map((source) => {
        const registry = new prometheus.Registry();
        registerPrometheus(prometheus, source, { name: 'outbound', registry, perOrigin: source === dispatcher });
        return registry;
    });
    for (let i = 0; i < 3; i++) await request(server.port, { agent });
    await (
        await dispatcher.request({ origin: `https://localhost:${server.port}`, path: '/', method: 'GET' })
    ).body.dump();
    await dispatcher.close();
    const [ofAgent = '', ofDispatcher = ''] = await Promise.all(registries.map((registry) => registry.metrics()));
    assert.match(ofAgent, /# TYPE quadrille_tls_handshakes_total counter/);
    assert.match(ofAgent, /quadrille_tls_handshakes_total\{agent="outbound",origin="",outcome="resumed"\} 2/);
    assert.match(ofAgent, /quadrille_tls_handshakes_total\{agent="outbound",origin="",outcome="ticketMiss"\} 1/);
    assert.match(ofAgent, /quadrille_tls_handshake_seconds\{agent="outbound",origin="",quantile="0.99"\} \d+\.\d+/);
    assert.match(
        ofDispatcher,
        new RegExp(`handshakes_total\\{agent="outbound",origin="localhost:${server.port}",outcome="ticketMiss"\\} 1`),
    );
    assert.equal(await registries[0]?.metrics(), ofAgent, 'a second scrape counts nothing twice');
});
