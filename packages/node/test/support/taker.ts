/** Takes all sessions, or COUNT of them, and prints a digest of each: `taker.js DIR KEY BEGIN [COUNT]`. */
import { createHash } from 'node:crypto';
import { FileSessionStore } from 'quadrille-agent';
import { keyOf } from './entries.js';

const [dir, key, begin, count] = process.argv.slice(2) as [string, string, string, string?];
const store = new FileSessionStore({ dir, key: Buffer.from(key, 'hex'), perOrigin: 1000 });
while (Date.now() < Number(begin));
const reuse = count === undefined ? 'strict' : 'prefer-fresh';
for (let taken = 0; taken < Number(count ?? Infinity); taken++) {
    const entry = store.take(keyOf('one'), reuse, Date.now());
    if (!entry) break;
    console.log(createHash('sha256').update(entry.bytes).digest('hex'));
}
