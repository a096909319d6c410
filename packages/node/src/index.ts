/**
 * Outbound TLS for Node that resumes sessions (across restarts too), reuses sockets within bounds, and counts what it does.
 *
 * `TlsAgent` is for `https.request` and all that builds on it; `quadrille-agent/undici` has the same for undici and `fetch`.
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
