import * as http from 'node:http';
import type { Node } from '../test/support/nodes.js';
import { Child, during } from './children.js';
import { median, Ratio, table, Target } from './report.js';
import type { Plan } from './requests.js';
import type { Setting } from './rivals.js';

/** Number of concurrent requests at the HTTP service. */
const CONCURRENCY = 16;
/** Idle sockets expire between a service's turns, so each turn must be long enough to outweigh its first handshakes. */
const SECONDS = 3;

interface Service {
    readonly label: string;
    readonly child: Child;
    /** The server that it calls. */
    readonly server: Child;
    readonly port: number;
    readonly rate: number[];
    readonly cpu: number[];
    readonly serverCpu: number[];
}

/**
 * The published trial: an HTTP service that calls an HTTPS service for each request, all on this machine. The
 * original used full handshakes; `https.Agent` keeps sessions today, so both are measured, and plain HTTP as the
 * lower bound.
 */
export async function compareProxies(plan: Plan, node: Node, version: Setting['version']): Promise<Target[]> {
    const server = new Child('server', node.path);
    const plain = new Child('plain', node.path);
    const { cert, key } = plan.certificate;
    const [port] = await server.ask<number[]>('listen', { cert, key, version, ports: 1 });
    const [plainPort] = await plain.ask<number[]>('listen');
    const services = await Promise.all(
        [
            {
                label: 'https.Agent without sessions, keep-alive off',
                rival: 'https.Agent, no sessions',
                keepAlive: false,
            },
            { label: 'https.Agent, keep-alive off', rival: 'https.Agent', keepAlive: false },
            { label: 'TlsAgent, keep-alive off', rival: 'TlsAgent', keepAlive: false },
            { label: 'http.Agent without TLS, keep-alive off', rival: 'http.Agent', keepAlive: false },
            { label: 'https.Agent', rival: 'https.Agent', keepAlive: true },
            { label: 'agentkeepalive', rival: 'agentkeepalive', keepAlive: true },
            { label: 'undici', rival: 'undici', keepAlive: true },
            { label: 'TlsAgent', rival: 'TlsAgent', keepAlive: true },
            { label: 'createDispatcher', rival: 'createDispatcher', keepAlive: true },
        ].map(async ({ label, rival, keepAlive }): Promise<Service> => {
            const child = new Child('proxy', node.path);
            const setting: Setting = { ca: plan.ca, version, keepAlive };
            const calls = rival === 'http.Agent' ? { server: plain, port: plainPort } : { server, port };
            const own = await child.ask<number>('listen', { rival, setting, port: calls.port });
            return { label, child, server: calls.server, port: own, rate: [], cpu: [], serverCpu: [] };
        }),
    );
    for (const service of services) await load(service.port, 0.5);
    for (let round = 0; round < plan.rounds; round++) {
        for (let i = 0; i < services.length; i++) {
            const service = services[(i + round) % services.length] as Service;
            let done = 0;
            const used = await during(
                [service.child, service.server],
                async () => (done = await load(service.port, SECONDS)),
            );
            service.rate.push(done / SECONDS);
            service.cpu.push((used[0]?.cpu ?? NaN) / done);
            service.serverCpu.push((used[1]?.cpu ?? NaN) / done);
        }
    }
    await Promise.all([server, plain, ...services.map(({ child }) => child)].map((child) => child.stop()));
    return report(services, `Node ${node.version}, ${version}`);
}

function report(services: Service[], where: string): Target[] {
    const [full, base] = services as [Service, Service];
    const both = (service: Service) => service.cpu.map((cpu, round) => cpu + (service.serverCpu[round] ?? NaN));
    const rows = services.map((service) => [
        service.label,
        median(service.rate),
        String(new Ratio(service.rate, full.rate)),
        String(new Ratio(service.rate, base.rate)),
        median(service.cpu),
        median(service.serverCpu),
        String(new Ratio(both(base), both(service))),
    ]);
    console.log(
        `\n${where}: HTTP service that calls an HTTPS service, RSA-2048, ${CONCURRENCY} requests at once; ` +
            'by the clock, and by the CPU of both services, which other programs disturb less',
    );
    const headings = ['', 'req/s', '/ no sessions', '/ https.Agent off', 'service us', 'https us', 'requests by CPU'];
    console.log(table(headings, rows));
    const rate = (label: string, than: Service) => {
        const service = services.find((one) => one.label === label) as Service;
        return new Ratio(service.rate, than.rate).median;
    };
    const off = 'TlsAgent, keep-alive off';
    return [
        new Target(`${where} proxy trial, ${off} / https.Agent without sessions`, rate(off, full), 2, 'at least'),
        new Target(
            `${where} proxy trial, TlsAgent / https.Agent, keep-alive off`,
            rate('TlsAgent', base),
            2,
            'at least',
        ),
    ];
}

/** Number of requests served within `seconds`. */
async function load(port: number, seconds: number): Promise<number> {
    const agent = new http.Agent({ keepAlive: true, maxSockets: CONCURRENCY });
    const end = performance.now() + seconds * 1000;
    let done = 0;
    const worker = async () => {
        while (performance.now() < end) {
            await get(port, agent);
            done++;
        }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    agent.destroy();
    return done;
}

function get(port: number, agent: http.Agent): Promise<void> {
    return new Promise((resolve, reject) => {
        const request = http.get({ host: '127.0.0.1', port, agent }, (response) => {
            response.resume();
            response.on('end', () =>
                response.statusCode === 200 ? resolve() : reject(new Error(`status ${response.statusCode}`)),
            );
        });
        request.on('error', reject);
    });
}
