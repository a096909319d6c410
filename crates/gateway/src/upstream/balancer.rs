//! Which server is next.

use super::{
    Endpoints, health,
    load::{Load, Running},
};
use crate::{
    model::{self, Balance},
    problem::Problem,
};
use arc_swap::ArcSwap;
use async_trait::async_trait;
use boring::x509::X509;
use futures_util::FutureExt;
use pingora_core::protocols::l4::socket::SocketAddr as PeerAddress;
use pingora_load_balancing::{
    Backend, Backends, LoadBalancer,
    discovery::ServiceDiscovery,
    selection::{Consistent, Random, RoundRobin},
};
use std::{
    collections::HashMap,
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
    /// Counts as one of its requests, where that matters, for as long as anybody has it.
    _running: Option<Arc<Running>>,
}

/// The servers, and the order in which they are chosen.
pub(super) struct Balancer {
    order: Order,
    endpoints: Discovered,
}

enum Order {
    RoundRobin(LoadBalancer<RoundRobin>),
    Random(LoadBalancer<Random>),
    LeastRequest(LoadBalancer<Random>, Arc<Load>),
    ClientIp(LoadBalancer<Consistent>),
}

impl Balancer {
    pub(super) fn new(model: &model::Upstream, endpoints: Endpoints, ca: Option<&Arc<Box<[X509]>>>) -> Self {
        let endpoints = Discovered(Arc::new(ArcSwap::from_pointee(endpoints)));
        let mut backends = Backends::new(Box::new(endpoints.clone()));
        if let Some(check) = health::check(model, ca) {
            backends.set_health_check(check);
        }
        let order = match model.balance {
            Balance::RoundRobin => Order::RoundRobin(LoadBalancer::from_backends(backends)),
            Balance::Random => Order::Random(LoadBalancer::from_backends(backends)),
            Balance::LeastRequest => {
                Order::LeastRequest(LoadBalancer::from_backends(backends), Arc::default())
            }
            Balance::ClientIp => Order::ClientIp(LoadBalancer::from_backends(backends)),
        };
        let balancer = Self { order, endpoints };
        balancer.discover();
        balancer
    }

    /// Whether the servers are these, with these weights and names.
    pub(super) fn has(&self, endpoints: &Endpoints) -> bool {
        let now = self.endpoints.0.load();
        now.len() == endpoints.len()
            && now.iter().zip(endpoints).all(|(one, other)| one == other && host(one) == host(other))
    }

    pub(super) fn set(&self, endpoints: Endpoints) {
        self.endpoints.0.store(Arc::new(endpoints));
        self.discover();
    }

    /// A healthy server, if possible one that has not been tried.
    pub(super) fn pick(&self, client: SocketAddr, tried: &[SocketAddr]) -> Option<Server> {
        let untried =
            |address: &PeerAddress| address.as_inet().is_none_or(|address| !tried.contains(address));
        let backend = self
            .select(client, |backend, healthy| healthy && untried(&backend.addr))
            .or_else(|| self.select(client, |_, healthy| healthy))?;
        let PeerAddress::Inet(address) = backend.addr else { return None };
        let running = match &self.order {
            Order::LeastRequest(_, load) => Some(Arc::new(load.begin(address))),
            _ => None,
        };
        Some(Server { address, host: backend.ext.get::<Host>()?.0.clone(), _running: running })
    }

    fn select(&self, client: SocketAddr, accept: impl Fn(&Backend, bool) -> bool) -> Option<Backend> {
        match &self.order {
            Order::RoundRobin(balancer) => balancer.select_with(b"", SEARCH, accept),
            Order::Random(balancer) => balancer.select_with(b"", SEARCH, accept),
            Order::LeastRequest(balancer, load) => {
                let one = balancer.select_with(b"", SEARCH, &accept)?;
                let other = |backend: &Backend, healthy| backend.addr != one.addr && accept(backend, healthy);
                match balancer.select_with(b"", SEARCH, other) {
                    Some(other) => Some(load.less_busy(one, other)),
                    None => Some(one),
                }
            }
            Order::ClientIp(balancer) => {
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
            let host = backend.ext.get::<Host>()?.0.clone();
            Some((Server { address, host, _running: None }, backends.ready(backend)))
        };
        backends.get_backend().iter().filter_map(server).collect()
    }

    pub(super) fn backends(&self) -> &Backends {
        match &self.order {
            Order::RoundRobin(balancer) => balancer.backends(),
            Order::Random(balancer) | Order::LeastRequest(balancer, _) => balancer.backends(),
            Order::ClientIp(balancer) => balancer.backends(),
        }
    }

    /// What is discovered is there already.
    fn discover(&self) {
        let _ = match &self.order {
            Order::RoundRobin(balancer) => balancer.update().now_or_never(),
            Order::Random(balancer) | Order::LeastRequest(balancer, _) => balancer.update().now_or_never(),
            Order::ClientIp(balancer) => balancer.update().now_or_never(),
        };
    }
}

/// The servers as the configuration has them just now.
#[derive(Clone)]
struct Discovered(Arc<ArcSwap<Endpoints>>);

#[async_trait]
impl ServiceDiscovery for Discovered {
    async fn discover(&self) -> pingora_error::Result<(Endpoints, HashMap<u64, bool>)> {
        Ok((Endpoints::clone(&self.0.load()), HashMap::new()))
    }
}

fn host(backend: &Backend) -> Option<&Host> {
    backend.ext.get::<Host>()
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

/// Pingora keeps a place for each unit of weight.
const MOST_PLACES: usize = 10_000;

/// The model's servers, by address.
pub(super) fn resolve(model: &model::Upstream) -> Result<Endpoints, Vec<Problem>> {
    let mut backends = Endpoints::new();
    let total = model.servers.iter().fold(0_usize, |sum, server| sum.saturating_add(server.weight.get()));
    // Exact as long as that is cheap.
    let unit = total.div_ceil(MOST_PLACES).max(1);
    let mut problems = Vec::new();
    for server in &model.servers {
        let host = Host::of(&server.address);
        match server.address.to_socket_addrs() {
            Ok(addresses) => backends.extend(addresses.map(|address| {
                let mut backend = Backend {
                    addr: PeerAddress::Inet(address),
                    weight: (server.weight.get() / unit).max(1),
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
