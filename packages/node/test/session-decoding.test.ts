import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { TlsAgent } from 'quadrille-agent';
import { Authority } from './support/certificates.js';
import { request } from './support/client.js';
import { serve } from './support/server.js';

const authority = new Authority('Test CA');
const certificate = authority.issue(['localhost']);
const { ca } = authority;

test('a connection decodes the session that it offers once', async (t) => {
    const server = await serve(certificate);
    t.after(() => server.close());
    const decoded = countDecodedSessions(t);
    const agent = new TlsAgent({ ca, keepAlive: false });
    await request(server.port, { agent });
    assert.equal(decoded(), 0);
    for (let i = 1; i < 4; i++) {
        assert.equal((await request(server.port, { agent })).resumed, true);
        assert.equal(decoded(), i);
    }
});

test('options of a caller that makes a connection itself are not modified', async (t) => {
    const server = await serve(certificate);
    t.after(() => server.close());
    const agent = new TlsAgent({ ca });
    const options = { host: '127.0.0.1', port: server.port, servername: 'localhost', ca };
    const before = { ...options };
    for (const resumed of [false, true]) {
        const socket = agent.createConnection(options);
        await once(socket, 'secureConnect');
        assert.equal(socket.isSessionReused(), resumed);
        // The ticket arrives with the response.
        socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
        await once(socket, 'data');
        socket.destroy();
        assert.deepEqual(options, before);
    }
});

/** Counts how often OpenSSL decodes an encoded session. */
function countDecodedSessions(t: TestContext): () => number {
    interface Wrap {
        setSession(session: Buffer): void;
    }
    const { TLSWrap } = (process as unknown as { binding(name: string): { TLSWrap: { prototype: Wrap } } }).binding(
        'tls_wrap',
    );
    const mock = t.mock.method(TLSWrap.prototype, 'setSession');
    return () => mock.mock.callCount();
}
