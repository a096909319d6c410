//! What is looked at of what clients say first.

use std::time::Duration;

/// What is looked at of what a client says first, before it is known which chain its connection belongs to. Only what
/// the chains for its destination are told apart by is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inspection {
    /// From accept to the moment when the chain is known.
    pub timeout: Duration,
    /// A client that has not said enough by then is served as one without TLS that speaks nothing that is known;
    /// otherwise its connection is closed.
    pub continues: bool,
    /// The destinations at which TLS is recognised. At others every client is one without.
    pub tls: Ports,
    /// The destinations at which HTTP without TLS is recognised: `http/1.0`, `http/1.1` or `h2c` is what such a client
    /// is taken to offer.
    pub http: Ports,
}

/// Ports, as ranges of which both ends belong to them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ports(pub Vec<(u16, u16)>);

impl Ports {
    /// Every port.
    pub fn all() -> Self {
        Self(vec![(0, u16::MAX)])
    }

    /// No port.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether this port is one of them.
    pub fn contains(&self, port: u16) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&port))
    }
}

impl Default for Inspection {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10), continues: false, tls: Ports::all(), http: Ports::none() }
    }
}
