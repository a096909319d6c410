import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { type SessionEntry, TlsAgent } from 'quadrille-agent';
import { sessionEntry } from '#dist/session.js';
import { Authority } from './support/certificates.js';
import { eventually, request } from './support/client.js';
import { entry, keyOf } from './support/entries.js';
import { serve } from './support/server.js';
import { directoriesIn, filesBelow, key, newDir, newestDirectory, open, secret, skip } from './support/stores.js';

const run = promisify(execFile);

describe('FileSessionStore', { skip }, () => {
    test('returns stored sessions after a restart', () => {
        const dir = newDir();
        const now = Date.now();
        const first = open(dir);
        const put = entry({ now });
        first.put(key, put, now);
        first.close();
        const taken = open(dir).take(key, 'prefer-fresh', now);
        assert.deepEqual(taken?.bytes, put.bytes);
        assert.deepEqual({ ...taken, used: false }, { ...put, used: false });
        assert.equal(open(dir).take(keyOf('other'), 'prefer-fresh', now), undefined);
    });

    test('writes after a delay, and not at every change', async () => {
        const dir = newDir();
        const store = open(dir, { writeDelay: 50 });
        for (let i = 0; i < 20; i++) store.put(key, entry(), Date.now());
        assert.equal(filesBelow(dir).length, 0);
        await eventually(() => filesBelow(dir).length === 4, 'four are written');
        store.close();
    });

    test('remembers across restarts which tickets were used', () => {
        const dir = newDir();
        const now = Date.now();
        const first = open(dir);
        const [one, two] = [entry(), entry()];
        first.put(key, one, now);
        first.put(key, two, now);
        first.flush();
        const used = first.take(key, 'prefer-fresh', now);
        first.close();
        const second = open(dir);
        const fresh = second.take(key, 'prefer-fresh', now);
        assert.notDeepEqual(fresh?.bytes, used?.bytes);
        assert.ok(second.take(key, 'prefer-fresh', now), 'a used one is better than none');
    });

    test('strict: a session taken by one process is gone for all', () => {
        const dir = newDir();
        const now = Date.now();
        const [one, two] = [open(dir), open(dir)];
        one.put(key, entry(), now);
        one.flush();
        assert.ok(two.take(key, 'strict', now));
        assert.equal(one.take(key, 'strict', now), undefined, 'it is still in the memory of the first');
        assert.equal(filesBelow(dir).length, 0);
    });

    test('strict: processes that take at the same time never get the same', async () => {
        const dir = newDir();
        const now = Date.now();
        const store = open(dir, { perOrigin: 1000 });
        for (let i = 0; i < 200; i++) store.put(key, entry(), now);
        store.close();
        const taker = join(__dirname, 'support', 'taker.js');
        const begin = String(Date.now() + 1500);
        const outputs = await Promise.all(
            [1, 2, 3].map(() => run(process.execPath, [taker, dir, secret.toString('hex'), begin])),
        );
        const taken = outputs.flatMap(({ stdout }) => stdout.split('\n').filter(Boolean));
        assert.equal(taken.length, 200);
        assert.equal(new Set(taken).size, 200);
    });

    test('prefer-fresh: processes that start at the same time share the tickets', async () => {
        const dir = newDir();
        const now = Date.now();
        const store = open(dir, { perOrigin: 1000 });
        for (let i = 0; i < 120; i++) store.put(key, entry(), now);
        store.close();
        const taker = join(__dirname, 'support', 'taker.js');
        const begin = String(Date.now() + 1500);
        const outputs = await Promise.all(
            [1, 2, 3].map(() => run(process.execPath, [taker, dir, secret.toString('hex'), begin, '40'])),
        );
        const taken = outputs.map(({ stdout }) => stdout.split('\n').filter(Boolean));
        assert.deepEqual(
            taken.map(({ length }) => length),
            [40, 40, 40],
        );
        assert.equal(new Set(taken.flat()).size, 120, 'each was used once');
    });

    test('is bounded: by origin and in all, on disk too', () => {
        const dir = newDir();
        const store = open(dir, { maxOrigins: 5, perOrigin: 2 });
        for (let origin = 0; origin < 12; origin++) {
            for (let i = 0; i < 4; i++) store.put(keyOf(`origin ${origin}`), entry(), Date.now());
            store.flush();
        }
        assert.equal(directoriesIn(dir).length, 5);
        assert.ok(filesBelow(dir).length <= 10);
        // Stored by several processes in turn, one origin does not grow either.
        for (let i = 0; i < 6; i++) {
            const other = open(dir, { perOrigin: 2 });
            other.put(key, entry(), Date.now());
            other.close();
        }
        assert.equal(filesBelow(dir).filter((file) => file.includes(newestDirectory(dir))).length, 2);
    });

    test('sessions written by another version of Node are not used', () => {
        const dir = newDir();
        const store = open(dir);
        store.put(key, entry({ node: '18.0.0' }), Date.now());
        store.flush();
        assert.equal(store.take(key, 'prefer-fresh', Date.now()), undefined);
        assert.equal(open(dir).take(key, 'prefer-fresh', Date.now()), undefined);
    });

    test('sessions with process-specific keys stay in memory', () => {
        const dir = newDir();
        const store = open(dir);
        store.put({ id: key.id, persistable: false }, entry(), Date.now());
        store.flush();
        assert.deepEqual(filesBelow(dir), []);
        assert.ok(store.take({ id: key.id, persistable: false }, 'strict', Date.now()));
    });
});

