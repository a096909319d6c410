/**
 * Runs the tests on every available Node: `npm test [-- FILE...]`, with the names of test files. With QUADRILLE_NODES=one it
 * runs them on the Node that runs this program.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { LINES, type Node, nodes } from './support/nodes.js';
import { peers } from './support/peers.js';

interface Result {
    readonly passed: number;
    readonly failed: number;
    readonly skipped: number;
}

function main(): void {
    for (const peer of peers) console.log(`peer ${peer.name}: ${peer.version() ?? 'ABSENT, NOT TESTED AGAINST IT'}`);
    const chosen = process.argv.slice(2);
    const files = readdirSync(__dirname)
        .filter(
            (name) => name.endsWith('.test.js') && (chosen.length === 0 || chosen.some((one) => name.startsWith(one))),
        )
        .map((name) => join(__dirname, name));
    const one = process.env.QUADRILLE_NODES === 'one';
    const available = one ? [{ path: process.execPath, version: process.versions.node }] : nodes();
    const results = available.map((node) => runOn(node, files));
    const untested = LINES.filter((line) => !available.some(({ version }) => version.startsWith(`${line}.`)));
    if (untested.length > 0 && !one) console.log(`NOT TESTED on Node ${untested.join(', ')}`);
    const sum = (name: keyof Result) => results.reduce((all, result) => all + result[name], 0);
    console.log(`node tests: ${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`);
    process.exitCode = sum('failed') === 0 && results.every(({ passed }) => passed > 0) ? 0 : 1;
}

function runOn(node: Node, files: string[]): Result {
    const tap = join(__dirname, `node-${node.version}.tap`);
    const reporters = [
        '--test-reporter=spec',
        '--test-reporter-destination=stdout',
        '--test-reporter=tap',
        `--test-reporter-destination=${tap}`,
    ];
    const began = Date.now();
    const { stdout, stderr, status } = spawnSync(node.path, ['--test', ...reporters, ...files], {
        encoding: 'utf8',
        maxBuffer: 1 << 28,
    });
    const report = readFileSync(tap, 'utf8');
    rmSync(tap);
    const count = (name: string) => Number(new RegExp(`^# ${name} (\\d+)$`, 'm').exec(report)?.[1] ?? 0);
    const result = { passed: count('pass'), failed: count('fail') + count('cancelled'), skipped: count('skipped') };
    // A crashed runner counts as failed too.
    if (status !== 0 && result.failed === 0) result.failed = 1;
    if (result.failed > 0) console.log(stdout, stderr);
    const seconds = Math.round((Date.now() - began) / 1000);
    console.log(
        `Node ${node.version}: ${result.passed} passed, ${result.failed} failed, ${result.skipped} skipped in ${seconds} s`,
    );
    const reasons = new Set([...report.matchAll(/# SKIP (.+)$/gm)].map((match) => match[1]));
    for (const reason of reasons) console.log(`  skipped: ${reason}`);
    return result;
}

main();
