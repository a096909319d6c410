import type { Node } from '../test/support/nodes.js';
import { Child, during } from './children.js';
import { median, Ratio, table, Target } from './report.js';
import type { Plan } from './requests.js';
import { SOCKETS } from './rivals.js';

/** Small, so that a disturbance of the machine hits all alike. */
const REQUESTS = 1000;
const RIVALS = ['https.Agent', 'undici', 'TlsAgent', 'createDispatcher'];

/**
 * What a request on an open connection costs the client, beside `https.Agent` with keep-alive on: with as many requests at
 * once as sockets, so that none waits, and with twice as many.
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
    const server = new Child('server', node.path);
    const { cert, key } = plan.certificate;
    const ports = await server.ask<number[]>('listen', { cert, key, version: 'TLSv1.3', ports: 1 });
    const clients = await Promise.all(RIVALS.map((name) => prepare(name, plan, node)));
    const run = ({ child }: Client) => child.ask<number>('run', { count: REQUESTS, ports, atOnce });
    // Until V8 has compiled what is measured.
    for (let round = 0; round < 12; round++) for (const client of clients) await run(client);
    for (let round = 0; round < 4 * plan.rounds; round++) {
        for (let i = 0; i < clients.length; i++) {
            const client = clients[(i + round) % clients.length] as Client;
            const [used] = await during([client.child], () => run(client));
            client.cpu.push((used?.cpu ?? NaN) / REQUESTS);
        }
    }
    await Promise.all([server, ...clients.map(({ child }) => child)].map((child) => child.stop()));
    return report(clients, node, atOnce);
}

interface Client {
    readonly name: string;
    readonly child: Child;
    /** Microseconds a request, by round. */
    readonly cpu: number[];
}

async function prepare(name: string, plan: Plan, node: Node): Promise<Client> {
    const child = new Child('client', node.path);
    await child.ask('prepare', { rival: name, setting: { ca: plan.ca, version: 'TLSv1.3', keepAlive: true } });
    return { name, child, cpu: [] };
}

function report(clients: Client[], node: Node, atOnce: number): number {
    const base = clients.find(({ name }) => name === 'https.Agent') as Client;
    const rows = clients.map(({ name, cpu }) => [name, median(cpu), String(new Ratio(cpu, base.cpu))]);
    console.log(`\nNode ${node.version}, TLS 1.3, connections kept, ${atOnce} requests at once on ${SOCKETS} sockets`);
    console.log(table(['', 'client us', '/ https.Agent'], rows));
    const ours = clients.find(({ name }) => name === 'TlsAgent') as Client;
    return new Ratio(ours.cpu, base.cpu).median;
}
