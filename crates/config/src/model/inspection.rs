//! Inspection of the first bytes from clients.

use std::time::Duration;

/// Settings of the inspection of a client's first bytes, which selects the chain of its connection. It waits only for
/// data that distinguishes the chains of its destination.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inspection {
    /// Time from accepting a connection until its chain must be selected.
    pub timeout: Duration,
    /// Whether a client that has not sent enough by then is served, without TLS and without a known protocol;
    /// otherwise its connection is closed.
    pub continues: bool,
    /// Destination ports at which TLS is recognized. At others every client is assumed to use plain text.
    pub tls: Ports,
    /// Destination ports at which HTTP without TLS is recognized; it counts as an offer of `http/1.0`, `http/1.1` or
    /// `h2c`.
    pub http: Ports,
}

/// A set of ports, as inclusive ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ports(pub Vec<(u16, u16)>);

impl Ports {
    /// Returns the set of all ports.
    pub fn all() -> Self {
        Self(vec![(0, u16::MAX)])
    }

    /// Returns the empty set.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns whether the set contains this port.
    pub fn contains(&self, port: u16) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&port))
    }
}

impl Default for Inspection {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10), continues: false, tls: Ports::all(), http: Ports::none() }
    }
}
