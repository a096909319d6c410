//! Which server is next.

use super::{
    health,
    load::Load,
    server::{Endpoints, Host, Server},
};
use arc_swap::{ArcSwap, ArcSwapOption};
use async_trait::async_trait;
use boring::x509::X509;
use futures_util::FutureExt;
use pingora_core::protocols::l4::socket::SocketAddr as PeerAddress;
use pingora_load_balancing::{
    Backend, Backends, LoadBalancer,
    discovery::ServiceDiscovery,
    selection::{Consistent, Random, RoundRobin},
};
use quadrille_config::{
    Diagnostic,
    model::{self, Balance, Problem},
};
use std::{
    collections::HashMap,
    net::{SocketAddr, ToSocketAddrs},
    sync::Arc,
};

/// How far a selection looks for a healthy server.
const SEARCH: usize = 256;

/// The servers, and how one of them is selected.
pub(super) struct Balancer {
    selection: Selection,
    endpoints: ConfiguredServers,
    /// The server, where there is but one and its health is not checked: nothing is to be selected.
    only: ArcSwapOption<Server>,
    checked: bool,
}

enum Selection {
    RoundRobin(LoadBalancer<RoundRobin>),
    Random(LoadBalancer<Random>),
    LeastRequest(LoadBalancer<Random>, Arc<Load>),
    ClientIp(LoadBalancer<Consistent>),
}

impl Balancer {
    pub(super) fn new(model: &model::Upstream, endpoints: Endpoints, ca: Option<&Arc<Box<[X509]>>>) -> Self {
        let endpoints = ConfiguredServers(Arc::new(ArcSwap::from_pointee(endpoints)));
        let mut backends = Backends::new(Box::new(endpoints.clone()));
        if let Some(check) = health::check(model, ca) {
            backends.set_health_check(check);
        }
        let selection = match model.balance {
            Balance::RoundRobin => Selection::RoundRobin(LoadBalancer::from_backends(backends)),
            Balance::Random => Selection::Random(LoadBalancer::from_backends(backends)),
            Balance::LeastRequest => {
                Selection::LeastRequest(LoadBalancer::from_backends(backends), Arc::default())
            }
            Balance::ClientIp => Selection::ClientIp(LoadBalancer::from_backends(backends)),
        };
        let (only, checked) = (ArcSwapOption::empty(), model.health.is_some());
        let balancer = Self { selection, endpoints, only, checked };
        balancer.discover();
        balancer
    }

    /// Whether the servers are these, with these weights and names.
    pub(super) fn has_endpoints(&self, endpoints: &Endpoints) -> bool {
        let now = self.endpoints.0.load();
        now.len() == endpoints.len()
            && now
                .iter()
                .zip(endpoints)
                .all(|(one, other)| one == other && Host::attached(one) == Host::attached(other))
    }

    pub(super) fn set(&self, endpoints: Endpoints) {
        self.endpoints.0.store(Arc::new(endpoints));
        self.discover();
    }

    /// A healthy server, if possible one that has not been tried.
    pub(super) fn pick(&self, client: SocketAddr, tried: &[SocketAddr]) -> Option<Server> {
        if let Some(only) = &*self.only.load() {
            return Some(Server::clone(only));
        }
        let untried =
            |address: &PeerAddress| address.as_inet().is_none_or(|address| !tried.contains(address));
        let backend = self
            .select(client, |backend, healthy| healthy && untried(&backend.addr))
            .or_else(|| self.select(client, |_, healthy| healthy))?;
        let PeerAddress::Inet(address) = backend.addr else { return None };
        let load = match &self.selection {
            Selection::LeastRequest(_, load) => Some(Arc::new(load.begin(address))),
            _ => None,
        };
        Some(Server { address, host: Host::attached(&backend)?.0.clone(), _load: load })
    }

