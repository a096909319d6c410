/** Takes sessions until there are none, and prints a digest of each: `taker.js DIR KEY BEGIN`. */
import { createHash } from 'node:crypto';
import { FileSessionStore } from 'quadrille-agent';
import { keyOf } from './entries.js';

const [dir, key, begin] = process.argv.slice(2) as [string, string, string];
const store = new FileSessionStore({ dir, key: Buffer.from(key, 'hex'), perOrigin: 1000 });
while (Date.now() < Number(begin));
for (;;) {
    const entry = store.take(keyOf('one'), 'strict', Date.now());
    if (!entry) break;
    console.log(createHash('sha256').update(entry.bytes).digest('hex'));
}
