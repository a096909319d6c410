import * as https from 'node:https';
import * as tls from 'node:tls';

/**
 * The obvious design, common in practice, to prove that tests can fail: sessions by host and port, stored from any
 * connection, offered on any connection.
 */
export class NaiveAgent extends https.Agent {
    readonly #sessions = new Map<string, Buffer>();

    constructor(options: https.AgentOptions = {}) {
        super({ ...options, maxCachedSessions: 0 });
    }

    override createConnection(options: tls.ConnectionOptions): tls.TLSSocket {
        const key = `${options.host}:${options.port}`;
        const socket = tls.connect({ ...options, session: this.#sessions.get(key) });
        socket.on('session', (session: Buffer) => this.#sessions.set(key, session));
        return socket;
    }
}
