import type { Certificate } from '../test/support/certificates.js';
import { Child, during } from './children.js';
import { median, Ratio, table, Target } from './report.js';
import { LEAST, rivals, type Setting } from './rivals.js';

export interface Plan {
    readonly rounds: number;
    readonly certificate: Certificate;
    readonly ca: string;
}

/**
 * Cost of a rival in each round: microseconds of CPU per request, requests per second, fraction of resumed
 * connections.
 */
interface Series {
    readonly name: string;
    readonly client: number[];
    readonly server: number[];
    readonly rate: number[];
    full: number;
    resumed: number;
}

/** Measures every rival against one server, in turn, round by round; each request uses a new connection. */
export async function compareRequests(plan: Plan, version: Setting['version']): Promise<Target[]> {
    const server = new Child('server');
    const { cert, key } = plan.certificate;
    const ports = await server.ask<number[]>('listen', { cert, key, version, ports: 1 });
    const clients = await Promise.all(
        rivals
            .filter(({ name }) => name !== 'http.Agent' && name !== LEAST)
            .map(async ({ name }) => {
                const client = new Child('client');
                await client.ask('prepare', { rival: name, setting: { ca: plan.ca, version, keepAlive: false } });
                const series: Series = { name, client: [], server: [], rate: [], full: 0, resumed: 0 };
                return { client, series };
            }),
    );
    // Small, so that a disturbance of the machine affects all alike.
    const count = 200;
    for (const { client } of clients) await client.ask('run', { count, ports });
    for (let round = 0; round < plan.rounds; round++) {
        // A different one starts each time.
        for (let i = 0; i < clients.length; i++) {
            const { client, series } = clients[(i + round) % clients.length] as (typeof clients)[number];
            let milliseconds = 0;
            const used = await during(
                [client, server],
                async () => (milliseconds = await client.ask<number>('run', { count, ports })),
            );
            const [ofClient, ofServer] = used as [(typeof used)[0], (typeof used)[0]];
            series.client.push(ofClient.cpu / count);
            series.server.push(ofServer.cpu / count);
            series.rate.push(count / (milliseconds / 1000));
            series.full += ofServer.full;
            series.resumed += ofServer.resumed;
        }
    }
    await Promise.all([server, ...clients.map(({ client }) => client)].map((child) => child.stop()));
    return report(
        clients.map(({ series }) => series),
        version,
    );
}

function report(all: Series[], version: Setting['version']): Target[] {
    const base = all[0] as Series;
    const rows = all.map((series) => {
        const connections = series.full + series.resumed;
        const share = connections === 0 ? '-' : `${Math.round((100 * series.resumed) / connections)} %`;
        const ratios = [new Ratio(series.client, base.client), new Ratio(series.server, base.server)].map(String);
        return [
            series.name,
            median(series.client),
            ratios[0] ?? '',
            median(series.server),
            ratios[1] ?? '',
            median(series.rate),
            share,
        ];
    });
    console.log(`\n${version.replace('v', ' ')}, RSA-2048, keep-alive off`);
    console.log(table(['', 'client us', `/ ${base.name}`, 'server us', `/ ${base.name}`, 'req/s', 'resumed'], rows));
    const ours = all.find(({ name }) => name === 'TlsAgent') as Series;
    const shared = all[1] as Series;
    console.log(
        `  against full handshakes with one SecureContext too (${shared.name}): client ${String(new Ratio(ours.client, shared.client))}, server ${String(new Ratio(ours.server, shared.server))}`,
    );
    const bound = version === 'TLSv1.3' ? 0.55 : 0.4;
    return [
        new Target(
            `${version} reconnecting, server CPU against full handshakes`,
            new Ratio(ours.server, base.server).median,
            bound,
            'at most',
        ),
        new Target(
            `${version} reconnecting, client CPU against full handshakes`,
            new Ratio(ours.client, base.client).median,
            0.75,
            'at most',
        ),
    ];
}
