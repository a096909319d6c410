//! What a load is to be.

use super::{offer::Offer, pace::Pace};
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

/// A load: what to ask, of whom, how often, and when to stop.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server.
    pub target: SocketAddr,
    /// Server names, sent as SNI and Host, in turn; at least one.
    pub names: Vec<String>,
    /// The path that is asked for.
    pub path: String,
    /// Addresses that connections come from, in turn. If there are none, the system chooses; of a server on this machine's
    /// loopback, eight take turns.
    pub sources: Vec<Ipv4Addr>,
    /// What the client offers.
    pub offer: Offer,
    /// Which part of the connections offers a session of an earlier one, 0 to 1.
    pub resumed: f64,
    /// When connections begin.
    pub pace: Pace,
    /// The most connections in flight.
    pub connections: usize,
    /// Requests on each connection; 0 is the handshake alone.
    pub requests: u32,
    /// Connections to make.
    pub count: u64,
    /// The load ends after this time, however many connections it has made, and drops those under way.
    pub time_limit: Duration,
    /// No connection begins after this time; those under way are finished, so that nothing is half done.
    pub begin_within: Option<Duration>,
    /// Ask the server to close the connection after the last response, as some clients do.
    pub server_closes: bool,
    /// A connection that takes longer has failed.
    pub connection_timeout: Duration,
}

impl Load {
    /// Full handshakes with one request each, one connection in flight, a hundred in all: to be changed where more is
    /// wanted.
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

    /// What one of several threads does.
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
