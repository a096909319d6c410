import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MemorySessionStore, policyOptions, type SessionEntry } from 'quadrille-agent';
import { hasAesInstructions } from '#dist/cpu.js';
import { milliseconds } from '#dist/duration.js';
import { Histogram } from '#dist/histogram.js';
import { IdleClock } from '#dist/idle-clock.js';
import { idleTime, keepAliveHint } from '#dist/keep-alive.js';
import { hasHybridGroups } from '#dist/policy.js';
import { expiresAt, isUsable, sessionEntry } from '#dist/session.js';
import { parseSession } from '#dist/session-der.js';
import { Authority } from './support/certificates.js';
import { entry, keyOf } from './support/entries.js';
import { serve } from './support/server.js';
import * as tls from 'node:tls';
import { once } from 'node:events';

const HOUR = 3_600_000;

describe('sessions', () => {
    test('OpenSSL encodings are parsed: version, lifetime, verification', async (t) => {
        const authority = new Authority('Test CA');
        const server = await serve(authority.issue(['localhost']), { sessionTimeout: 1234 });
        t.after(() => server.close());
        for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
            for (const [ca, verifyResult] of [
                [authority.ca, 0],
                [undefined, 21],
            ] as const) {
                const options = { ca, rejectUnauthorized: false, minVersion: version, maxVersion: version } as const;
                const socket = tls.connect({
                    host: '127.0.0.1',
                    port: server.port,
                    servername: 'localhost',
                    ...options,
                });
                const [bytes] = (await once(socket, 'session')) as [Buffer];
                socket.destroy();
                assert.deepEqual(parseSession(bytes), {
                    protocol: version,
                    resumable: true,
                    verifyResult,
                    lifetimeSeconds: 1234,
                });
                const made = sessionEntry(bytes, { verifiedAt: 0, leafExpiresAt: 9e15, protocol: version }, 1000);
                assert.equal(made?.ticketExpiresAt, verifyResult === 0 ? 1_235_000 : undefined);
                for (let length = 0; length < bytes.length; length++)
                    assert.equal(parseSession(bytes.subarray(0, length)), undefined);
            }
        }
    });

    test('an unknown encoding lives five minutes', () => {
        const made = sessionEntry(Buffer.from('??'), { verifiedAt: 0, leafExpiresAt: 9e15, protocol: 'TLSv1.3' }, 1000);
        assert.equal(made?.ticketExpiresAt, 301_000);
    });

    test('expiry is the least of the ticket, the leaf, and maxAge since the verification', () => {
        const now = 1_000_000_000;
        const one = entry({ now, lifetime: 7200, leafExpiresAt: now + 3 * HOUR, verifiedAt: now - HOUR });
        assert.equal(expiresAt(one, 24 * HOUR), now + 2 * HOUR);
        assert.equal(expiresAt({ ...one, leafExpiresAt: now + HOUR }, 24 * HOUR), now + HOUR);
        assert.equal(expiresAt(one, 1.5 * HOUR), now + HOUR / 2, 'a resumption does not renew the verification');
        assert.equal(isUsable(one, 24 * HOUR, now + 2 * HOUR - 1), true);
        assert.equal(isUsable(one, 24 * HOUR, now + 2 * HOUR), false);
        assert.equal(isUsable(one, 24 * HOUR, now - 2 * HOUR), false, 'the clock was set back');
        assert.equal(isUsable({ ...one, node: '1.2.3' }, 24 * HOUR, now), false);
    });
});