    fn select(&self, client: SocketAddr, accept: impl Fn(&Backend, bool) -> bool) -> Option<Backend> {
        match &self.selection {
            Selection::RoundRobin(balancer) => balancer.select_with(b"", SEARCH, accept),
            Selection::Random(balancer) => balancer.select_with(b"", SEARCH, accept),
            Selection::LeastRequest(balancer, load) => {
                let one = balancer.select_with(b"", SEARCH, &accept)?;
                let other = |backend: &Backend, healthy| backend.addr != one.addr && accept(backend, healthy);
                match balancer.select_with(b"", SEARCH, other) {
                    Some(other) => Some(load.less_busy(one, other)),
                    None => Some(one),
                }
            }
            Selection::ClientIp(balancer) => {
                let key = client.ip().to_canonical().to_string();
                balancer.select_with(key.as_bytes(), SEARCH, accept)
            }
        }
    }

    /// Every server, and whether it is healthy as far as is known.
    pub(super) fn servers(&self) -> Vec<(Server, bool)> {
        let backends = self.backends();
        let server = |backend: &Backend| {
            let PeerAddress::Inet(address) = backend.addr else { return None };
            let host = Host::attached(backend)?.0.clone();
            Some((Server { address, host, _load: None }, backends.ready(backend)))
        };
        backends.get_backend().iter().filter_map(server).collect()
    }

    fn servers_of(endpoints: &Endpoints) -> Vec<Server> {
        let server = |backend: &Backend| {
            let PeerAddress::Inet(address) = backend.addr else { return None };
            Some(Server { address, host: Host::attached(backend)?.0.clone(), _load: None })
        };
        endpoints.iter().filter_map(server).collect()
    }

    pub(super) fn backends(&self) -> &Backends {
        match &self.selection {
            Selection::RoundRobin(balancer) => balancer.backends(),
            Selection::Random(balancer) | Selection::LeastRequest(balancer, _) => balancer.backends(),
            Selection::ClientIp(balancer) => balancer.backends(),
        }
    }

    /// What is discovered is there already.
    fn discover(&self) {
        let only = match &Self::servers_of(&self.endpoints.0.load())[..] {
            [only] if !self.checked => Some(Arc::new(only.clone())),
            _ => None,
        };
        self.only.store(only);
        let _ = match &self.selection {
            Selection::RoundRobin(balancer) => balancer.update().now_or_never(),
            Selection::Random(balancer) | Selection::LeastRequest(balancer, _) => {
                balancer.update().now_or_never()
            }
            Selection::ClientIp(balancer) => balancer.update().now_or_never(),
        };
    }
}

/// The servers as the configuration has them just now.
#[derive(Clone)]
struct ConfiguredServers(Arc<ArcSwap<Endpoints>>);

#[async_trait]
impl ServiceDiscovery for ConfiguredServers {
    async fn discover(&self) -> pingora_error::Result<(Endpoints, HashMap<u64, bool>)> {
        Ok((Endpoints::clone(&self.0.load()), HashMap::new()))
    }
}

/// Pingora keeps a place for each unit of weight.
const MOST_PLACES: usize = 10_000;

/// The model's servers, by address.
pub(super) fn resolve(model: &model::Upstream) -> Result<Endpoints, Vec<Diagnostic>> {
    let mut backends = Endpoints::new();
    let total = model.servers.iter().fold(0_usize, |sum, server| sum.saturating_add(server.weight.get()));
    // Exact as long as that is cheap.
    let unit = total.div_ceil(MOST_PLACES).max(1);
    let mut problems = Vec::new();
    for server in &model.servers {
        let host = Host::from_address(&server.address);
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
            Err(error) => {
                let message = format!("cannot resolve {}: {error}", server.address);
                let remedy = "check the name, or write an address";
                problems.push(Diagnostic::new(&server.place, Problem::new(message, remedy)));
            }
        }
    }
    if problems.is_empty() { Ok(backends) } else { Err(problems) }
}
