//! How the addresses of servers are found by their names.

use std::{net::SocketAddr, time::Duration};

/// Who is asked for the addresses of names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resolver {
    /// DNS servers; with none, those of the system (`/etc/resolv.conf`), and all else that the system knows names by.
    pub servers: Vec<SocketAddr>,
    /// After which a lookup has failed.
    pub timeout: Duration,
}

/// When the addresses of a name are looked up again. Each reload does so, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DnsRefresh {
    /// When its DNS records say that they may have changed.
    #[default]
    ByTtl,
    /// In this interval.
    Every(Duration),
    /// Never.
    Off,
}

impl Default for Resolver {
    fn default() -> Self {
        Self { servers: Vec::new(), timeout: Duration::from_secs(5) }
    }
}
