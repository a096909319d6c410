//! Servers that SRV records name (RFC 2782).

use std::{net::IpAddr, sync::Arc};

/// A server that an SRV record names, with the addresses of its host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Service {
    /// Priority; servers of a higher number are backups.
    pub(crate) priority: u32,
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
    /// Weight relative to others of the same priority, at least 1.
    pub(crate) weight: usize,
    pub(crate) addresses: Vec<IpAddr>,
}
