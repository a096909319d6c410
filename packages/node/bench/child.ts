/** The measured processes: `child.js server|plain|client|proxy`. They receive commands from the bench over IPC. */
import * as http from 'node:http';
import * as https from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { rivals, type Send, type Setting, SOCKETS } from './rivals.js';

export interface Order {
    readonly id: number;
    readonly command: string;
    readonly argument: never;
}

/** CPU time in microseconds since the process started, and the role's counters. */
export interface State {
    readonly cpu: number;
    readonly full: number;
    readonly resumed: number;
}

const counts = { full: 0, resumed: 0 };

const roles: Record<string, Record<string, (argument: never) => unknown>> = {
    server: {
        async listen({
            cert,
            key,
            version,
            ports,
        }: {
            cert: string;
            key: string;
            version: Setting['version'];
            ports: number;
        }) {
            const limits = { cert, key, minVersion: version, maxVersion: version } as const;
            return Promise.all(Array.from({ length: ports }, () => listen(https.createServer(limits, answer))));
        },
    },
    plain: {
        listen: async () => [await listen(http.createServer(answer))],
    },
    client: {
        prepare: ({ rival, setting }: { rival: string; setting: Setting }) => void (send = start(rival, setting)),
        async run({ count, ports, atOnce = SOCKETS }: { count: number; ports: number[]; atOnce?: number }) {
            const began = performance.now();
            let left = count;
            const worker = async () => {
                while (left > 0) await send(ports[--left % ports.length] as number);
            };
            await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker));
            return performance.now() - began;
        },
    },
    proxy: {
        async listen({ rival, setting, port }: { rival: string; setting: Setting; port: number }) {
            send = start(rival, setting);
            return listen(
                http.createServer((_request, response) => {
                    send(port).then(
                        () => response.end('ok'),
                        (error: Error) => response.writeHead(502).end(error.message),
                    );
                }),
            );
        },
    },
};

let send: Send = () => Promise.reject(new Error('not prepared'));

function start(rival: string, setting: Setting): Send {
    const found = rivals.find(({ name }) => name === rival);
    if (!found) throw new Error(`no rival ${rival}`);
    return found.start(setting);
}

function answer(_request: http.IncomingMessage, response: http.ServerResponse): void {
    response.end('ok');
}

function listen(server: http.Server | https.Server): Promise<number> {
    server.on('secureConnection', (socket: TLSSocket) => counts[socket.isSessionReused() ? 'resumed' : 'full']++);
    return new Promise((resolve) =>
        server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)),
    );
}

function state(): State {
    const { user, system } = process.cpuUsage();
    return { cpu: user + system, ...counts };
}

const role = { ...roles[process.argv[2] ?? ''], state };

process.on('message', ({ id, command, argument }: Order) => {
    const action = role[command as keyof typeof role] as ((argument: never) => unknown) | undefined;
    Promise.resolve(argument)
        .then((given) => action?.(given))
        .then(
            (result) => process.send?.({ id, result }),
            (error: Error) => process.send?.({ id, error: error.stack }),
        );
});
process.on('disconnect', () => process.exit());