describe('MemorySessionStore', () => {
    const key = keyOf('one');

    test('prefer-fresh: each once, newest first, then again', () => {
        const store = new MemorySessionStore();
        const [one, two] = [entry(), entry()];
        store.put(key, one, Date.now());
        store.put(key, two, Date.now());
        const taken = [1, 2, 3].map(() => store.take(key, 'prefer-fresh', Date.now()));
        assert.deepEqual(
            taken.map((it) => it?.bytes),
            [two.bytes, one.bytes, two.bytes],
        );
    });

    test('prefer-fresh: concurrent connections share the tickets evenly', () => {
        const store = new MemorySessionStore();
        for (let i = 0; i < 4; i++) store.put(key, entry(), Date.now());
        const counts = new Map<SessionEntry | undefined, number>();
        for (let i = 0; i < 100; i++) {
            const taken = store.take(key, 'prefer-fresh', Date.now());
            counts.set(taken, (counts.get(taken) ?? 0) + 1);
        }
        assert.deepEqual([...counts.values()], [25, 25, 25, 25]);
    });

    test('strict: TLS 1.3 once, TLS 1.2 for ever', () => {
        const store = new MemorySessionStore();
        store.put(key, entry(), Date.now());
        assert.ok(store.take(key, 'strict', Date.now()));
        assert.equal(store.take(key, 'strict', Date.now()), undefined);
        store.put(key, entry({ protocol: 'TLSv1.2' }), Date.now());
        for (let i = 0; i < 5; i++) assert.ok(store.take(key, 'strict', Date.now()));
    });

    test('is bounded, and forgets spent tickets before fresh ones, old origins before recent ones', () => {
        const store = new MemorySessionStore({ maxOrigins: 2, perOrigin: 2 });
        const [one, two, three] = [entry(), entry(), entry()];
        store.put(key, one, Date.now());
        store.put(key, two, Date.now());
        assert.equal(store.take(key, 'prefer-fresh', Date.now()), two);
        store.put(key, three, Date.now());
        assert.deepEqual(store.list(key), [one, three]);
        store.put(keyOf('two'), entry(), Date.now());
        store.take(key, 'prefer-fresh', Date.now());
        store.put(keyOf('three'), entry(), Date.now());
        assert.equal(store.size, 2);
        assert.equal(store.take(keyOf('two'), 'prefer-fresh', Date.now()), undefined);
        assert.ok(store.take(key, 'prefer-fresh', Date.now()));
    });

    test('expired sessions are gone', () => {
        const store = new MemorySessionStore({ maxAge: '1h' });
        const now = Date.now();
        store.put(key, entry({ now, verifiedAt: now - 2 * HOUR }), now);
        assert.equal(store.size, 0, 'it is not stored');
        store.put(key, entry({ now }), now);
        assert.ok(store.take(key, 'prefer-fresh', now + HOUR - 1));
        assert.equal(store.take(key, 'prefer-fresh', now + HOUR), undefined);
        assert.equal(store.size, 0);
    });
});

describe('keep-alive', () => {
    const hint = (value: string) => keepAliveHint({ 'keep-alive': value });
    test('the header is read in any form', () => {
        assert.deepEqual(hint('timeout=5'), { timeoutMs: 5000, requestsLeft: undefined });
        assert.deepEqual(hint('max=100, timeout=5'), { timeoutMs: 5000, requestsLeft: 100 });
        assert.deepEqual(hint('Timeout = "7" ; MAX=0'), { timeoutMs: 7000, requestsLeft: 0 });
        assert.deepEqual(hint('xtimeout=5, timeout=later'), { timeoutMs: undefined, requestsLeft: undefined });
        assert.deepEqual(keepAliveHint(undefined), { timeoutMs: undefined, requestsLeft: undefined });
    });

    test('the idle time is the least of all, with a margin to the server', () => {
        const limits = { freeSocketTimeout: 4000, socketLifetime: 60_000 };
        assert.equal(idleTime(hint(''), limits, 0), 4000);
        assert.equal(idleTime(hint('timeout=3'), limits, 0), 2000);
        assert.equal(idleTime(hint('timeout=60'), limits, 0), 4000);
        assert.equal(idleTime(hint('timeout=1'), limits, 0), 0);
        assert.equal(idleTime(hint('timeout=5, max=0'), limits, 0), 0);
        assert.equal(idleTime(hint(''), limits, 59_000), 1000);
        assert.equal(idleTime(hint(''), limits, 61_000), 0);
    });
});

