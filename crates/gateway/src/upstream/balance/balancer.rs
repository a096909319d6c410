//! Load balancing: selection of an endpoint.
//!
//! A selection takes no lock: it reads the current endpoints, and their health and load, which are atomic.

use super::{
    endpoint::{Endpoint, Endpoints},
    hash_ring::{Ring, point_of},
    round_robin::Rotation,
    server::{Server, ServerState},
};
use crate::upstream::address::ServerAddress;
use arc_swap::ArcSwap;
use quadrille_config::model::Balance;
use std::{
    cell::LazyCell,
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

/// Load balancer of an upstream.
pub(crate) struct Balancer {
    balance: Balance,
    /// Percentage of healthy endpoints below which health is ignored; see [`panics`].
    panic_threshold: u8,
    /// Whether outcomes of requests are recorded for picked endpoints.
    observes: bool,
    /// Round-robin counter.
    next: AtomicUsize,
    servers: ArcSwap<Servers>,
}

/// Snapshot of the endpoints.
struct Servers {
    members: Box<[Member]>,
    /// Priority levels: the first with an acceptable endpoint is used.
    levels: Box<[Level]>,
}

/// Endpoints of one priority.
struct Level {
    /// Indices of the endpoints in `Servers::members`.
    members: Box<[usize]>,
    order: Order,
}

struct Member {
    endpoint: Endpoint,
    state: Arc<ServerState>,
}

enum Order {
    Rotation(Rotation),
    Ring(Ring),
}

impl Balancer {
    pub(crate) fn new(balance: Balance, panic_threshold: u8, observes: bool, endpoints: Endpoints) -> Self {
        let servers = ArcSwap::from_pointee(Servers::new(balance, endpoints, &[]));
        Self { balance, panic_threshold, observes, next: AtomicUsize::new(0), servers }
    }

    /// Returns whether the endpoints are the same, with the same weights and names.
    pub(crate) fn has_endpoints(&self, endpoints: &Endpoints) -> bool {
        self.servers.load().members.iter().map(|member| &member.endpoint).eq(endpoints)
    }

    /// Replaces the endpoints; the state of those that remain is retained. Calls must not overlap.
    pub(crate) fn set(&self, endpoints: Endpoints) {
        let servers = Servers::new(self.balance, endpoints, &self.servers.load().members);
        self.servers.store(Arc::new(servers));
    }

    /// Picks a healthy endpoint, if possible one not tried yet; any endpoint if too few are healthy. `point` is the
    /// request's hash on the ring of [`Balance::Hash`].
    pub(crate) fn pick(
        &self,
        client: SocketAddr,
        point: Option<u32>,
        tried: &[ServerAddress],
    ) -> Option<Server> {
        let point = match self.balance {
            Balance::ClientIp => point_of(client.ip()),
            Balance::Hash => point.unwrap_or_else(|| fastrand::u32(..)),
            Balance::RoundRobin | Balance::Random | Balance::LeastRequest => 0,
        };
        let servers = self.servers.load();
        let now = LazyCell::new(Instant::now);
        let is_healthy = |member: &Member| member.state.is_available(|| *now);
        // Evaluated only if an endpoint is unhealthy, which is rare.
        let panicking = LazyCell::new(|| panics(&servers, self.panic_threshold, is_healthy));
        let healthy = |member: &Member| is_healthy(member) || panicking.contains(&member.endpoint.priority);
        let untried = |member: &Member| healthy(member) && !tried.contains(&member.endpoint.address);
        let member = match self.select(&servers, point, untried) {
            None if !tried.is_empty() => self.select(&servers, point, healthy)?,
            selected => selected?,
        };
        let counts = self.balance == Balance::LeastRequest || self.observes;
        let load = counts.then(|| Arc::new(member.state.begin()));
        Some(Server { load, ..Server::from(&member.endpoint) })
    }

    fn select<'s>(
        &self,
        servers: &'s Servers,
        point: u32,
        accept: impl Fn(&Member) -> bool,
    ) -> Option<&'s Member> {
        let members = &servers.members;
        // The counter is shared by all levels: incrementing it twice per selection would skip every second endpoint.
        let next = match self.balance {
            Balance::RoundRobin => self.next.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        servers.levels.iter().find_map(|level| self.select_in(level, members, next, point, &accept))
    }

    fn select_in<'s>(
        &self,
        level: &Level,
        members: &'s [Member],
        next: usize,
        point: u32,
        accept: &impl Fn(&Member) -> bool,
    ) -> Option<&'s Member> {
        let member = |index: usize| &members[level.members[index]];
        let fits = |index: usize| accept(member(index));
        let index = match &level.order {
            Order::Ring(ring) => ring.find(point, fits)?,
            // A single endpoint needs no selection.
            Order::Rotation(_) if level.members.len() == 1 => Some(0).filter(|only| fits(*only))?,
            Order::Rotation(rotation) if self.balance == Balance::RoundRobin => rotation.find(next, fits)?,
            Order::Rotation(rotation) => {
                let place = || fastrand::usize(..rotation.len().max(1));
                let one = rotation.find(place(), fits)?;
                if self.balance != Balance::LeastRequest {
                    return Some(member(one));
                }
                match rotation.find(place(), |index| index != one && fits(index)) {
                    Some(other) if member(other).is_less_busy_than(member(one)) => other,
                    _ => one,
                }
            }
        };
        Some(member(index))
    }

    /// Returns every endpoint, and whether it is healthy as far as is known.
    pub(crate) fn servers(&self) -> Vec<(Server, bool)> {
        let servers = self.servers.load();
        let now = Instant::now();
        let server = |member: &Member| (Server::from(&member.endpoint), member.state.is_available(|| now));
        servers.members.iter().map(server).collect()
    }

    /// Returns every endpoint with its state.
    pub(crate) fn states(&self) -> Vec<(Server, Arc<ServerState>)> {
        let servers = self.servers.load();
        let state = |member: &Member| (Server::from(&member.endpoint), Arc::clone(&member.state));
        servers.members.iter().map(state).collect()
    }

    /// Returns the number of ejected endpoints, and the number of endpoints.
    pub(crate) fn left_out(&self, now: Instant) -> (usize, usize) {
        let servers = self.servers.load();
        let out = servers.members.iter().filter(|member| member.state.outcomes.is_out(|| now));
        (out.count(), servers.members.len())
    }

    /// Returns whether there is an endpoint at this address, and it is healthy as far as is known.
    pub(crate) fn has_healthy(&self, address: &ServerAddress) -> bool {
        let now = Instant::now();
        let is_it =
            |member: &Member| member.endpoint.address == *address && member.state.is_available(|| now);
        self.servers.load().members.iter().any(is_it)
    }
}

