//! Which server is next.

use super::health;
use crate::{
    model::{self, Balance},
    problem::Problem,
};
use boring::x509::X509;
use futures_util::FutureExt;
use pingora_core::protocols::l4::socket::SocketAddr as PeerAddress;
use pingora_load_balancing::{
    Backend, Backends, LoadBalancer, discovery,
    selection::{Consistent, Random, RoundRobin},
};
use std::{
    collections::BTreeSet,
    net::{SocketAddr, ToSocketAddrs},
    sync::Arc,
};

/// How far a selection looks for a healthy server.
const SEARCH: usize = 256;

/// One server, as chosen.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// The host as it was written: the default for SNI and certificate checks.
    pub(crate) host: Arc<str>,
}

pub(super) enum Balancer {
    RoundRobin(LoadBalancer<RoundRobin>),
    Random(LoadBalancer<Random>),
    ClientIp(LoadBalancer<Consistent>),
}

impl Balancer {
    pub(super) fn new(model: &model::Upstream, ca: Option<&Arc<Box<[X509]>>>) -> Result<Self, Vec<Problem>> {
        let mut backends = Backends::new(discovery::Static::new(resolve(model)?));
        if let Some(check) = health::check(model, ca) {
            backends.set_health_check(check);
        }
        Ok(match model.balance {
            Balance::RoundRobin => Self::RoundRobin(LoadBalancer::from_backends(backends)),
            Balance::Random => Self::Random(LoadBalancer::from_backends(backends)),
            Balance::ClientIp => Self::ClientIp(LoadBalancer::from_backends(backends)),
        }
        .discovered())
    }

    /// A healthy server, if possible one that has not been tried.
    pub(super) fn pick(&self, client: SocketAddr, tried: &[SocketAddr]) -> Option<Server> {
        let untried =
            |address: &PeerAddress| address.as_inet().is_none_or(|address| !tried.contains(address));
        let backend = self
            .select(client, |backend, healthy| healthy && untried(&backend.addr))
            .or_else(|| self.select(client, |_, healthy| healthy))?;
        let PeerAddress::Inet(address) = backend.addr else { return None };
        Some(Server { address, host: backend.ext.get::<Host>()?.0.clone() })
    }

    fn select(&self, client: SocketAddr, accept: impl Fn(&Backend, bool) -> bool) -> Option<Backend> {
        match self {
            Self::RoundRobin(balancer) => balancer.select_with(b"", SEARCH, accept),
            Self::Random(balancer) => balancer.select_with(b"", SEARCH, accept),
            Self::ClientIp(balancer) => {
                let key = client.ip().to_canonical().to_string();
                balancer.select_with(key.as_bytes(), SEARCH, accept)
            }
        }
    }

    /// Every server, with whether it is well as far as is known.
    pub(super) fn servers(&self) -> Vec<(Server, bool)> {
        let backends = self.backends();
        let server = |backend: &Backend| {
            let PeerAddress::Inet(address) = backend.addr else { return None };
            Some((Server { address, host: backend.ext.get::<Host>()?.0.clone() }, backends.ready(backend)))
        };
        backends.get_backend().iter().filter_map(server).collect()
    }

    pub(super) fn backends(&self) -> &Backends {
        match self {
            Self::RoundRobin(balancer) => balancer.backends(),
            Self::Random(balancer) => balancer.backends(),
            Self::ClientIp(balancer) => balancer.backends(),
        }
    }

    /// Static discovery is ready at once.
    fn discovered(self) -> Self {
        let _ = match &self {
            Self::RoundRobin(balancer) => balancer.update().now_or_never(),
            Self::Random(balancer) => balancer.update().now_or_never(),
            Self::ClientIp(balancer) => balancer.update().now_or_never(),
        };
        self
    }
}

/// A server's host, as it was written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Host(pub(super) Arc<str>);

impl Host {
    /// The host of `host:port`, IPv6 without its brackets.
    pub(super) fn of(address: &str) -> Self {
        Self(address.rsplit_once(':').map_or("", |(host, _)| host).trim_matches(['[', ']']).into())
    }
}

fn resolve(model: &model::Upstream) -> Result<BTreeSet<Backend>, Vec<Problem>> {
    let mut backends = BTreeSet::new();
    let mut problems = Vec::new();
    for server in &model.servers {
        let host = Host::of(&server.address);
        match server.address.to_socket_addrs() {
            Ok(addresses) => backends.extend(addresses.map(|address| {
                let mut backend = Backend {
                    addr: PeerAddress::Inet(address),
                    weight: server.weight.get(),
                    ext: http::Extensions::new(),
                };
                backend.ext.insert(host.clone());
                backend
            })),
            Err(error) => problems.push(Problem::new(
                &server.place,
                format!("cannot resolve {}: {error}; check the name, or write an address", server.address),
            )),
        }
    }
    if problems.is_empty() { Ok(backends) } else { Err(problems) }
}
