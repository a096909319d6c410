import type { Node } from '../test/support/nodes.js';
import { clientCpu } from './clients.js';
import { median, Ratio, table, Target } from './report.js';
import type { Plan } from './requests.js';
import { LEAST, type Setting, SOCKETS } from './rivals.js';

const RIVALS = ['https.Agent', 'TlsAgent', LEAST];

/**
 * Client cost of a request on a new connection, keep-alive off for all, compared with `https.Agent`, which keeps
 * sessions, and with the minimum for an agent built on Node's. By the server's address, because the cost of a name
 * lookup is equal for all.
 */
export async function compareClosed(plan: Plan, node: Node, version: Setting['version']): Promise<Target[]> {
    const cpu = await clientCpu(plan, node, {
        rivals: RIVALS,
        setting: { version, keepAlive: false, host: '127.0.0.1' },
        requests: 200,
        atOnce: SOCKETS,
        rounds: plan.rounds,
        warmUps: 3,
    });
    const base = cpu.get('https.Agent') ?? [];
    const rows = [...cpu].map(([name, series]) => [name, median(series), String(new Ratio(base, series))]);
    console.log(`\nNode ${node.version}, ${version.replace('v', ' ')}, connections closed after each request`);
    console.log(table(['', 'client us', 'https.Agent / this'], rows));
    const gain = (name: string) => new Ratio(base, cpu.get(name) ?? []).median;
    const where = `Node ${node.version}, ${version}, keep-alive off, https.Agent / `;
    // The target is a fraction of the minimum, which no agent can reach fully.
    return [
        new Target(
            `${where}TlsAgent (the least agent: ${gain(LEAST).toFixed(2)})`,
            gain('TlsAgent'),
            Math.round(80 * gain(LEAST)) / 100,
            'at least',
        ),
    ];
}
