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

/// The addresses of a name that an upstream uses, as Envoy's `dns_lookup_family`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LookupFamily {
    /// IPv4 and IPv6 addresses.
    #[default]
    All,
    /// IPv6 addresses, or IPv4 addresses of names without them.
    Auto,
    /// IPv4 addresses.
    V4Only,
    /// IPv6 addresses.
    V6Only,
    /// IPv4 addresses, or IPv6 addresses of names without them.
    V4Preferred,
}

impl Default for Resolver {
    fn default() -> Self {
        Self { servers: Vec::new(), timeout: Duration::from_secs(5) }
    }
}
