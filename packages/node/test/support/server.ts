import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import * as https from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Certificate } from './certificates.js';

/** A Node server with counters. */
export interface CountingServer {
    readonly port: number;
    readonly server: https.Server;
    /** Handshakes of each kind, and the maximum number of concurrent connections. */
    readonly seen: { full: number; resumed: number; open: number; mostOpen: number; requests: number };
    close(): Promise<void>;
}

export async function serve(
    certificate: Certificate,
    options: https.ServerOptions & { port?: number; handler?: Handler } = {},
): Promise<CountingServer> {
    const { handler = (_request, response) => response.end('ok'), port = 0, ...tlsOptions } = options;
    const seen = { full: 0, resumed: 0, open: 0, mostOpen: 0, requests: 0 };
    const server = https.createServer(
        { cert: certificate.cert, key: certificate.key, ...tlsOptions },
        (request, response) => {
            seen.requests++;
            handler(request, response);
        },
    );
    server.on('connection', (socket) => {
        seen.mostOpen = Math.max(seen.mostOpen, ++seen.open);
        socket.once('close', () => seen.open--);
        socket.on('error', () => {});
    });
    server.on('secureConnection', (socket: TLSSocket) => seen[socket.isSessionReused() ? 'resumed' : 'full']++);
    server.on('tlsClientError', () => {});
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return {
        port: (server.address() as AddressInfo).port,
        server,
        seen,
        close: async () => {
            server.closeAllConnections();
            server.close();
            await once(server, 'close');
        },
    };
}

export type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;
