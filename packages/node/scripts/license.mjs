// The licence lies at the root of the repository; the package carries a copy.
import { copyFileSync } from 'node:fs';

copyFileSync(new URL('../../../LICENSE', import.meta.url), new URL('../LICENSE', import.meta.url));
