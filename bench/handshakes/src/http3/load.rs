//! Parameters of an HTTP/3 load.

use std::{net::SocketAddr, time::Duration};

/// Connections and requests of a load.
#[derive(Clone, Debug)]
pub struct Load {
    /// Address of the server.
    pub target: SocketAddr,
    /// Number of concurrent connections.
    pub clients: usize,
    /// Maximum number of connections in all.
    pub connections: usize,
    /// Time after which no connection is started; those in flight are finished.
    pub begin_within: Option<Duration>,
    /// Requests per connection.
    pub requests: u64,
    /// Concurrent requests per connection.
    pub streams: u64,
    /// Request path.
    pub path: String,
    /// Expected length of the response body.
    pub body: u64,
    /// Key exchange groups, colon-separated.
    pub groups: String,
}
