// Removes build output: files deleted or renamed in the sources must not stay in the package.
import { rmSync } from 'node:fs';

for (const folder of process.argv.slice(2))
    rmSync(new URL(`../${folder}`, import.meta.url), { recursive: true, force: true });
