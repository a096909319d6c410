//! Parameters of a load.

use super::{offer::Offer, pace::Pace};
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

/// A load: requests, target, rate and limits.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server.
    pub target: SocketAddr,
    /// Server names, sent as SNI and Host in rotation; at least one.
    pub names: Vec<String>,
    /// The request path.
    pub path: String,
    /// Source addresses of connections, in rotation. If empty, the system chooses; for a server on this machine's
    /// loopback, eight are used in rotation.
    pub sources: Vec<Ipv4Addr>,
    /// Parameters that the client offers.
    pub offer: Offer,
    /// Fraction of connections that offer a session of an earlier one, 0 to 1.
    pub resumed: f64,
    /// Start times of connections.
    pub pace: Pace,
    /// Maximum number of connections in flight.
    pub connections: usize,
    /// Requests on each connection; 0 means the handshake alone.
    pub requests: u32,
    /// Number of connections.
    pub count: u64,
    /// Time limit: the load ends then, and drops connections in flight.
    pub time_limit: Duration,
    /// Time after which no connection is started; those in flight are finished.
    pub begin_within: Option<Duration>,
    /// Whether to request that the server closes the connection after the last response, as some clients do.
    pub server_closes: bool,
    /// Time after which a connection counts as failed.
    pub connection_timeout: Duration,
}

impl Load {
    /// Creates a load of one hundred full handshakes with one request each, one connection in flight. Change the
    /// fields as needed.
    pub fn new(target: SocketAddr, name: &str) -> Self {
        Self {
            target,
            names: vec![name.to_owned()],
            path: "/".to_owned(),
            sources: Vec::new(),
            offer: Offer::default(),
            resumed: 0.0,
            pace: Pace::Closed,
            connections: 1,
            requests: 1,
            count: 100,
            time_limit: Duration::from_secs(60),
            begin_within: None,
            server_closes: false,
            connection_timeout: Duration::from_secs(10),
        }
    }

    /// Returns the share of one of several threads.
    pub(super) fn share(&self, index: usize, of: usize) -> Self {
        let part = |whole: u64| whole / of as u64 + u64::from((index as u64) < whole % of as u64);
        Self {
            connections: (part(self.connections as u64) as usize).max(1),
            count: if self.count == u64::MAX { u64::MAX } else { part(self.count) },
            pace: self.pace.shared(of),
            ..self.clone()
        }
    }
}
