import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { bindsSessionsToNames, TlsAgent, type TlsAgentOptions } from 'quadrille-agent';
import { createDispatcher } from 'quadrille-agent/undici';
import { Authority, temporaryFolder } from './support/certificates.js';
import { request, toLoopback } from './support/client.js';
import { peers } from './support/peers.js';

const authority = new Authority('Test CA');
const { ca } = authority;
const certificates = {
    'P-256': authority.issue(['localhost']),
    'RSA-2048': authority.issue(['localhost'], { keyType: 'RSA' }),
};

for (const peer of peers) {
    const version = peer.version();
    const skip = version === undefined && `${peer.name} is not installed: NOT TESTED AGAINST IT`;
    describe(`${peer.name} (${version ?? 'absent'})`, { skip }, () => {
        for (const protocol of ['TLSv1.2', 'TLSv1.3'] as const) {
            for (const [keyType, certificate] of Object.entries(certificates)) {
                test(`${protocol}, ${keyType}: resumes, reuses, resumes after a restart of ours`, async (t) => {
                    const server = await peer.start(certificate);
                    t.after(() => server.stop());
                    const options: TlsAgentOptions = { ca, minVersion: protocol, maxVersion: protocol };
                    await resumes(server.port, { ...options, keepAlive: false });
                    if (peer.name !== 'openssl s_server') await reuses(server.port, options);
                    await dispatcherResumes(server.port, options);
                    // The key's type makes no difference, and processes are slow to start.
                    if (keyType !== 'P-256') return;
                    if (bindsSessionsToNames()) await resumesAfterRestart(server.port, options);
                    else t.diagnostic('restart: not with the memory store, the only one on this Node');
                });
            }
        }

        const restarts = peer.name === 'nginx' || peer.name === 'HAProxy' || peer.name === 'Node';
        test(
            'resumes after a restart of the server, which keeps its ticket key',
            { skip: !restarts && 'it creates a new key' },
            async (t) => {
                const certificate = certificates['P-256'];
                const first = await peer.start(certificate);
                const agent = new TlsAgent({ ca });
                await request(first.port, { agent });
                await first.stop();
                const second = await peer.start(certificate, first.port);
                t.after(() => second.stop());
                assert.equal((await request(second.port, { agent })).resumed, true);
                agent.destroy();
            },
        );
    });
}

async function resumes(port: number, options: TlsAgentOptions): Promise<void> {
    for (const policy of ['compatible', 'fast'] as const) {
        const agent = new TlsAgent({ ...options, policy });
        for (let i = 0; i < 6; i++) {
            const { status, resumed, protocol } = await request(port, { agent });
            assert.deepEqual(
                [status, resumed, protocol],
                [200, i > 0, options.minVersion],
                `${policy}, connection ${i}`,
            );
        }
        const { full, resumed, failed } = agent.metrics();
        assert.deepEqual([full, resumed, failed], [1, 5, 0]);
    }
}

async function reuses(port: number, options: TlsAgentOptions): Promise<void> {
    const agent = new TlsAgent(options);
    for (let i = 0; i < 4; i++) assert.equal((await request(port, { agent })).reusedSocket, i > 0);
    agent.destroy();
}

async function dispatcherResumes(port: number, { minVersion, maxVersion }: TlsAgentOptions): Promise<void> {
    const dispatcher = createDispatcher({ connect: { ca, minVersion, maxVersion, lookup: toLoopback } });
    for (let i = 0; i < 4; i++) {
        const response = await dispatcher.request({
            origin: `https://localhost:${port}`,
            path: '/',
            method: 'GET',
            reset: true,
        });
        assert.equal(response.statusCode, 200);
        await response.body.dump();
    }
    const { full, resumed } = dispatcher.metrics();
    assert.deepEqual([full, resumed], [1, 3]);
    await dispatcher.close();
}

/** Uses a new process for each life. */
async function resumesAfterRestart(port: number, { minVersion }: TlsAgentOptions): Promise<void> {
    const dir = join(temporaryFolder(), 'store');
    const args = [
        join(__dirname, 'support', 'restarted.js'),
        'ours',
        dir,
        String(port),
        authority.caFile,
        String(minVersion),
    ];
    const life = async () => (await promisify(execFile)(process.execPath, args)).stdout.trim();
    assert.deepEqual([await life(), await life()], ['full', 'resumed']);
}
