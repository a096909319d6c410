import { join } from 'node:path';
import { bindsSessionsToNames } from 'quadrille-agent';
import { temporaryFolder } from '../test/support/certificates.js';
import { Child, during } from './children.js';
import { table } from './report.js';
import type { Plan } from './requests.js';
import type { Setting } from './rivals.js';

const ORIGINS = 20;

/** Measures the fraction of first connections to 20 origins that resume, before and after a restart of the process. */
export async function compareRestart(plan: Plan, node: { path: string; version: string }): Promise<void> {
    const rows: string[][] = [];
    const isSafe = bindsSessionsToNames(node.version);
    const names = ['https.Agent', 'agentkeepalive', 'undici', 'TlsAgent', 'createDispatcher'];
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
        for (const name of names) {
            const server = new Child('server');
            const { cert, key } = plan.certificate;
            const ports = await server.ask<number[]>('listen', { cert, key, version, ports: ORIGINS });
            const ours = name === 'TlsAgent' || name === 'createDispatcher';
            const dir = ours && isSafe ? join(temporaryFolder(), 'store') : undefined;
            const shares: string[] = [];
            for (let life = 0; life < 2; life++) {
                const client = new Child('client', node.path);
                const setting: Setting = {
                    ca: plan.ca,
                    version,
                    keepAlive: false,
                    ...(dir === undefined ? {} : { dir }),
                };
                await client.ask('prepare', { rival: name, setting });
                for (let turn = 0; turn < 2; turn++) {
                    const [used] = await during([server], () => client.ask('run', { count: ORIGINS, ports }));
                    if (used) shares.push(`${Math.round((100 * used.resumed) / (used.full + used.resumed))} %`);
                }
                await client.stop();
            }
            rows.push([`${version}  ${name}`, ...shares]);
            await server.stop();
        }
    }
    console.log(
        `\nShare of connections resumed: ${ORIGINS} origins, one connection to each, keep-alive off, Node ${node.version}`,
    );
    if (!isSafe) console.log('  (this Node has the memory store only: CVE-2026-48934)');
    console.log(table(['', 'first', 'second', 'first after a restart', 'second'], rows));
}
