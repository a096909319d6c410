import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { Authority, temporaryFolder } from './support/certificates.js';
import { runtime } from './support/runtimes.js';
import { serve } from './support/server.js';

const authority = new Authority('Test CA');
const certificate = authority.issue(['localhost']);
const run = promisify(execFile);

/** Values in README.md: the number of six requests that resumed, with connections closed after each. */
const RESUMED = {
    bun: { 'TLSv1.2': { ours: 5, theirs: 5 }, 'TLSv1.3': { ours: 0, theirs: 5 } },
    deno: { 'TLSv1.2': { ours: 0, theirs: 0 }, 'TLSv1.3': { ours: 0, theirs: 0 } },
};

for (const name of ['bun', 'deno'] as const) {
    const found = runtime(name);
    const skip = found ? false : `${name} is not installed: NOT TESTED WITH IT`;
    describe(`${name} ${found?.version ?? ''}`, { skip }, () => {
        for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
            for (const whose of ['ours', 'theirs'] as const) {
                test(`${version}, ${whose}: closed connections resume as documented, kept ones are reused`, async (t) => {
                    const server = await serve(certificate, { minVersion: version, maxVersion: version });
                    t.after(() => server.close());
                    const ca = join(temporaryFolder(), 'ca.pem');
                    writeFileSync(ca, authority.ca);
                    const send = async (life: string) => {
                        Object.assign(server.seen, { full: 0, resumed: 0, requests: 0 });
                        const client = join(__dirname, 'support', 'runtime-client.cjs');
                        const [program = '', ...prefix] = found?.command ?? [];
                        await run(program, [...prefix, client, whose, life, String(server.port), ca], {
                            timeout: 30_000,
                        });
                        const { full, resumed, requests } = server.seen;
                        return { full, resumed, requests };
                    };
                    const resumed = RESUMED[name][version][whose];
                    assert.deepEqual(await send('closed'), { full: 6 - resumed, resumed, requests: 6 });
                    assert.deepEqual(await send('kept'), { full: 1, resumed: 0, requests: 6 });
                });
            }
        }
    });
}
