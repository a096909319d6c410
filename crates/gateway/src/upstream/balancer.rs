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
    pub(super) fn new(model: &model::Upstream, ca: Option<Arc<Box<[X509]>>>) -> Result<Self, Vec<Problem>> {
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

    pub(super) fn pick(&self, client: SocketAddr) -> Option<Server> {
        let backend = match self {
            Self::RoundRobin(balancer) => balancer.select(b"", SEARCH),
            Self::Random(balancer) => balancer.select(b"", SEARCH),
            Self::ClientIp(balancer) => {
                balancer.select(client.ip().to_canonical().to_string().as_bytes(), SEARCH)
            }
        }?;
        let PeerAddress::Inet(address) = backend.addr else { return None };
        Some(Server { address, host: backend.ext.get::<Host>()?.0.clone() })
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

#[derive(Clone)]
struct Host(Arc<str>);

fn resolve(model: &model::Upstream) -> Result<BTreeSet<Backend>, Vec<Problem>> {
    let mut backends = BTreeSet::new();
    let mut problems = Vec::new();
    for server in &model.servers {
        let host: Arc<str> =
            server.address.rsplit_once(':').map_or("", |(host, _)| host).trim_matches(['[', ']']).into();
        match server.address.to_socket_addrs() {
            Ok(addresses) => backends.extend(addresses.map(|address| {
                let mut backend = Backend {
                    addr: PeerAddress::Inet(address),
                    weight: server.weight.get(),
                    ext: http::Extensions::new(),
                };
                backend.ext.insert(Host(host.clone()));
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
