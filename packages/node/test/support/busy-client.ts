/** A process that sends requests continuously, each on a new connection: `busy-client.js full|resumed VERSION PORT CA`. */
import { readFileSync } from 'node:fs';
import * as https from 'node:https';
import type { SecureVersion } from 'node:tls';
import { TlsAgent } from 'quadrille-agent';

const [kind, version, port, caFile] = process.argv.slice(2) as [string, SecureVersion, string, string];
const options = { ca: readFileSync(caFile), minVersion: version, maxVersion: version, keepAlive: false };
const agent = kind === 'full' ? new https.Agent({ ...options, maxCachedSessions: 0 }) : new TlsAgent(options);

function ask(): void {
    https
        .get({ host: 'localhost', family: 4, port, path: '/', agent }, (response) => {
            response.resume();
            response.on('end', () => {
                process.send?.('answered');
                ask();
            });
        })
        .on('error', (error) => {
            console.error(error);
            process.exit(1);
        });
}

for (let i = 0; i < 4; i++) ask();
process.on('disconnect', () => process.exit());
