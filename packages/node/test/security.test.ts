/**
 * Known pitfalls of sessions in Node. Each is a check that passes for this package's agent and, to prove that it can fail,
 * fails for the naive design.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import * as https from 'node:https';
import { join } from 'node:path';
import { test } from 'node:test';
import * as tls from 'node:tls';
import { promisify } from 'node:util';
import {
    bindsSessionsToNames,
    FileSessionStore,
    MemorySessionStore,
    QuadrilleError,
    TlsAgent,
    type TlsAgentOptions,
} from 'quadrille-agent';
import { Authority, type Certificate, temporaryFolder } from './support/certificates.js';
import { eventually, request, type RequestOptions } from './support/client.js';
import { NaiveAgent } from './support/naive.js';
import { serve } from './support/server.js';

const authority = new Authority('Trusted CA');
const { ca } = authority;
const localhost = authority.issue(['localhost']);
const ALTNAME = { code: 'ERR_TLS_CERT_ALTNAME_INVALID' };

/** A check takes an agent and a server's port; it throws if the agent is not safe. */
type Check = (agent: https.Agent, port: number) => Promise<void>;

interface Fact {
    readonly name: string;
    readonly check: Check;
    readonly server?: https.ServerOptions;
    readonly certificate?: Certificate;
    /** Whether the naive design passes on this Node. */
    readonly naiveIsSafe?: boolean;
}

const facts: Fact[] = [
    {
        name: 'a session of one name is not resumed under another (CVE-2026-48934)',
        naiveIsSafe: bindsSessionsToNames(),
        check: async (agent, port) => {
            await request(port, { agent, ca });
            await assert.rejects(request(port, { agent, ca, servername: 'evil.test' }), ALTNAME);
        },
    },
    {
        name: 'a session made with rejectUnauthorized: false does not let a wrong name through later',
        check: async (agent, port) => {
            const lax = await request(port, { agent, ca, servername: 'wrong.test', rejectUnauthorized: false });
            assert.equal(lax.authorized, false);
            await assert.rejects(request(port, { agent, ca, servername: 'wrong.test' }), ALTNAME);
        },
    },
    {
        name: 'a session made under a private CA does not resume without it',
        check: async (agent, port) => {
            await request(port, { agent, ca });
            await assert.rejects(request(port, { agent }), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' });
        },
    },
    {
        name: 'a custom checkServerIdentity is called on every connection',
        check: async (agent, port) => {
            let asked = 0;
            const checkServerIdentity = () => void asked++;
            const headers = { connection: 'close' };
            for (let i = 0; i < 3; i++) await request(port, { agent, ca, checkServerIdentity, headers });
            assert.equal(asked, 3);
        },
    },
    {
        name: 'a stricter checkServerIdentity is not skipped because of an earlier session',
        check: async (agent, port) => {
            await request(port, { agent, ca });
            const checkServerIdentity = () => new Error('not this one');
            await assert.rejects(request(port, { agent, ca, checkServerIdentity }), { message: 'not this one' });
        },
    },
    {
        name: 'a session from an unverified chain does not make a strict connection fail',
        check: async (agent, port) => {
            await request(port, { agent, rejectUnauthorized: false });
            const strict = await request(port, { agent, ca });
            assert.deepEqual([strict.authorized, strict.resumed], [true, false]);
        },
    },
    {
        name: 'a session made with a client certificate is not offered without it',
        server: { requestCert: true, rejectUnauthorized: false, ca },
        check: async (agent, port) => {
            const { cert, key } = authority.issue(['client']);
            assert.equal((await request(port, { agent, ca, cert, key })).body, 'client');
            assert.equal((await request(port, { agent, ca })).body, 'anonymous');
        },
    },
];

for (const { name, check, server: serverOptions, certificate = localhost, naiveIsSafe = false } of facts) {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
        test(`${version}: ${name}`, async (t) => {
            const server = await serve(certificate, {
                ...serverOptions,
                minVersion: version,
                maxVersion: version,
                handler: (incoming, response) => {
                    const peer = (incoming.socket as tls.TLSSocket).getPeerCertificate() as
                        tls.PeerCertificate | undefined;
                    response.end(peer?.subject?.CN ?? 'anonymous');
                },
            });
            t.after(() => server.close());
            for (const ticketReuse of ['prefer-fresh', 'strict'] as const) {
                await check(new TlsAgent({ keepAlive: false, ticketReuse }), server.port);
            }
            // Reused sockets must not be a way around it.
            const reusing = new TlsAgent({ keepAlive: true });
            await check(reusing, server.port);
            reusing.destroy();
            const naive = check(new NaiveAgent({ keepAlive: false }), server.port);
            if (naiveIsSafe) await naive;
            else await assert.rejects(naive, 'the naive design passes: this test cannot fail');
        });
    }
}