/// Returns the priorities in panic mode, as in Envoy: those with too few healthy endpoints, unless the endpoints of
/// all priorities together can carry the load when each carries 1.4 times its share.
fn panics(servers: &Servers, threshold: u8, is_healthy: impl Fn(&Member) -> bool) -> Vec<u32> {
    const BORNE: usize = 140;
    if threshold == 0 {
        return Vec::new();
    }
    let mut borne = 0;
    let mut few = Vec::new();
    for level in &servers.levels {
        let Some(first) = level.members.first() else { continue };
        let all = level.members.len();
        let healthy = level.members.iter().filter(|index| is_healthy(&servers.members[**index])).count();
        borne += BORNE * healthy / all;
        if 100 * healthy < usize::from(threshold) * all {
            few.push(servers.members[*first].endpoint.priority);
        }
    }
    if borne < 100 { few } else { Vec::new() }
}

impl Servers {
    fn new(balance: Balance, endpoints: Endpoints, before: &[Member]) -> Self {
        let known: HashMap<_, _> =
            before.iter().map(|member| (member.endpoint.name(), &member.state)).collect();
        let member = |endpoint: Endpoint| {
            let state = known.get(&endpoint.name()).map(|state| Arc::clone(state)).unwrap_or_default();
            Member { endpoint, state }
        };
        let members: Box<[_]> = endpoints.into_iter().map(member).collect();
        let mut by_priority: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, member) in members.iter().enumerate() {
            by_priority.entry(member.endpoint.priority).or_default().push(index);
        }
        let levels = by_priority.into_values().map(|own| Level::new(balance, own, &members)).collect();
        Self { members, levels }
    }
}

impl Level {
    fn new(balance: Balance, own: Vec<usize>, all: &[Member]) -> Self {
        let endpoints = own.iter().map(|index| &all[*index].endpoint);
        let order = match balance {
            Balance::ClientIp | Balance::Hash => {
                Order::Ring(Ring::new(endpoints.map(|endpoint| (&endpoint.address, endpoint.weight))))
            }
            Balance::RoundRobin | Balance::Random | Balance::LeastRequest => {
                let weights: Vec<_> = endpoints.map(|endpoint| endpoint.weight).collect();
                Order::Rotation(Rotation::new(&weights))
            }
        };
        Self { members: own.into(), order }
    }
}

