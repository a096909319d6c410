/** The package as users get it: packed, installed, imported, required, compiled against; and its README, run. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { bindsSessionsToNames } from 'quadrille-agent';
import { Authority, temporaryFolder } from './support/certificates.js';
import { serve } from './support/server.js';

const run = promisify(execFile);
const root = join(__dirname, '..', '..');
const project = temporaryFolder();
const tarballs = temporaryFolder();
let packed: { filename: string; files: { path: string }[] };

before(() => {
    // Already built: a build now would remove files that other tests use.
    execFileSync('node', ['scripts/license.mjs'], { cwd: root });
    const output = execFileSync(
        'npm',
        ['pack', '--ignore-scripts', '--json', '--silent', '--pack-destination', tarballs],
        { cwd: root, encoding: 'utf8' },
    );
    const parsed = JSON.parse(output) as (typeof packed)[] | Record<string, typeof packed>;
    packed = Object.values(parsed)[0] as typeof packed;
});

test('npm pack contains the build output, the README, the licence, and nothing else', () => {
    const modules = readdirSync(join(root, 'src')).flatMap((source) => {
        const [name, suffix] = [source.replace(/\.m?ts$/, ''), source.endsWith('.mts') ? 'mjs' : 'js'];
        return [`dist/${name}.${suffix}`, `dist/${name}.d.${suffix === 'mjs' ? 'mts' : 'ts'}`];
    });
    const expected = [...modules, 'LICENSE', 'README.md', 'package.json'].sort();
    assert.deepEqual(packed.files.map(({ path }) => path).sort(), expected);
});

test('no dependencies, no scripts on installation', () => {
    const description = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
        string,
        Record<string, string>
    >;
    assert.equal(description.dependencies, undefined);
    for (const script of ['preinstall', 'install', 'postinstall'])
        assert.equal(description.scripts?.[script], undefined);
});

describe('README', () => {
    const snippets = [...readFileSync(join(root, 'README.md'), 'utf8').matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(
        ([, language = '', code = '']) => ({ language, code }),
    );
    let environment: NodeJS.ProcessEnv;
    let close: () => Promise<void>;

    before(async () => {
        const authority = new Authority('Test CA');
        const server = await serve(authority.issue(['api.example.com']));
        close = () => server.close();
        environment = {
            ...process.env,
            NODE_EXTRA_CA_CERTS: authority.caFile,
            REDIRECT_PORT: String(server.port),
            NODE_OPTIONS: '',
        };
        writeFileSync(join(project, 'package.json'), '{ "private": true }');
    });

    for (const [i, { language, code }] of snippets.entries()) {
        test(`snippet ${i + 1}: ${code.split('\n').find((line) => line.includes('agent')) ?? code.split('\n')[0]}`, async () => {
            if (language === 'sh') return void (await runShell(code));
            assert.ok(language === 'js' || language === 'cjs', `a snippet in ${language} is not run by this test`);
            const file = join(project, `snippet${i}.${language === 'js' ? 'mjs' : 'cjs'}`);
            writeFileSync(file, code);
            const running = run(process.execPath, ['--require', join(__dirname, 'support', 'redirect.js'), file], {
                cwd: project,
                env: environment,
            });
            if (code.includes('FileSessionStore') && !bindsSessionsToNames()) {
                await assert.rejects(running, /ERR_QUADRILLE_UNSAFE_NODE/);
                return;
            }
            const { stdout, stderr } = await running;
            assert.equal(stderr, '');
            assert.ok(stdout.length > 0, 'it prints nothing');
        });
    }

    test('there are snippets, and the server is closed', async () => {
        assert.ok(snippets.length >= 8);
        await close();
    });

    /** Runs the snippet with the package packed before, and installs it without the network. */
    async function runShell(code: string): Promise<void> {
        const place = '/path/to/quadrille/packages/node';
        const tarball = join(tarballs, packed.filename);
        const command = code.replace(
            `(cd ${place} && npm ci && npm pack)\nnpm install ${place}/${packed.filename}\n`,
            `npm install --offline --no-audit --no-fund --silent ${tarball}\n`,
        );
        assert.ok(!command.includes(place), `the file has another name: ${code}`);
        await run('sh', ['-ec', command], { cwd: project });
        for (const name of ['axios', 'undici', 'prom-client']) link(name);
    }
});

describe('the installed package', () => {
    test('import and require give the same objects', async () => {
        const script = `
            import { createRequire } from 'node:module';
            import * as imported from 'quadrille-agent';
            import * as undici from 'quadrille-agent/undici';
            const require = createRequire(import.meta.url);
            const required = { ...require('quadrille-agent'), ...require('quadrille-agent/undici') };
            const all = { ...imported, ...undici };
            const names = Object.keys(required).filter((name) => name !== '__esModule').sort();
            if (JSON.stringify(names) !== JSON.stringify(Object.keys(all).sort())) throw new Error(names + ' / ' + Object.keys(all));
            for (const name of names) if (all[name] !== required[name]) throw new Error(name);
            console.log(names.length);`;
        writeFileSync(join(project, 'same.mjs'), script);
        const { stdout } = await run(process.execPath, ['same.mjs'], { cwd: project });
        assert.ok(Number(stdout) >= 8);
    });

    test('its types serve both kinds of modules, and fit https, undici and prom-client', async () => {
        const script = `
            import * as https from 'node:https';
            import * as prometheus from 'prom-client';
            import { setGlobalDispatcher } from 'undici';
            import { type AgentMetrics, MemorySessionStore, registerPrometheus, TlsAgent } from 'quadrille-agent';
            import { createDispatcher } from 'quadrille-agent/undici';
            const store = new MemorySessionStore({ maxAge: '24h' });
            const agent: https.Agent = new TlsAgent({ store, policy: 'fast', freeSocketTimeout: '4s', ca: 'x' });
            const dispatcher = createDispatcher({ store, connections: 50, connect: { ca: 'x', identityTag: 'pin' } });
            setGlobalDispatcher(dispatcher);
            registerPrometheus(prometheus, dispatcher);
            export const metrics: AgentMetrics = (agent as TlsAgent).metrics();
            // @ts-expect-error not a policy
            new TlsAgent({ policy: 'quick' });`;
        for (const suffix of ['mts', 'cts']) writeFileSync(join(project, `types.${suffix}`), script);
        for (const name of ['@types/node', 'undici-types']) link(name);
        const options = [
            '--noEmit',
            '--strict',
            '--module',
            'node20',
            '--target',
            'es2022',
            '--types',
            'node',
            '--skipLibCheck',
            'false',
        ];
        // prom-client and undici have type errors under a strict library check.
        const lenient = [...options.slice(0, -1), 'true'];
        const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
        await run('node', [compiler, ...lenient, 'types.mts', 'types.cts'], { cwd: project }).catch(
            (error: { stdout: string }) => assert.fail(error.stdout),
        );
    });
});

function link(name: string): void {
    const target = join(project, 'node_modules', name);
    mkdirSync(dirname(target), { recursive: true });
    try {
        symlinkSync(join(root, 'node_modules', name), target);
    } catch (error) {
        assert.equal((error as NodeJS.ErrnoException).code, 'EEXIST');
    }
}
