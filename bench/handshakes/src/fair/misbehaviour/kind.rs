//! The description of a kind.

use std::io;

use super::client::Client;

/// A kind of misbehaviour: connections that all do the same.
#[derive(Clone, Copy, Debug)]
pub struct Misbehaviour {
    /// Description of what the clients do, for the table.
    pub name: &'static str,
    /// Whether the server must serve HTTP/3.
    pub over_http3: bool,
    /// Whether the origin must use HTTP/1.1.
    pub http1_origin_only: bool,
    /// Number of connections.
    pub(super) connections: usize,
    /// Runs a connection until the server closes it or the experiment ends.
    pub(super) run: fn(&Client<'_>) -> io::Result<()>,
}

/// Number of streams of a connection, as many as servers commonly allow.
pub(super) const STREAMS: u32 = 100;

impl Misbehaviour {
    /// Returns this kind with fewer connections.
    #[must_use]
    pub fn with_connections(self, connections: usize) -> Self {
        Self { connections, ..self }
    }

    pub(super) const fn new(
        name: &'static str,
        connections: usize,
        run: fn(&Client<'_>) -> io::Result<()>,
    ) -> Self {
        Self { name, over_http3: false, http1_origin_only: false, connections, run }
    }

    pub(super) const fn over_http3(self) -> Self {
        Self { over_http3: true, ..self }
    }

    pub(super) const fn to_http1_origins(self) -> Self {
        Self { http1_origin_only: true, ..self }
    }
}
