//! Which server is next.
//!
//! A selection takes no lock: it reads the servers of the moment, their health and load, which are atomic.

use super::{
    address::ServerAddress,
    endpoint::{Endpoint, Endpoints},
    ring::{Ring, point_of},
    rotation::Rotation,
    server::{Server, ServerState},
};
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

/// The servers, and how one of them is selected.
pub(super) struct Balancer {
    balance: Balance,
    /// In how few of a hundred servers health is no reason to ask others; see [`panics`].
    panic_threshold: u8,
    /// Whether those that are picked are told what becomes of their requests.
    observes: bool,
    /// Whose turn it is.
    turn: AtomicUsize,
    servers: ArcSwap<Servers>,
}

/// The servers of a moment.
struct Servers {
    members: Box<[Member]>,
    /// By priority: the first that has a server to take is asked.
    levels: Box<[Level]>,
}

/// The servers of one priority.
struct Level {
    /// Which of all members each of them is.
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
    pub(super) fn new(balance: Balance, panic_threshold: u8, observes: bool, endpoints: Endpoints) -> Self {
        let servers = ArcSwap::from_pointee(Servers::new(balance, endpoints, &[]));
        Self { balance, panic_threshold, observes, turn: AtomicUsize::new(0), servers }
    }

    /// Whether the servers are these, with these weights and names.
    pub(super) fn has_endpoints(&self, endpoints: &Endpoints) -> bool {
        self.servers.load().members.iter().map(|member| &member.endpoint).eq(endpoints)
    }

    /// From now on these servers; what is known of those that stay remains. One call at a time.
    pub(super) fn set(&self, endpoints: Endpoints) {
        let servers = Servers::new(self.balance, endpoints, &self.servers.load().members);
        self.servers.store(Arc::new(servers));
    }

    /// A healthy server, if possible one that has not been tried; any, where too few are healthy.
    /// `point` is what the request has in common with others that go to the same server, on [`Balance::Hash`]'s ring.
    pub(super) fn pick(
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
        // Counted once a server is not healthy, which is rare.
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
        // One turn for all levels: two for each selection would pass by every second server.
        let turn = match self.balance {
            Balance::RoundRobin => self.turn.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        servers.levels.iter().find_map(|level| self.select_in(level, members, turn, point, &accept))
    }

    fn select_in<'s>(
        &self,
        level: &Level,
        members: &'s [Member],
        turn: usize,
        point: u32,
        accept: &impl Fn(&Member) -> bool,
    ) -> Option<&'s Member> {
        let member = |index: usize| &members[level.members[index]];
        let fits = |index: usize| accept(member(index));
        let index = match &level.order {
            Order::Ring(ring) => ring.find(point, fits)?,
            // There is nothing to be selected.
            Order::Rotation(_) if level.members.len() == 1 => Some(0).filter(|only| fits(*only))?,
            Order::Rotation(rotation) if self.balance == Balance::RoundRobin => rotation.find(turn, fits)?,
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

    /// Every server, and whether it is healthy as far as is known.
    pub(super) fn servers(&self) -> Vec<(Server, bool)> {
        let servers = self.servers.load();
        let now = Instant::now();
        let server = |member: &Member| (Server::from(&member.endpoint), member.state.is_available(|| now));
        servers.members.iter().map(server).collect()
    }

    /// Every server, with what is known of it.
    pub(super) fn states(&self) -> Vec<(Server, Arc<ServerState>)> {
        let servers = self.servers.load();
        let state = |member: &Member| (Server::from(&member.endpoint), Arc::clone(&member.state));
        servers.members.iter().map(state).collect()
    }

    /// How many servers are left out for what became of their requests, and how many there are.
    pub(super) fn left_out(&self, now: Instant) -> (usize, usize) {
        let servers = self.servers.load();
        let out = servers.members.iter().filter(|member| member.state.outcomes.is_out(|| now));
        (out.count(), servers.members.len())
    }

    /// Whether there is a server at this address, and it is healthy as far as is known.
    pub(super) fn has_healthy(&self, address: &ServerAddress) -> bool {
        let now = Instant::now();
        let is_it =
            |member: &Member| member.endpoint.address == *address && member.state.is_available(|| now);
        self.servers.load().members.iter().any(is_it)
    }
}

/// The priorities of which too few servers are healthy, as Envoy has it: none, as long as those of all priorities together
/// can bear what comes, if each of them bears 1.4 times its share.
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
    /// Whether it has less to do for its weight: active by weight, as fractions.
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

    /// The ports that 100 clients get.
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
            assert_eq!(picked(&balancer, &[]), [3, 4].into(), "{balance:?}: half of them");
            set_healthy(&balancer, 3, false);
            assert_eq!(picked(&balancer, &[]), [1, 2, 3, 4].into(), "{balance:?}: a quarter");
            assert_eq!(picked(&balancer, &[1, 4]), [2, 3].into(), "{balance:?}");
            set_healthy(&balancer, 4, false);
            assert_eq!(picked(&balancer, &[]), [1, 2, 3, 4].into(), "{balance:?}: none");
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
        assert!(!other.is_less_busy_than(&one), "nothing is under way");
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
