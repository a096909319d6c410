/** A process that makes one connection with sessions on disk, and prints its kind: `restarted.js ours|naive DIR PORT [CA [VERSION]]`. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as tls from 'node:tls';
import { FileSessionStore, TlsAgent } from 'quadrille-agent';
import { request } from './client.js';

const [design, dir, port, caFile, version] = process.argv.slice(2) as [
    string,
    string,
    string,
    string?,
    tls.SecureVersion?,
];
const ca = caFile ? { ca: readFileSync(caFile) } : {};
const versions = version ? { minVersion: version, maxVersion: version } : {};

void (design === 'ours' ? ours() : naive()).then(
    (resumed) => console.log(resumed ? 'resumed' : 'full'),
    (error: NodeJS.ErrnoException) => console.log(error.code ?? error.message),
);

async function ours(): Promise<boolean> {
    const store = new FileSessionStore({ dir, key: Buffer.alloc(32, 1) });
    const agent = new TlsAgent({ store, ...ca, ...versions });
    const answer = await request(Number(port), { agent });
    agent.destroy();
    // Not flushed explicitly: the exit of the process must write.
    return answer.resumed;
}

/** One file with one session. */
function naive(): Promise<boolean> {
    mkdirSync(dir, { recursive: true });
    const file = join(dir, 'session');
    let session: Buffer | undefined;
    try {
        session = readFileSync(file);
    } catch {
        // The first time.
    }
    return new Promise((resolve, reject) => {
        const socket = tls.connect({ host: '127.0.0.1', port: Number(port), servername: 'localhost', session, ...ca });
        socket.on('session', (bytes) => writeFileSync(file, bytes));
        socket.on('error', reject);
        socket.on('secureConnect', () => {
            const resumed = socket.isSessionReused();
            setTimeout(() => {
                socket.destroy();
                resolve(resumed);
            }, 50);
        });
    });
}
