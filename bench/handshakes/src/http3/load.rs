//! What clients of HTTP/3 ask for.

use std::{net::SocketAddr, time::Duration};

/// What is asked of a server.
#[derive(Clone, Debug)]
pub struct Load {
    /// Who is asked.
    pub target: SocketAddr,
    /// Connections at a time.
    pub clients: usize,
    /// Connections in all, at most.
    pub connections: usize,
    /// No connection begins after this time; those under way are finished.
    pub begin_within: Option<Duration>,
    /// Requests on each of them.
    pub requests: u64,
    /// Requests under way on each at a time.
    pub streams: u64,
    /// What is asked for.
    pub path: String,
    /// How long the answer's body must be.
    pub body: u64,
    /// The groups of key exchange, colon-separated.
    pub groups: String,
}
