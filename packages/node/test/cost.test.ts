/** CPU profile of a Node process that calls a server, by `quadrille profile system`: without sessions, and with ours. */
import assert from 'node:assert/strict';
import { execFile, execFileSync, fork } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { Authority, temporaryFolder } from './support/certificates.js';
import { peers, quadrille } from './support/peers.js';

interface Report {
    readonly samples: number;
    readonly shares: Readonly<Record<string, number>>;
    readonly steps: Readonly<Record<string, number>>;
}

test('resumption takes the asymmetric work out of a client', { skip: cannotSample() }, async (t) => {
    const authority = new Authority('Test CA');
    const caFile = join(temporaryFolder(), 'ca.pem');
    writeFileSync(caFile, authority.ca);
    const gateway = peers.find(({ name }) => name === 'Quadrille');
    assert.ok(gateway);
    const server = await gateway.start(authority.issue(['localhost'], { keyType: 'RSA' }));
    t.after(() => server.stop());
    const full = await sampled('full', server.port, caFile);
    const resumed = await sampled('resumed', server.port, caFile);
    t.diagnostic(`asymmetric: ${asymmetric(full).toFixed(3)} in full, ${asymmetric(resumed).toFixed(3)} resumed`);
    assert.ok(asymmetric(full) > 0.04, JSON.stringify(full));
    assert.ok(asymmetric(resumed) < asymmetric(full) / 3, JSON.stringify({ full, resumed }));
    const share = (report: Report, step: string) => report.steps[step] ?? 0;
    // Verification is so cheap that a few hundred samples may miss it.
    for (const step of ['key-exchange', 'signature', 'context'])
        assert.ok(share(full, step) > 0, `${step}: ${JSON.stringify(full)}`);
    for (const step of ['key-exchange', 'context'])
        assert.ok(share(resumed, step) < share(full, step) / 2, `${step}: ${JSON.stringify({ full, resumed })}`);
});

/** TLS 1.2, in which a resumed handshake exchanges no keys. */
async function sampled(kind: 'full' | 'resumed', port: number, caFile: string): Promise<Report> {
    const child = fork(join(__dirname, 'support/busy-client.js'), [kind, 'TLSv1.2', String(port), caFile]);
    try {
        await new Promise<void>((resolve, reject) => {
            let answers = 0;
            child.on('message', () => ++answers === 100 && resolve());
            child.on('exit', (code) => reject(new Error(`the client ended with ${code}`)));
        });
        const sampling = [
            'profile',
            'system',
            '--pid',
            String(child.pid),
            '--seconds',
            '3',
            '--frequency',
            '199',
            '--json',
        ];
        const { stdout } = await promisify(execFile)(quadrille(), sampling);
        return JSON.parse(stdout) as Report;
    } finally {
        child.removeAllListeners('exit');
        child.kill();
    }
}

function asymmetric({ shares }: Report): number {
    const classes = ['rsa', 'elliptic-curve', 'finite-field', 'ml-kem'];
    return classes.reduce((sum, name) => sum + (shares[name] ?? 0), 0);
}

/** Returns the reason that sampling is not possible, or false. */
function cannotSample(): string | false {
    if (peers.every(({ name, version }) => name !== 'Quadrille' || version() === undefined))
        return 'Quadrille is not installed: no client is sampled';
    const probe = ['record', '--quiet', '--event', 'cpu-clock', '--output', '/dev/null', '--', 'true'];
    try {
        execFileSync('perf', probe, { stdio: 'ignore' });
        return false;
    } catch {
        return 'perf cannot be used here: no client is sampled';
    }
}
