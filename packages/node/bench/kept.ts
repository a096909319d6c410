import type { Node } from '../test/support/nodes.js';
import { clientCpu } from './clients.js';
import { median, Ratio, table, Target } from './report.js';
import type { Plan } from './requests.js';
import { SOCKETS } from './rivals.js';

const RIVALS = ['https.Agent', 'undici', 'TlsAgent', 'createDispatcher'];

/**
 * Client cost of a request on an open connection, compared with `https.Agent` with keep-alive on: with as many
 * concurrent requests as sockets, so that no request waits, and with twice as many.
 */
export async function compareKept(plan: Plan, node: Node): Promise<Target[]> {
    const targets: Target[] = [];
    for (const atOnce of [SOCKETS, 2 * SOCKETS]) {
        const ratio = await compare(plan, node, atOnce);
        const what = `Node ${node.version}, kept connections, ${atOnce} requests on ${SOCKETS} sockets, TlsAgent / https.Agent`;
        targets.push(new Target(what, ratio, 1.05, 'at most'));
    }
    return targets;
}

async function compare(plan: Plan, node: Node, atOnce: number): Promise<number> {
    const cpu = await clientCpu(plan, node, {
        rivals: RIVALS,
        setting: { version: 'TLSv1.3', keepAlive: true },
        requests: 1000,
        atOnce,
        rounds: 4 * plan.rounds,
        warmUps: 12,
    });
    const base = cpu.get('https.Agent') ?? [];
    const rows = [...cpu].map(([name, series]) => [name, median(series), String(new Ratio(series, base))]);
    console.log(`\nNode ${node.version}, TLS 1.3, connections kept, ${atOnce} requests at once on ${SOCKETS} sockets`);
    console.log(table(['', 'client us', '/ https.Agent'], rows));
    return new Ratio(cpu.get('TlsAgent') ?? [], base).median;
}
