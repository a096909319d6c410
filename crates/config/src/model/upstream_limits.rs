use std::{num::NonZeroUsize, time::Duration};

/// Limits on the load of all servers of an upstream together (circuit breakers in Envoy).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UpstreamLimits {
    /// Maximum number of connections in TCP mode, and of requests that are known to need a connection each:
    /// WebSockets, and all requests unless HTTP/2 is configured.
    pub connections: Option<NonZeroUsize>,
    /// Maximum number of requests that wait for one of these connections, and of those that wait for a server below its
    /// [`super::Server::max_connections`]; with `None`, all wait. Connections in TCP mode do not wait.
    pub pending: Option<usize>,
    /// Time after which a waiting request is refused; `None` for no limit besides that of the request.
    pub pending_timeout: Option<Duration>,
    /// Maximum number of active requests, including those that wait.
    pub requests: Option<NonZeroUsize>,
    /// Maximum number of active retries.
    pub retries: Option<usize>,
}