test('a poisoned session in the store is dropped, and the handshake made again in full', async (t) => {
    const server = await serve(localhost, { maxVersion: 'TLSv1.2' });
    t.after(() => server.close());
    const poisoned = await sessionOf(server.port, { rejectUnauthorized: false });
    const store = new MemorySessionStore();
    const agent = new TlsAgent({ store, ca, keepAlive: false });
    await request(server.port, { agent });
    poison(store, poisoned);
    // A method that is not repeatable: no byte of it has been sent.
    const answer = await request(server.port, { agent, method: 'POST', body: 'pay once' });
    assert.deepEqual([answer.status, answer.resumed, answer.authorized], [200, false, true]);
    const { fullRetries, failed, declined } = agent.metrics();
    assert.deepEqual([fullRetries, failed, declined], [1, 1, 0]);
    assert.equal(server.seen.requests, 2);
    assert.equal((await request(server.port, { agent })).resumed, true);
});

test('a server that fails with every session is retried once, and the error is that of the full handshake', async (t) => {
    const server = await serve(localhost, { maxVersion: 'TLSv1.2' });
    t.after(() => server.close());
    const store = new MemorySessionStore();
    const agent = new TlsAgent({ store, ca, keepAlive: false });
    await request(server.port, { agent });
    await request(server.port, { agent });
    server.server.prependListener('connection', (socket) => socket.destroy());
    await assert.rejects(request(server.port, { agent }), { code: 'ECONNRESET' });
    await eventually(() => agent.metrics().failed === 2, 'two handshakes have failed');
    assert.equal(agent.metrics().fullRetries, 1);
    assert.equal(store.size, 0);
});

test('identityTag lets a custom check resume, for equal tags only', async (t) => {
    const server = await serve(localhost, { maxVersion: 'TLSv1.2' });
    t.after(() => server.close());
    const agent = new TlsAgent({ ca, keepAlive: false });
    let asked = 0;
    const checkServerIdentity = () => void asked++;
    const resumed = async (identityTag?: string) => {
        const options: RequestOptions = {
            agent,
            checkServerIdentity,
            ...(identityTag === undefined ? {} : { identityTag }),
        };
        return (await request(server.port, options)).resumed;
    };
    assert.deepEqual([await resumed('pin A'), await resumed('pin A')], [false, true]);
    assert.deepEqual([await resumed('pin B'), await resumed('pin B')], [false, true]);
    assert.deepEqual([await resumed(), await resumed()], [false, false]);
    assert.equal(asked, 4);
    assert.equal(agent.metrics().bypassed, 2);
});

test('an application check that replaces the default one counts as custom', async (t) => {
    const server = await serve(localhost);
    t.after(() => server.close());
    const agent = new TlsAgent({ ca, keepAlive: false });
    const mutable = require('node:tls') as { checkServerIdentity: typeof tls.checkServerIdentity };
    const stock = mutable.checkServerIdentity;
    let asked = 0;
    mutable.checkServerIdentity = (...args) => (asked++, stock(...args));
    t.after(() => (mutable.checkServerIdentity = stock));
    for (let i = 0; i < 3; i++) await request(server.port, { agent });
    assert.equal(asked, 3);
});

