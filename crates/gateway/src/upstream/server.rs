//! A server of an upstream: where it is, and what it is called.

use super::load::LoadGuard;
use pingora_load_balancing::Backend;
use std::{collections::BTreeSet, net::SocketAddr, sync::Arc};

/// Servers with their addresses.
pub(crate) type Endpoints = BTreeSet<Backend>;

/// One server, as chosen.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// The host as it was written: the default for SNI and certificate checks.
    pub(crate) host: Arc<str>,
    /// Counts as one of its requests, where that matters, for as long as anybody has it.
    pub(super) _load: Option<Arc<LoadGuard>>,
}

/// A server's host, as it was written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Host(pub(super) Arc<str>);

impl Host {
    /// The host of `host:port`, IPv6 without its brackets.
    pub(super) fn from_address(address: &str) -> Self {
        Self(address.rsplit_once(':').map_or("", |(host, _)| host).trim_matches(['[', ']']).into())
    }

    /// What pingora carries along with a server.
    pub(super) fn attached(backend: &Backend) -> Option<&Self> {
        backend.ext.get()
    }
}
