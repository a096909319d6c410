/**
 * Outbound TLS for Node that resumes sessions (across restarts too), reuses sockets within bounds, and counts both.
 *
 * `TlsAgent` is for `https.request` and clients built on it; `quadrille-agent/undici` is for undici and `fetch`.
 *
 * - `agent.ts`, `undici.ts`: the two entry points.
 * - `handshake.ts`: takes sessions from a `SessionStore` and returns them, under the key that `profile.ts` derives from
 *   the options.
 * - `waiting.ts`, `socket-budget.ts`: limits on sockets.
 * - `retry.ts`, `undici-retry.ts`: requests that are sent again.
 */
export { type AgentMetrics, TlsAgent } from './agent.js';
export type { SessionOptions, TlsAgentOptions } from './agent-options.js';
export type { HandshakeErrorMessage, HandshakeMessage, RetryMessage, StoreErrorMessage } from './channels.js';
export type { Duration } from './duration.js';
export { type ErrorCode, QuadrilleError } from './errors.js';
export { FileSessionStore, type FileSessionStoreOptions } from './file-store.js';
export type { DurationSummary } from './histogram.js';
export { MemorySessionStore, type MemorySessionStoreOptions } from './memory-store.js';
export type { Counts, Metrics, Outcome } from './metrics.js';
export { bindsSessionsToNames } from './node-version.js';
export { type Policy, type PolicyOptions, policyOptions } from './policy.js';
export type { StoreKey } from './sealed.js';
export { type PromClient, type PrometheusOptions, registerPrometheus } from './prometheus.js';
export type { SessionEntry, TicketReuse } from './session.js';
export type { SessionKey, SessionStore } from './store.js';