test('unverified sessions are not even stored', async (t) => {
    const server = await serve(localhost);
    t.after(() => server.close());
    const store = new MemorySessionStore();
    const agent = new TlsAgent({ store, keepAlive: false, rejectUnauthorized: false });
    for (let i = 0; i < 3; i++) assert.equal((await request(server.port, { agent })).resumed, false);
    assert.equal(store.size, 0);
    const verified = new TlsAgent({ store, keepAlive: false, rejectUnauthorized: false, ca });
    await request(server.port, { agent: verified });
    assert.equal(store.size, 1);
});

test('a session of a caller is not used for others: neither its successors nor its socket', async (t) => {
    const server = await serve(authority.issue(['other.test']), { maxVersion: 'TLSv1.2' });
    t.after(() => server.close());
    // Trusted, but of another name: resumption skips the check.
    const session = await sessionOf(server.port, { ca, rejectUnauthorized: false });
    const store = new MemorySessionStore();
    const agent = new TlsAgent({ ca, store });
    t.after(() => agent.destroy());
    const options: RequestOptions & { session: Buffer } = { agent, session };
    assert.equal((await request(server.port, options)).resumed, true);
    await assert.rejects(request(server.port, { agent }), ALTNAME);
    assert.equal(store.size, 0);
});

test('NODE_TLS_REJECT_UNAUTHORIZED=0 is part of the key', async (t) => {
    const server = await serve(authority.issue(['other.test']));
    t.after(() => server.close());
    const agent = new TlsAgent({ ca });
    t.after(() => agent.destroy());
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    t.after(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
    t.mock.method(process, 'emitWarning', () => {});
    assert.equal((await request(server.port, { agent })).authorized, false);
    delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    await assert.rejects(request(server.port, { agent }), ALTNAME);
});

test('each option that verification or negotiation depends on has separate sessions', async (t) => {
    const server = await serve(localhost, { maxVersion: 'TLSv1.2' });
    t.after(() => server.close());
    const store = new MemorySessionStore();
    const options: TlsAgentOptions = { ca, maxVersion: 'TLSv1.2', ecdhCurve: 'P-256:P-384', ciphers: 'ECDHE+AESGCM' };
    const client = authority.issue(['client']);
    const isResumed = async (changed: TlsAgentOptions) =>
        (await request(server.port, { agent: new TlsAgent({ store, keepAlive: false, ...options, ...changed }) }))
            .resumed;
    assert.deepEqual([await isResumed({}), await isResumed({})], [false, true]);
    const changes: TlsAgentOptions[] = [
        { ca: [ca, new Authority('Another').ca] },
        { rejectUnauthorized: false },
        { cert: client.cert, key: client.key },
        { ALPNProtocols: ['http/1.1'] } as TlsAgentOptions,
        { minVersion: 'TLSv1.1' },
        { ciphers: 'ECDHE+AESGCM:!AES256' },
        { ecdhCurve: 'P-256' },
        { sigalgs: 'ECDSA+SHA256' },
        { secureOptions: require('node:constants').SSL_OP_NO_COMPRESSION as number },
        { minDHSize: 2048 } as TlsAgentOptions,
        { identityTag: 'tag' },
        { crl: await emptyCrl() },
    ];
    for (const change of changes) assert.equal(await isResumed(change), false, JSON.stringify(change).slice(0, 80));
    assert.equal(await isResumed({}), true, 'and the first is still stored');
});

test('sessions are not kept on disk by a Node without the fix of CVE-2026-48934', () => {
    const versions: [string, boolean][] = [
        ['20.20.2', false],
        ['22.22.9', false],
        ['22.23.0', true],
        ['23.11.0', false],
        ['24.16.9', false],
        ['24.17.0', true],
        ['25.9.0', false],
        ['26.3.0', false],
        ['26.3.1', true],
        ['27.0.0', true],
    ];
    for (const [version, isFixed] of versions) assert.equal(bindsSessionsToNames(version), isFixed, version);
    const open = () => new FileSessionStore({ dir: join(temporaryFolder(), 'store'), key: randomBytes(32) }).close();
    if (bindsSessionsToNames()) open();
    else
        assert.throws(
            open,
            (error: QuadrilleError) =>
                error.code === 'ERR_QUADRILLE_UNSAFE_NODE' && /MemorySessionStore/.test(error.message),
        );
});

test('sessions of a process with NODE_EXTRA_CA_CERTS are not resumed by one without', needsStore(), async (t) => {
    const server = await serve(localhost, { maxVersion: 'TLSv1.2' });
    t.after(() => server.close());
    const folder = temporaryFolder();
    const run = async (design: 'ours' | 'naive', extra: boolean) => {
        const environment = { ...process.env, NODE_EXTRA_CA_CERTS: extra ? authority.caFile : '' };
        const args = [join(__dirname, 'support', 'restarted.js'), design, join(folder, design), String(server.port)];
        return (await promisify(execFile)(process.execPath, args, { env: environment })).stdout.trim();
    };
    assert.equal(await run('ours', true), 'full');
    assert.equal(await run('ours', true), 'resumed');
    assert.equal(await run('ours', false), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE');
    assert.equal(await run('naive', true), 'full');
    assert.equal(await run('naive', false), 'resumed', 'the naive design passes: this test cannot fail');
});

const { setDefaultCACertificates } = tls as { setDefaultCACertificates?: (certificates: string[]) => void };
test(
    'tls.setDefaultCACertificates takes effect',
    { skip: setDefaultCACertificates ? false : 'this Node does not have it' },
    async (t) => {
        const server = await serve(localhost);
        t.after(() => server.close());
        const stock = (tls as unknown as { getCACertificates(type: string): string[] }).getCACertificates('default');
        const agent = new TlsAgent({ keepAlive: false });
        await assert.rejects(request(server.port, { agent }), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' });
        setDefaultCACertificates?.([...stock, ca]);
        t.after(() => setDefaultCACertificates?.(stock));
        assert.equal((await request(server.port, { agent })).resumed, false);
        assert.equal((await request(server.port, { agent })).resumed, true);
        setDefaultCACertificates?.(stock);
        await assert.rejects(request(server.port, { agent }), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' });
    },
);

test('no report and no error contains a session or a key', async (t) => {
    const server = await serve(localhost);
    t.after(() => server.close());
    const { cert, key } = authority.issue(['client']);
    const agent = new TlsAgent({ ca, keepAlive: false, cert, key });
    await request(server.port, { agent });
    const told =
        JSON.stringify(agent.metrics()) +
        agent.getName({ host: 'localhost', ca, cert, key, passphrase: 'geheim' } as never);
    assert.ok(!/PRIVATE KEY|geheim|BEGIN/.test(told));
});

function needsStore() {
    return { skip: bindsSessionsToNames() ? false : `Node ${process.versions.node} has the memory store only` };
}

/** Returns a session, for any certificate. */
function sessionOf(port: number, options: tls.ConnectionOptions): Promise<Buffer> {
    return new Promise((resolve, reject) => {
        const socket = tls.connect({ host: '127.0.0.1', port, servername: 'localhost', ...options });
        socket.once('session', (session) => resolve(session)).once('error', reject);
        socket.once('session', () => socket.end());
    });
}

/** Replaces the bytes of every session in the store. */
function poison(store: MemorySessionStore, bytes: Buffer): void {
    const take = store.take.bind(store);
    store.take = (...args) => {
        store.take = take;
        const entry = take(...args);
        return entry && Object.assign(entry, { bytes });
    };
}

/** A revocation list that revokes nothing. */
async function emptyCrl(): Promise<string> {
    const { writeFileSync, readFileSync } = await import('node:fs');
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'index'), '');
    writeFileSync(
        join(folder, 'ca.cnf'),
        `[ca]\ndefault_ca=d\n[d]\ndatabase=${join(folder, 'index')}\ndefault_md=sha256\ndefault_crl_days=30\n`,
    );
    const keyFile = authority.caFile.replace(/pem$/, 'key');
    const args = [
        'ca',
        '-gencrl',
        '-config',
        join(folder, 'ca.cnf'),
        '-cert',
        authority.caFile,
        '-keyfile',
        keyFile,
        '-out',
        join(folder, 'crl'),
    ];
    await promisify(execFile)('openssl', args);
    return readFileSync(join(folder, 'crl'), 'latin1');
}
