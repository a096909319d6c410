//! The servers of an upstream as the configuration has them, by address.

use super::{address::ServerAddress, names::Names};
use quadrille_config::{model, unix_socket::UNIX};
use std::sync::Arc;

/// A server by its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(super) address: ServerAddress,
    /// At least one, relative to the others of the upstream.
    pub(super) weight: usize,
    /// The host as it was written, IPv6 without its brackets.
    pub(super) host: Arc<str>,
    /// The way to it, as in [`model::Server`].
    pub(super) transport: usize,
    /// Those of a higher number are for when none of a lower one is healthy.
    pub(super) priority: u32,
}

/// All of an upstream, ordered by address and weight, each of them once.
pub(crate) type Endpoints = Vec<Endpoint>;

/// Weights are scaled so that they add up to about this much, because each unit of weight takes memory.
const MOST_WEIGHT: usize = 10_000;

/// The model's servers; a name with several addresses is as many servers.
pub(super) fn resolve(servers: &[model::Server], names: &Names) -> Endpoints {
    let mut endpoints = Endpoints::new();
    let total = servers.iter().fold(0_usize, |sum, server| sum.saturating_add(server.weight.get()));
    // Exact as long as that is cheap.
    let unit = total.div_ceil(MOST_WEIGHT).max(1);
    for server in servers {
        let host = host_of(&server.address);
        let weight = (server.weight.get() / unit).max(1);
        endpoints.extend(names.addresses(server).into_iter().map(|address| Endpoint {
            address,
            weight,
            host: Arc::clone(&host),
            transport: server.transport,
            priority: server.priority,
        }));
    }
    // Of several names for one server, the first one stays.
    endpoints.sort_by_key(Endpoint::identity);
    endpoints.dedup_by_key(|endpoint| endpoint.identity());
    endpoints
}

impl Endpoint {
    /// By what it is known again after a reload.
    pub(super) fn name(&self) -> (ServerAddress, Arc<str>, usize) {
        (self.address.clone(), Arc::clone(&self.host), self.transport)
    }

    fn identity(&self) -> (ServerAddress, usize) {
        (self.address.clone(), self.weight)
    }
}

/// The host of `host:port`, IPv6 without its brackets; a Unix socket is on this one.
fn host_of(address: &str) -> Arc<str> {
    if address.starts_with(UNIX) {
        return "localhost".into();
    }
    address.rsplit_once(':').map_or("", |(host, _)| host).trim_matches(['[', ']']).into()
}