impl Member {
    /// Returns whether it has fewer active requests relative to its weight, compared as fractions.
    fn is_less_busy_than(&self, other: &Self) -> bool {
        let load =
            |of: &Self, weighed_by: &Self| of.state.active() as u128 * weighed_by.endpoint.weight as u128;
        load(self, other) < load(other, self)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Arc, Balance, Balancer, Endpoint, Endpoints, Member, ServerAddress, ServerState, SocketAddr,
    };
    use crate::upstream::Server;
    use std::{
        collections::HashSet,
        net::{IpAddr, Ipv4Addr},
        num::NonZeroUsize,
    };

    const ALL: [Balance; 5] =
        [Balance::RoundRobin, Balance::Random, Balance::LeastRequest, Balance::ClientIp, Balance::Hash];

    const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9);

    fn at(port: u16) -> ServerAddress {
        ServerAddress::Ip(([127, 0, 0, 1], port).into())
    }

    fn port(server: &Server) -> u16 {
        match &server.address {
            ServerAddress::Ip(address) => address.port(),
            ServerAddress::Unix(_) => 0,
        }
    }

    fn endpoint(port: u16, weight: usize) -> Endpoint {
        Endpoint { address: at(port), weight, host: "a.example".into(), transport: 0, priority: 0 }
    }

    fn of_ports(ports: &[u16]) -> Endpoints {
        ports.iter().map(|port| endpoint(*port, 1)).collect()
    }

    fn set_healthy(balancer: &Balancer, port: u16, healthy: bool) {
        let states = balancer.states();
        let (_, state) = states.iter().find(|(server, _)| server.address == at(port)).expect("a server");
        state.observe(healthy, NonZeroUsize::MIN);
    }

    /// Returns the ports picked for 100 clients.
    fn picked(balancer: &Balancer, tried: &[u16]) -> HashSet<u16> {
        let tried: Vec<_> = tried.iter().copied().map(at).collect();
        let client = |number: u8| SocketAddr::from(([192, 0, 2, number], 9));
        let pick = |number| Some(port(&balancer.pick(client(number), None, &tried)?));
        (0..100).filter_map(pick).collect()
    }

    #[test]
    fn what_is_unhealthy_is_passed_over_and_what_was_tried_is_the_last_resort() {
        for balance in ALL {
            let balancer = Balancer::new(balance, 0, false, of_ports(&[1, 2, 3]));
            assert_eq!(picked(&balancer, &[]), [1, 2, 3].into(), "{balance:?}");
            set_healthy(&balancer, 2, false);
            assert_eq!(picked(&balancer, &[]), [1, 3].into(), "{balance:?}");
            assert_eq!(picked(&balancer, &[1]), [3].into(), "{balance:?}");
            assert_eq!(picked(&balancer, &[1, 3]), [1, 3].into(), "{balance:?}");
            set_healthy(&balancer, 1, false);
            set_healthy(&balancer, 3, false);
            assert_eq!(picked(&balancer, &[]), [].into(), "{balance:?}");
            set_healthy(&balancer, 2, true);
            assert_eq!(picked(&balancer, &[2]), [2].into(), "{balance:?}");
        }
    }

    #[test]
    fn servers_of_the_next_priority_wait_until_none_of_the_first_is_healthy() {
        for balance in ALL {
            let spare = [3, 4].map(|port| Endpoint { priority: 1, ..endpoint(port, 1) });
            let balancer = Balancer::new(balance, 0, false, [of_ports(&[1, 2]), spare.into()].concat());
            assert_eq!(picked(&balancer, &[]), [1, 2].into(), "{balance:?}");
            assert_eq!(picked(&balancer, &[1]), [2].into(), "{balance:?}");
            assert_eq!(picked(&balancer, &[1, 2]), [3, 4].into(), "{balance:?}");
            set_healthy(&balancer, 1, false);
            assert_eq!(picked(&balancer, &[]), [2].into(), "{balance:?}");
            set_healthy(&balancer, 2, false);
            assert_eq!(picked(&balancer, &[]), [3, 4].into(), "{balance:?}");
            set_healthy(&balancer, 1, true);
            assert_eq!(picked(&balancer, &[]), [1].into(), "{balance:?}");
        }
    }

    #[test]
    fn where_few_are_healthy_all_are_asked() {
        for balance in ALL {
            let balancer = Balancer::new(balance, 50, false, of_ports(&[1, 2, 3, 4]));
            set_healthy(&balancer, 1, false);
            set_healthy(&balancer, 2, false);
            assert_eq!(picked(&balancer, &[]), [3, 4].into(), "{balance:?}: half are healthy");
            set_healthy(&balancer, 3, false);
            assert_eq!(picked(&balancer, &[]), [1, 2, 3, 4].into(), "{balance:?}: a quarter is healthy");
            assert_eq!(picked(&balancer, &[1, 4]), [2, 3].into(), "{balance:?}");
            set_healthy(&balancer, 4, false);
            assert_eq!(picked(&balancer, &[]), [1, 2, 3, 4].into(), "{balance:?}: none is healthy");
        }
    }

    #[test]
    fn nothing_is_few_while_another_priority_bears_it() {
        for balance in ALL {
            let spare = [3, 4].map(|port| Endpoint { priority: 1, ..endpoint(port, 1) });
            let balancer = Balancer::new(balance, 50, false, [of_ports(&[1, 2]), spare.into()].concat());
            set_healthy(&balancer, 1, false);
            set_healthy(&balancer, 2, false);
            assert_eq!(picked(&balancer, &[]), [3, 4].into(), "{balance:?}");
            set_healthy(&balancer, 3, false);
            set_healthy(&balancer, 4, false);
            assert_eq!(picked(&balancer, &[]), [1, 2].into(), "{balance:?}");
        }
    }

    #[test]
    fn what_is_known_of_a_server_outlives_a_change_of_the_others() {
        for balance in ALL {
            let balancer = Balancer::new(balance, 0, false, of_ports(&[1, 2]));
            set_healthy(&balancer, 1, false);
            let now = vec![endpoint(1, 7), endpoint(3, 1)];
            assert!(!balancer.has_endpoints(&now));
            balancer.set(now.clone());
            assert!(balancer.has_endpoints(&now));
            assert!(!balancer.has_healthy(&at(1)) && !balancer.has_healthy(&at(2)));
            assert_eq!(picked(&balancer, &[]), [3].into(), "{balance:?}");
            balancer.set(Endpoints::new());
            assert_eq!(picked(&balancer, &[]), [].into(), "{balance:?}");
        }
    }

    #[test]
    fn the_less_busy_one_by_weight() {
        let one = Member { endpoint: endpoint(1, 1), state: Arc::new(ServerState::default()) };
        let other = Member { endpoint: endpoint(2, 1), state: Arc::new(ServerState::default()) };
        assert!(!other.is_less_busy_than(&one), "no active requests");
        let _first = one.state.begin();
        assert!(other.is_less_busy_than(&one));
        let _second = other.state.begin();
        assert!(!other.is_less_busy_than(&one));
        let strong = Member { endpoint: endpoint(2, 2), state: Arc::clone(&other.state) };
        assert!(strong.is_less_busy_than(&one), "twice as strong");
    }

    #[test]
    fn requests_under_way_are_counted_until_they_are_over() {
        let balancer = Balancer::new(Balance::LeastRequest, 0, false, of_ports(&[1, 2]));
        let held: Vec<_> = (0..10).filter_map(|_| balancer.pick(CLIENT, None, &[])).collect();
        let active = || balancer.states().iter().map(|(_, state)| state.active()).collect::<Vec<_>>();
        assert_eq!(active(), [5, 5]);
        drop(held);
        assert_eq!(active(), [0, 0]);
    }

    #[test]
    fn what_has_the_same_point_goes_to_the_same_server() {
        let balancer = Balancer::new(Balance::Hash, 0, false, of_ports(&[1, 2, 3]));
        let server = |point| port(&balancer.pick(CLIENT, point, &[]).expect("a server"));
        let first: HashSet<_> = (0..100).map(|_| server(Some(7))).collect();
        assert_eq!(first.len(), 1);
        let all: HashSet<_> = (0..1000_u32).map(|n| server(Some(n.wrapping_mul(0x9E37_79B9)))).collect();
        let unkeyed: HashSet<_> = (0..1000).map(|_| server(None)).collect();
        assert_eq!((all.len(), unkeyed.len()), (3, 3));
    }
}
