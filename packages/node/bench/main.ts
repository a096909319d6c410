/**
 * Cost of outbound HTTPS, side by side: `npm run bench [-- --rounds N] [--only requests|closed|kept|restart|proxy]
 * [--node 20|22|24]`.
 */
import { cpus, loadavg } from 'node:os';
import { Authority } from '../test/support/certificates.js';
import { nodes } from '../test/support/nodes.js';
import { compareClosed } from './closed.js';
import { compareKept } from './kept.js';
import { compareProxies } from './proxy.js';
import type { Target } from './report.js';
import { compareRequests, type Plan } from './requests.js';
import { compareRestart } from './restart.js';

async function main(): Promise<void> {
    const authority = new Authority('Bench CA');
    const certificate = authority.issue(['localhost', '127.0.0.1'], { keyType: 'RSA' });
    const plan: Plan = { rounds: Number(option('rounds') ?? 11), certificate, ca: authority.ca };
    const only = option('only');
    console.log(
        `Node ${process.versions.node}, OpenSSL ${process.versions.openssl}, ${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}`,
    );
    console.log(
        `load average ${loadavg()[0]?.toFixed(1)}; medians of ${plan.rounds} interleaved rounds, CPU time; ratios with least and greatest`,
    );
    const line = option('node');
    const chosen = nodes().filter(({ version }) => line === undefined || version.startsWith(`${line}.`));
    const targets: Target[] = [];
    if (only === undefined || only === 'requests') {
        for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
            targets.push(...(await compareRequests(plan, version)));
        }
    }
    if (only === undefined || only === 'closed') {
        for (const node of chosen) {
            for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
                targets.push(...(await compareClosed(plan, node, version)));
        }
    }
    if (only === undefined || only === 'kept') {
        for (const node of chosen) targets.push(...(await compareKept(plan, node)));
    }
    if (only === undefined || only === 'restart') {
        for (const node of chosen) await compareRestart(plan, node);
    }
    if (only === undefined || only === 'proxy') {
        for (const node of chosen) {
            for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
                targets.push(...(await compareProxies(plan, node, version)));
        }
    }
    console.log(`\n${targets.map(String).join('\n')}`);
}

function option(name: string): string | undefined {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? undefined : process.argv[at + 1];
}

void main().catch((error: unknown) => {
    console.error(error);
    process.exitCode = 1;
});
