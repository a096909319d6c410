export { createDispatcher } from './undici.js';
export type * from './undici.js';
