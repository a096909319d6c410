import assert from 'node:assert/strict';
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

/** How often OpenSSL has been given an encoded session to decode. */
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
