/** Other users, other keys, damaged files, full disks. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createSecretKey, randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { FileSessionStoreOptions, QuadrilleError } from 'quadrille-agent';
import { temporaryFolder } from './support/certificates.js';
import { entry, keyOf } from './support/entries.js';
import { collectErrors, directoriesIn, filesBelow, key, newDir, open, put, secret, skip } from './support/stores.js';

describe('the path is private', { skip }, () => {
    test('made with mode 0700, files with 0600, names that reveal nothing', () => {
        const dir = newDir();
        const before = process.umask(0);
        try {
            put(dir);
        } finally {
            process.umask(before);
        }
        const modes = [dir, ...directoriesIn(dir), ...filesBelow(dir)].map((path) =>
            (fs.statSync(path).mode & 0o777).toString(8),
        );
        assert.deepEqual(modes, ['700', '700', '600']);
        assert.ok(!filesBelow(dir).join().includes(key.id.slice(0, 8)));
    });

    const refused: [string, (dir: string) => void, RegExp][] = [
        ['others may enter', (dir) => (fs.mkdirSync(dir), fs.chmodSync(dir, 0o750)), /has mode 0750, .*chmod 0700/],
        ['it is a link', (dir) => fs.symlinkSync(newDir({ make: true }), dir), /is not a directory \(a link/],
        ['it is a file', (dir) => fs.writeFileSync(dir, ''), /EEXIST|is not a directory/],
    ];
    for (const [what, prepare, message] of refused) {
        test(`refused when ${what}`, () => {
            const dir = newDir();
            prepare(dir);
            assert.throws(
                () => open(dir),
                (error: QuadrilleError) => message.test(error.message),
            );
        });
    }

    const asRoot = { skip: process.geteuid?.() === 0 ? false : 'only root can give a file away' };
    test('rejected when it belongs to another user', asRoot, () => {
        const dir = newDir({ make: true });
        fs.chownSync(dir, 12345, 12345);
        assert.throws(() => open(dir), { code: 'ERR_QUADRILLE_UNSAFE_PATH', message: /belongs to user 12345/ });
    });

    const planted: [string, (file: string, content: Buffer) => void][] = [
        [
            'a link to a file',
            (file, content) => (
                fs.writeFileSync(`${file}~`, content, { mode: 0o600 }),
                fs.symlinkSync(`${file}~`, file)
            ),
        ],
        [
            'a file that others may read',
            (file, content) => (fs.writeFileSync(file, content), fs.chmodSync(file, 0o644)),
        ],
        ['a pipe, which would block', (file) => execFileSync('mkfifo', ['-m', '600', file])],
        ['a directory', (file) => fs.mkdirSync(file)],
        [
            'a file of a gigabyte',
            (file) => (fs.writeFileSync(file, '', { mode: 0o600 }), fs.truncateSync(file, 1 << 30)),
        ],
    ];
    for (const [what, plant] of planted) {
        test(`not used: ${what}`, (t) => {
            const dir = newDir();
            put(dir);
            const [file] = filesBelow(dir) as [string];
            const content = fs.readFileSync(file);
            fs.rmSync(file);
            plant(file, content);
            const errors = collectErrors(t);
            assert.equal(open(dir).take(key, 'prefer-fresh', Date.now()), undefined);
            assert.equal(errors.length, 1);
        });
    }
    test('not used: a file that belongs to another user', asRoot, (t) => {
        const dir = newDir();
        put(dir);
        fs.chownSync(filesBelow(dir)[0] as string, 12345, 12345);
        const errors = collectErrors(t);
        assert.equal(open(dir).take(key, 'prefer-fresh', Date.now()), undefined);
        assert.match(errors[0]?.message ?? '', /belongs to user 12345/);
    });
});

describe('encryption', { skip }, () => {
    test('a file contains no plaintext, and no two are equal', () => {
        const dir = newDir();
        const store = open(dir);
        const one = entry();
        store.put(key, one, Date.now());
        store.put(key, { ...one, bytes: Buffer.concat([one.bytes, Buffer.alloc(1)]) }, Date.now());
        store.close();
        const [first, second] = filesBelow(dir).map((file) => fs.readFileSync(file)) as [Buffer, Buffer];
        for (const clear of [one.bytes, Buffer.from(one.bytes.toString('base64')), Buffer.from('receivedAt')])
            assert.ok(!first.includes(clear));
        assert.equal(first.subarray(0, 4).toString(), 'QSS1');
        assert.ok(!first.subarray(4, 36).equals(second.subarray(4, 36)));
    });

    test('another key reads nothing, and removes unreadable files', (t) => {
        const dir = newDir();
        put(dir);
        collectErrors(t);
        // Names are keyed too, so the entry is not found.
        assert.equal(open(dir, { key: randomBytes(32) }).take(key, 'prefer-fresh', Date.now()), undefined);
        assert.ok(open(dir).take(key, 'prefer-fresh', Date.now()));
    });

    test('every flipped byte, every truncation, and a file of another origin are refused', (t) => {
        const dir = newDir();
        put(dir);
        const [file] = filesBelow(dir) as [string];
        const good = fs.readFileSync(file);
        const errors = collectErrors(t);
        const isTaken = (content: Buffer) => {
            for (const earlier of filesBelow(dir)) fs.rmSync(earlier);
            fs.writeFileSync(file, content, { mode: 0o600 });
            return open(dir).take(key, 'prefer-fresh', Date.now()) !== undefined;
        };
        const places = Array.from({ length: 40 }, (_, i) => Math.floor((i * (good.length - 1)) / 39));
        for (const at of places) {
            const flipped = Buffer.from(good);
            flipped[at] = (flipped[at] as number) ^ 1;
            assert.equal(isTaken(flipped), false, `byte ${at}`);
            assert.equal(isTaken(good.subarray(0, at)), false, `${at} bytes`);
        }
        assert.equal(errors.length, 80);
        assert.equal(isTaken(good), true);

        const other = newDir();
        const store = open(other);
        store.put(keyOf('another'), entry(), Date.now());
        store.close();
        assert.equal(isTaken(fs.readFileSync(filesBelow(other)[0] as string)), false);
        assert.equal(isTaken(randomBytes(500)), false);
    });

    test('keys: bytes, KeyObject, and files raw, hexadecimal or base64', () => {
        const folder = temporaryFolder();
        const file = (name: string, content: string | Buffer, mode = 0o600) => {
            fs.writeFileSync(join(folder, name), content, { mode });
            return { file: join(folder, name) };
        };
        const dir = newDir();
        put(dir);
        const same = [
            new Uint8Array(secret),
            createSecretKey(secret),
            file('raw', secret),
            file('hex', `${secret.toString('hex')}\n`),
            file('base64', `${secret.toString('base64')}\n`, 0o440),
        ];
        for (const one of same) assert.ok(open(dir, { key: one }).take(key, 'prefer-fresh', Date.now()));
        const bad: [FileSessionStoreOptions['key'], RegExp][] = [
            [randomBytes(16), /not 32 random bytes.*openssl rand/s],
            ['secret' as never, /not 32 random bytes/],
            [undefined as never, /not 32 random bytes/],
            [file('short', 'abc'), /short is not 32 random bytes/],
            [file('public', secret, 0o644), /can be read or changed by all users/],
            [{ file: join(folder, 'missing') }, /ENOENT/],
        ];
        for (const [one, message] of bad) assert.throws(() => open(dir, { key: one }), message);
    });

    test('a key inside the directory is refused, by a link too', () => {
        const dir = newDir({ make: true });
        fs.writeFileSync(join(dir, 'key'), secret, { mode: 0o600 });
        const link = join(temporaryFolder(), 'link');
        fs.symlinkSync(join(dir, 'key'), link);
        for (const file of [join(dir, 'key'), link])
            assert.throws(() => open(dir, { key: { file } }), /is inside the directory/);
    });
});

describe('disk errors fail no connection', { skip }, () => {
    test('full: ENOSPC of a small file system, then it recovers', tmpfs(), (t) => {
        const mounted = newDir({ make: true });
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32k,mode=700', 'none', mounted]);
        t.after(() => execFileSync('umount', [mounted]));
        const errors = collectErrors(t);
        const warnings = t.mock.method(process, 'emitWarning', () => {});
        const store = open(join(mounted, 'store'));
        fs.writeFileSync(join(mounted, 'ballast'), Buffer.alloc(28_000));
        const put = entry();
        for (let i = 0; i < 5; i++) {
            store.put(keyOf(`origin ${i}`), i === 0 ? put : entry(), Date.now());
            store.flush();
        }
        assert.ok(errors.length >= 1 && errors.every(({ code }) => code === 'ENOSPC'), errors.join());
        assert.ok(errors.length < 5, 'it paused instead of failing each time');
        assert.equal(warnings.mock.callCount(), 1);
        assert.deepEqual(store.take(keyOf('origin 0'), 'prefer-fresh', Date.now())?.bytes, put.bytes);
        assert.equal(fs.readdirSync(join(mounted, 'store')).filter((name) => name.startsWith('.tmp')).length, 0);
    });

    test('over the limit of file sizes: EFBIG', () => {
        const script = `
            const { FileSessionStore, TlsAgent } = require('quadrille-agent');
            const { entry, keyOf } = require(${JSON.stringify(join(__dirname, 'support', 'entries.js'))});
            const store = new FileSessionStore({ dir: ${JSON.stringify(newDir())}, key: Buffer.alloc(32) });
            store.put(keyOf('one'), entry(), Date.now());
            store.flush();
            console.log(store.take(keyOf('one'), 'strict', Date.now()) ? 'kept' : 'lost');`;
        const child = spawnSync('sh', ['-c', 'ulimit -f 0; exec "$0" -e "$1"', process.execPath, script], {
            encoding: 'utf8',
            cwd: __dirname,
        });
        assert.equal(child.stdout.trim(), 'kept');
        assert.match(child.stderr, /QuadrilleWarning: the TLS session store .* continues in memory: EFBIG/);
    });

    test('the directory vanishes while in use', (t) => {
        const dir = newDir();
        const store = open(dir);
        collectErrors(t);
        store.put(key, entry(), Date.now());
        store.flush();
        fs.rmSync(dir, { recursive: true });
        store.put(key, entry(), Date.now());
        store.flush();
        assert.ok(store.take(key, 'prefer-fresh', Date.now()));
    });

    test('incomplete files of a process that died are removed', () => {
        const dir = newDir({ make: true });
        const [old, recent] = [join(dir, '.tmp-0123'), join(dir, '.tmp-4567')];
        fs.writeFileSync(old, 'half');
        fs.writeFileSync(recent, 'being written');
        fs.utimesSync(old, 1, 1);
        open(dir);
        assert.deepEqual(fs.readdirSync(dir), ['.tmp-4567']);
    });
});

/** Skips the test if this user may not mount. */
function tmpfs() {
    const trial = temporaryFolder();
    const mounts = process.geteuid?.() === 0 && spawnSync('mount', ['-t', 'tmpfs', 'none', trial]).status === 0;
    if (mounts) execFileSync('umount', [trial]);
    return { skip: mounts ? false : 'this user may not mount a small file system; EFBIG is tested instead' };
}
