import type { Node } from '../test/support/nodes.js';
import { Child, during } from './children.js';
import type { Plan } from './requests.js';
import type { Setting } from './rivals.js';

/** The load of each client. */
export interface Trial {
    /** Names of rivals. */
    readonly rivals: readonly string[];
    readonly setting: Omit<Setting, 'ca'>;
    /** Requests per round: few, so that a disturbance of the machine affects all alike. */
    readonly requests: number;
    /** Number of concurrent requests. */
    readonly atOnce: number;
    readonly rounds: number;
    /** Warm-up rounds, until V8 has compiled the measured code. */
    readonly warmUps: number;
}

/** Microseconds of CPU per request, by rival and round: each rival has its own process, in turn, on one Node. */
export async function clientCpu(plan: Plan, node: Node, trial: Trial): Promise<ReadonlyMap<string, number[]>> {
    const { setting, requests: count, atOnce } = trial;
    const server = new Child('server', node.path);
    const { cert, key } = plan.certificate;
    const ports = await server.ask<number[]>('listen', { cert, key, version: setting.version, ports: 1 });
    const clients = await Promise.all(
        trial.rivals.map(async (name) => {
            const child = new Child('client', node.path);
            await child.ask('prepare', { rival: name, setting: { ...setting, ca: plan.ca } });
            return { name, child, cpu: [] as number[] };
        }),
    );
    const run = (child: Child) => child.ask<number>('run', { count, ports, atOnce });
    for (let round = 0; round < trial.warmUps; round++) for (const { child } of clients) await run(child);
    for (let round = 0; round < trial.rounds; round++) {
        // A different one starts each time.
        for (let i = 0; i < clients.length; i++) {
            const { child, cpu } = clients[(i + round) % clients.length] as (typeof clients)[number];
            const [used] = await during([child], () => run(child));
            cpu.push((used?.cpu ?? NaN) / count);
        }
    }
    await Promise.all([server, ...clients.map(({ child }) => child)].map((child) => child.stop()));
    return new Map(clients.map(({ name, cpu }) => [name, cpu]));
}
