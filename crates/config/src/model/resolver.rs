//! DNS resolution of server names.

use std::{net::SocketAddr, time::Duration};

/// Settings of the DNS resolver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resolver {
    /// DNS servers; if empty, those of the system (`/etc/resolv.conf`), and its other sources of names.
    pub servers: Vec<SocketAddr>,
    /// Time after which a lookup fails.
    pub timeout: Duration,
}

/// The time at which the addresses of a name are looked up again. Each reload does so too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DnsRefresh {
    /// When the time to live of its DNS records expires.
    #[default]
    ByTtl,
    /// A fixed interval.
    Every(Duration),
    /// Never.
    Off,
}

impl Default for Resolver {
    fn default() -> Self {
        Self { servers: Vec::new(), timeout: Duration::from_secs(5) }
    }
}
