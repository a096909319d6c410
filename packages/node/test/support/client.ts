import { setTimeout as delay } from 'node:timers/promises';
import * as https from 'node:https';
import type { TLSSocket } from 'node:tls';

export interface Answer {
    readonly status: number;
    readonly body: string;
    readonly resumed: boolean;
    readonly authorized: boolean;
    readonly protocol: string | null;
    readonly reusedSocket: boolean;
}

export interface RequestOptions extends https.RequestOptions {
    body?: string | Buffer;
    identityTag?: string;
}

/** Sends one request to 127.0.0.1, under the name `localhost` or `servername`; returns the whole response. */
export function request(port: number, options: RequestOptions): Promise<Answer> {
    const { body, ...rest } = options;
    return new Promise((resolve, reject) => {
        const sent = https.request({ host: 'localhost', family: 4, port, lookup: toLoopback, ...rest }, (response) => {
            // The response's socket: it returns to the pool at the end of the response.
            const socket = response.socket as TLSSocket;
            const { authorized } = socket;
            const [resumed, protocol] = [socket.isSessionReused(), socket.getProtocol()];
            const chunks: Buffer[] = [];
            response.on('data', (chunk: Buffer) => chunks.push(chunk));
            response.on('error', reject);
            response.on('end', () =>
                resolve({
                    status: response.statusCode ?? 0,
                    body: Buffer.concat(chunks).toString(),
                    resumed,
                    authorized,
                    protocol,
                    reusedSocket: sent.reusedSocket,
                }),
            );
        });
        sent.on('error', reject);
        sent.end(body);
    });
}

/** Waits until `condition` holds; fails after `limit` milliseconds. */
export async function eventually(condition: () => boolean, what: string, limit = 15_000): Promise<void> {
    const end = Date.now() + limit;
    while (!condition()) {
        if (Date.now() > end) throw new Error(`not within ${limit} ms: ${what}`);
        await delay(5);
    }
}

/** Every name is this machine. */
export const toLoopback = ((_name: string, options: { all?: boolean }, callback: (...args: unknown[]) => void) => {
    if (options.all) callback(null, [{ address: '127.0.0.1', family: 4 }]);
    else callback(null, '127.0.0.1', 4);
}) as never;
