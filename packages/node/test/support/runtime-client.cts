/**
 * Sends six requests in sequence with `TlsAgent` or `https.Agent`, and keeps or closes the connection each time:
 * `runtime-client.cjs ours|theirs kept|closed PORT CA`. Bun and Deno run it too.
 */
import { readFileSync } from 'node:fs';
import * as https from 'node:https';
import { TlsAgent } from 'quadrille-agent';

const [whose, life, port, caFile] = process.argv.slice(2) as [string, string, string, string];
const ca = readFileSync(caFile, 'utf8');
const options = { keepAlive: life === 'kept' };
const agent = whose === 'ours' ? new TlsAgent(options) : new https.Agent(options);

void (async () => {
    for (let i = 0; i < 6; i++) await get();
    process.exit();
})();

function get(): Promise<void> {
    return new Promise((resolve, reject) => {
        const target = { host: 'localhost', family: 4, port: Number(port), path: '/', agent, ca };
        const request = https.get(target, (response) => response.resume().on('end', resolve));
        request.on('error', reject);
    });
}