describe('expiry and clocks', { skip }, () => {
    test('a ticket that expired is removed at the next start', () => {
        const dir = newDir();
        const store = open(dir);
        store.put(key, entry({ lifetime: 60 }), Date.now());
        store.close();
        assert.equal(filesBelow(dir).length, 1);
        assert.equal(open(dir).take(key, 'prefer-fresh', Date.now() + 61_000), undefined);
        const name = filesBelow(dir)[0] as string;
        fs.renameSync(name, name.replace(/[^/]+-(?=[^/]*$)/, `${(Date.now() - 1).toString(36)}-`));
        open(dir);
        assert.deepEqual([filesBelow(dir), directoriesIn(dir)], [[], []]);
    });

    test('the clock jumps ahead: expired; back: of unknown age, so not used', () => {
        const dir = newDir();
        const now = Date.now();
        const store = open(dir);
        store.put(key, entry({ now, lifetime: 7200 }), now);
        store.close();
        const at = (time: number) => open(dir).take(key, 'prefer-fresh', time) !== undefined;
        assert.equal(at(now + 8_000_000), false);
        assert.equal(at(now - 3_600_000), false);
        assert.equal(at(now + 1000), true);
    });
});

describe('restart', { skip }, () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
        for (const ticketReuse of ['prefer-fresh', 'strict'] as const) {
            test(`${version}, ${ticketReuse}: a new store on the same directory resumes`, async (t) => {
                const authority = new Authority('Test CA');
                const server = await serve(authority.issue(['localhost']), {
                    minVersion: version,
                    maxVersion: version,
                });
                t.after(() => server.close());
                const dir = newDir();
                for (let life = 0; life < 3; life++) {
                    const store = open(dir);
                    const agent = new TlsAgent({ store, ca: authority.ca, keepAlive: false, ticketReuse });
                    const answer = await request(server.port, { agent });
                    assert.equal(answer.resumed, life > 0, `life ${life}`);
                    store.close();
                }
            });
        }
    }

    test('TLS 1.3: concurrent connections after a restart share the tickets evenly', async (t) => {
        const authority = new Authority('Test CA');
        const { ca } = authority;
        const server = await serve(authority.issue(['localhost']), { minVersion: 'TLSv1.3' });
        t.after(() => server.close());
        const dir = newDir();
        const before = open(dir);
        // Each full handshake yields two tickets.
        for (let i = 0; i < 2; i++) {
            const agent = new TlsAgent({ ca, store: before, keepAlive: false, ticketReuse: 'strict' });
            await Promise.all([1, 2].map(() => request(server.port, { agent })));
        }
        before.close();
        const files = filesBelow(dir).length;
        assert.ok(files > 1, `${files} tickets`);
        const store = open(dir);
        t.after(() => store.close());
        const offers = new Map<SessionEntry, number>();
        const take = store.take.bind(store);
        store.take = (...args) => {
            const taken = take(...args);
            if (taken) offers.set(taken, (offers.get(taken) ?? 0) + 1);
            return taken;
        };
        const agent = new TlsAgent({ ca, store, maxSockets: 4 * files });
        const answers = await Promise.all(Array.from({ length: 3 * files }, () => request(server.port, { agent })));
        agent.destroy();
        assert.equal(answers.filter(({ resumed }) => resumed).length, 3 * files);
        assert.deepEqual([...offers.values()], Array<number>(files).fill(3));
    });

    test('a process that ended without a flush resumes', async (t) => {
        const authority = new Authority('Test CA');
        const server = await serve(authority.issue(['localhost']));
        t.after(() => server.close());
        const args = [
            join(__dirname, 'support', 'restarted.js'),
            'ours',
            newDir(),
            String(server.port),
            authority.caFile,
        ];
        const life = async () => (await run(process.execPath, args)).stdout.trim();
        assert.deepEqual([await life(), await life(), await life()], ['full', 'resumed', 'resumed']);
    });
});

test('a session that OpenSSL could not verify is rejected, even if the socket is authorized', () => {
    const origin = { verifiedAt: 0, leafExpiresAt: Infinity, protocol: 'TLSv1.3' };
    assert.equal(sessionEntry(Buffer.from('not a session'), { ...origin, protocol: 'TLSv1.1' }, 0), undefined);
});
