import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { TlsAgent } from 'quadrille-agent';
import { createDispatcher } from 'quadrille-agent/undici';
import { Authority } from './support/certificates.js';
import { request, toLoopback } from './support/client.js';
import { hasMlDsa, MlDsaAuthority } from './support/ml-dsa.js';
import { serve } from './support/server.js';

const skip = !hasMlDsa() && 'this Node has no ML-DSA: it needs 24.6 or later';

describe('ML-DSA certificates', { skip }, () => {
    for (const set of ['ml-dsa-44', 'ml-dsa-65', 'ml-dsa-87'] as const) {
        test(`${set}: server and client are verified, and sessions resume`, async (t) => {
            const authority = new MlDsaAuthority();
            const { ca } = authority;
            const certificate = authority.issue(set, 'localhost');
            const clients: boolean[] = [];
            const server = await serve(
                { ...certificate, certFile: '', keyFile: '', bothFile: '' },
                {
                    ca,
                    requestCert: true,
                    handler: ({ socket }, response) => {
                        clients.push((socket as TLSSocket).authorized);
                        response.end('ok');
                    },
                },
            );
            t.after(() => server.close());
            const own = authority.issue(set, 'client.test');
            const agent = new TlsAgent({ ca, ...own, keepAlive: false });
            for (let i = 0; i < 3; i++) {
                const { status, authorized, resumed } = await request(server.port, { agent });
                assert.deepEqual([status, authorized, resumed], [200, true, i > 0], `connection ${i}`);
            }
            const dispatcher = createDispatcher({ connect: { ca, ...own, lookup: toLoopback } });
            const origin = `https://localhost:${server.port}`;
            const response = await dispatcher.request({ origin, path: '/', method: 'GET' });
            assert.equal(await response.body.text(), 'ok');
            await dispatcher.close();
            assert.deepEqual(clients, [true, true, true, true]);
        });
    }

    test('a chain of another CA is rejected', async (t) => {
        const certificate = new MlDsaAuthority().issue('ml-dsa-44', 'localhost');
        const server = await serve({ ...certificate, certFile: '', keyFile: '', bothFile: '' });
        t.after(() => server.close());
        const codes = [
            'CERT_SIGNATURE_FAILURE',
            'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
            'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
        ];
        for (const { ca } of [new MlDsaAuthority(), new Authority('Another CA')]) {
            await assert.rejects(
                request(server.port, { agent: new TlsAgent({ ca }) }),
                (error: NodeJS.ErrnoException) => codes.includes(error.code ?? ''),
            );
        }
    });
});
