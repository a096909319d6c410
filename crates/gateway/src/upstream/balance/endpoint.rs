//! Configured endpoints of an upstream, by address.

use crate::upstream::{address::ServerAddress, names::table::Names};
use quadrille_config::{
    model::{self, LookupFamily},
    unix_socket::UNIX,
};
use std::{net::SocketAddr, num::NonZeroUsize, sync::Arc};

/// An endpoint by its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) address: ServerAddress,
    /// Weight relative to the upstream's other endpoints, at least 1.
    pub(crate) weight: usize,
    /// Host as configured; IPv6 without brackets.
    pub(crate) host: Arc<str>,
    /// Index of the transport, as in [`model::Server`].
    pub(crate) transport: usize,
    /// Priority; endpoints of a higher number are used when none of a lower one is healthy.
    pub(crate) priority: u32,
    /// Maximum number of active requests.
    pub(crate) most_active: Option<NonZeroUsize>,
}

/// Endpoints of an upstream, unique, ordered by address and weight.
pub(crate) type Endpoints = Vec<Endpoint>;

/// Approximate sum to which weights are scaled, because each unit of weight takes memory.
const MOST_WEIGHT: usize = 10_000;

/// Resolves the model's servers; a name with several addresses yields as many endpoints.
pub(crate) fn resolve(servers: &[model::Server], family: LookupFamily, names: &Names) -> Endpoints {
    let mut endpoints = Endpoints::new();
    for server in servers {
        match names.services(server, family) {
            None => {
                let host = host_of(&server.address);
                let addresses = names.addresses(server, family).into_iter();
                let weight = server.weight.get();
                endpoints.extend(addresses.map(|address| Endpoint {
                    address,
                    weight,
                    host: Arc::clone(&host),
                    transport: server.transport,
                    priority: server.priority,
                    most_active: server.max_connections,
                }));
            }
            Some(services) => endpoints.extend(services.iter().flat_map(|service| {
                service.addresses.iter().map(|address| Endpoint {
                    address: SocketAddr::new(*address, service.port).into(),
                    weight: service.weight,
                    host: Arc::clone(&service.host),
                    transport: server.transport,
                    priority: service.priority,
                    most_active: server.max_connections,
                })
            })),
        }
    }
    let total = endpoints.iter().fold(0_usize, |sum, endpoint| sum.saturating_add(endpoint.weight));
    // Weights are exact up to this sum.
    let unit = total.div_ceil(MOST_WEIGHT).max(1);
    endpoints.iter_mut().for_each(|endpoint| endpoint.weight = (endpoint.weight / unit).max(1));
    // Of several names with the same address, the first is kept.
    endpoints.sort_by_key(Endpoint::identity);
    endpoints.dedup_by_key(|endpoint| endpoint.identity());
    endpoints
}

impl Endpoint {
    /// Returns the identity of the endpoint across reloads.
    pub(crate) fn name(&self) -> (ServerAddress, Arc<str>, usize) {
        (self.address.clone(), Arc::clone(&self.host), self.transport)
    }

    fn identity(&self) -> (ServerAddress, usize) {
        (self.address.clone(), self.weight)
    }
}

/// Returns the host of `host:port`, IPv6 without brackets; for a Unix socket, this machine.
fn host_of(address: &str) -> Arc<str> {
    if address.starts_with(UNIX) {
        return "localhost".into();
    }
    address.rsplit_once(':').map_or("", |(host, _)| host).trim_matches(['[', ']']).into()
}
