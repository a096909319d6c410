import * as https from 'node:https';
import * as tls from 'node:tls';

/**
 * The obvious design, to prove that tests can fail: sessions by host and port, kept from whatever connection, offered to
 * whatever connection. Many have been written so.
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