describe('policy', () => {
    test('fast begins with what the processor does cheapest', () => {
        const first = (aes: boolean) => policyOptions('fast', { aes, hybridGroups: true }).ciphers?.split(':');
        assert.deepEqual(first(true)?.slice(0, 1), ['TLS_AES_128_GCM_SHA256']);
        assert.ok(first(true)?.includes('ECDHE-RSA-AES128-GCM-SHA256'));
        assert.equal(first(false)?.[0], 'TLS_CHACHA20_POLY1305_SHA256');
        assert.deepEqual(new Set(first(true)), new Set(first(false)));
    });

    test('modern is TLS 1.3 with the hybrid group where OpenSSL has it', () => {
        assert.deepEqual(
            [hasHybridGroups('3.0.19'), hasHybridGroups('3.5.0'), hasHybridGroups('4.0.0')],
            [false, true, true],
        );
        const { ecdhCurve, minVersion } = policyOptions('modern', { aes: true, hybridGroups: true });
        assert.deepEqual([ecdhCurve, minVersion], ['X25519MLKEM768:X25519:P-256', 'TLSv1.3']);
    });

    test('each is accepted by this Node', () => {
        for (const policy of ['compatible', 'fast', 'modern'] as const)
            tls.createSecureContext({ ...policyOptions(policy) });
    });

    test('AES is found in /proc/cpuinfo of x86 and ARM', () => {
        const has = (cpuinfo: string, platform = 'linux') => hasAesInstructions(platform, () => cpuinfo);
        assert.equal(has('processor : 0\nflags\t\t: fpu sse2 aes avx\n'), true);
        assert.equal(has('processor : 0\nflags\t\t: fpu sse2 avx vaesx\n'), false);
        assert.equal(has('Features\t: fp asimd aes pmull\n'), true);
        assert.equal(has('Features\t: half thumb neon\n'), false);
        assert.equal(has(''), true);
        assert.equal(has('', 'darwin'), true);
    });
});

describe('IdleClock', () => {
    test('wakes for the first expiry, with one timer', (t) => {
        t.mock.timers.enable({ apis: ['setTimeout'] });
        const rung: number[] = [];
        const clock = new IdleClock((now) => (rung.push(now), Infinity));
        clock.expectAt(1500, 1000);
        clock.expectAt(1100, 1000);
        clock.expectAt(1300, 1000);
        t.mock.timers.tick(99);
        assert.equal(rung.length, 0);
        t.mock.timers.tick(1);
        assert.equal(rung.length, 1);
        t.mock.timers.tick(10_000);
        assert.equal(rung.length, 1, 'no other is expected');
    });

    test('detects that it is late, and continues with the next', () => {
        const rung: number[] = [];
        const clock = new IdleClock((now) => (rung.push(now), now < 900 ? 900 : Infinity));
        clock.expectAt(500, 0);
        assert.equal(clock.isLate(499), false);
        assert.equal(clock.isLate(500), true);
        clock.check(600);
        assert.equal(clock.isLate(899), false);
        assert.equal(clock.isLate(900), true);
        clock.check(900);
        assert.equal(clock.isLate(1e9), false);
        assert.deepEqual(rung, [600, 900]);
    });
});

test('durations', () => {
    const given = [1500, '500ms', '30s', '1.5m', '24h', '7d'] as const;
    assert.deepEqual(
        given.map((one) => milliseconds('x', one, 0)),
        [1500, 500, 30_000, 90_000, 86_400_000, 604_800_000],
    );
    for (const bad of [-1, NaN, '', '5', 's', '1w', '-5s'])
        assert.throws(() => milliseconds('maxAge', bad as never, 0), /maxAge is/);
});

test('percentiles are within 7 %', () => {
    const histogram = new Histogram();
    assert.equal(histogram.percentile(0.5), 0);
    for (let i = 1; i <= 1000; i++) histogram.record(i / 10);
    const { count, mean, p50, p90, p99, max } = histogram.summary();
    assert.deepEqual([count, max], [1000, 100]);
    for (const [is, should] of [
        [mean, 50.05],
        [p50, 50],
        [p90, 90],
        [p99, 99],
    ] as const) {
        assert.ok(Math.abs(is / should - 1) < 0.07, `${is} for ${should}`);
    }
});
