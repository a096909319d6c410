use std::num::NonZeroUsize;

/// How much is asked of all servers of an upstream together (circuit breakers, in Envoy's words).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UpstreamLimits {
    /// Connections in TCP mode, and requests of which it is known beforehand that they need a connection each: WebSockets,
    /// and all where HTTP/2 is not asked for.
    pub connections: Option<NonZeroUsize>,
    /// Requests that may wait for one of these; `None` lets all wait. Connections in TCP mode do not wait.
    pub pending: Option<usize>,
    /// Requests under way, those that wait included.
    pub requests: Option<NonZeroUsize>,
    /// Repeated attempts under way.
    pub retries: Option<usize>,
}
