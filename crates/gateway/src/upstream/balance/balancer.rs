//! Load balancing: selection of an endpoint.
//!
//! A selection takes no lock: it reads the current endpoints, and their health and load, which are atomic.

use super::{
    endpoint::{Endpoint, Endpoints},
    hash_ring::point_of,
    members::{Level, Member, Order, Servers},
    server::{Server, ServerState},
};
use crate::upstream::address::ServerAddress;
use arc_swap::ArcSwap;
use quadrille_config::model::Balance;
use std::{
    cell::LazyCell,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{Notify, futures::Notified};

/// Load balancer of an upstream.
pub(crate) struct Balancer {
    balance: Balance,
    /// Percentage of healthy endpoints below which health is ignored; see [`Servers::panics`].
    panic_threshold: u8,
    /// Milliseconds over which the share of a new or recovered endpoint grows.
    slow_start: Option<u64>,
    /// Whether outcomes of requests are recorded for picked endpoints.
    observes: bool,
    /// Round-robin counter.
    next: AtomicUsize,
    servers: ArcSwap<Servers>,
    /// Notified when an endpoint with a maximum number of active requests may have room again.
    freed: Arc<Notify>,
}

/// Reason why no endpoint was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoServer {
    /// No endpoint is healthy.
    Unhealthy,
    /// The healthy endpoints have their maximum number of active requests.
    Full,
}

impl Balancer {
    pub(crate) fn new(balance: Balance, panic_threshold: u8, observes: bool, endpoints: Endpoints) -> Self {
        let servers = ArcSwap::from_pointee(Servers::new(balance, endpoints, &[], Instant::now()));
        Self {
            balance,
            panic_threshold,
            slow_start: None,
            observes,
            next: AtomicUsize::new(0),
            servers,
            freed: Arc::default(),
        }
    }

    /// Sets the time over which the share of a new or recovered endpoint grows.
    pub(crate) fn with_slow_start(self, window: Option<Duration>) -> Self {
        let millis = |window: Duration| u64::try_from(window.as_millis()).unwrap_or(u64::MAX).max(1);
        Self { slow_start: window.map(millis), ..self }
    }

    /// Returns whether the endpoints are the same, with the same weights and names.
    pub(crate) fn has_endpoints(&self, endpoints: &Endpoints) -> bool {
        self.servers.load().members.iter().map(|member| &member.endpoint).eq(endpoints)
    }

    /// Replaces the endpoints; the state of those that remain is retained. Calls must not overlap.
    pub(crate) fn set(&self, endpoints: Endpoints) {
        let servers = Servers::new(self.balance, endpoints, &self.servers.load().members, Instant::now());
        self.servers.store(Arc::new(servers));
        self.freed.notify_waiters();
    }

    /// Returns when an endpoint may have room for a request again.
    pub(crate) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// Picks a healthy endpoint, if possible one not tried yet; any endpoint if too few are healthy. `point` is the
    /// request's hash on the ring of [`Balance::Hash`].
    ///
    /// # Errors
    /// Returns the reason why no endpoint was picked.
    pub(crate) fn pick(
        &self,
        client: SocketAddr,
        point: Option<u32>,
        tried: &[ServerAddress],
    ) -> Result<Server, NoServer> {
        /// Number of endpoints that other requests may fill between their selection and this request.
        const TRIES: usize = 16;
        let point = match self.balance {
            Balance::ClientIp => point_of(client.ip()),
            Balance::Hash => point.unwrap_or_else(|| fastrand::u32(..)),
            Balance::RoundRobin | Balance::Random | Balance::LeastRequest => 0,
        };
        let servers = self.servers.load();
        let now = LazyCell::new(Instant::now);
        let is_healthy = |member: &Member| member.state.is_available(|| *now);
        // Evaluated only if an endpoint is unhealthy, which is rare.
        let panicking = LazyCell::new(|| servers.panics(self.panic_threshold, is_healthy));
        let healthy = |member: &Member| {
            is_healthy(member) || panicking.contains(&member.endpoint.priority) && !member.state.is_draining()
        };
        let untried = |member: &Member| healthy(member) && !tried.contains(&member.endpoint.address);
        let counts = self.counts_at(&servers);
        for _ in 0..TRIES {
            let member = match self.select(&servers, point, untried, || *now) {
                Err(NoServer::Unhealthy) if !tried.is_empty() => {
                    self.select(&servers, point, healthy, || *now)?
                }
                selected => selected?,
            };
            let load = match member.endpoint.most_active {
                Some(most) => member.state.try_begin(most, &self.freed).map(Some),
                None => Some(counts.then(|| member.state.begin())),
            };
            if let Some(load) = load {
                return Ok(Server { load: load.map(Arc::new), ..Server::from(&member.endpoint) });
            }
        }
        Err(NoServer::Full)
    }

    fn select<'s>(
        &self,
        servers: &'s Servers,
        point: u32,
        accept: impl Fn(&Member) -> bool,
        now: impl Fn() -> Instant,
    ) -> Result<&'s Member, NoServer> {
        let members = &servers.members;
        // The counter is shared by all levels: incrementing it twice per selection would skip every second endpoint.
        let next = match self.balance {
            Balance::RoundRobin => self.next.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        let fits = |member: &Member| accept(member) && (!servers.limited || member.has_room());
        for level in &servers.levels {
            let slow = self.slow_start.and_then(|window| {
                let takes = |member: &Member| fits(member) && member.takes(window, &now);
                self.select_in(level, members, next, point, &takes)
            });
            // If none takes the request while its share grows, one of them gets it all the same.
            if let Some(member) = slow.or_else(|| self.select_in(level, members, next, point, &fits)) {
                return Ok(member);
            }
            // A full level is not left for the next one, which would be used up as well.
            if servers.limited && level.members.iter().any(|index| accept(&members[*index])) {
                return Err(NoServer::Full);
            }
        }
        Err(NoServer::Unhealthy)
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
    pub(crate) fn states(&self) -> Vec<(Endpoint, Arc<ServerState>)> {
        let servers = self.servers.load();
        let state = |member: &Member| (member.endpoint.clone(), Arc::clone(&member.state));
        servers.members.iter().map(state).collect()
    }

    /// Returns whether active requests of endpoints are counted.
    pub(crate) fn counts(&self) -> bool {
        self.counts_at(&self.servers.load())
    }

    fn counts_at(&self, servers: &Servers) -> bool {
        self.balance == Balance::LeastRequest || self.observes || servers.limited
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

#[cfg(test)]
mod tests {
    use super::{
        Arc, Balance, Balancer, Endpoint, Endpoints, Member, NoServer, ServerAddress, ServerState, SocketAddr,
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
        Endpoint {
            address: at(port),
            weight,
            host: "a.example".into(),
            transport: 0,
            priority: 0,
            most_active: None,
        }
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
        let pick = |number| balancer.pick(client(number), None, &tried).ok().map(|server| port(&server));
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
        let held: Vec<_> = (0..10).filter_map(|_| balancer.pick(CLIENT, None, &[]).ok()).collect();
        let active = || balancer.states().iter().map(|(_, state)| state.active()).collect::<Vec<_>>();
        assert_eq!(active(), [5, 5]);
        drop(held);
        assert_eq!(active(), [0, 0]);
    }

    #[test]
    fn an_endpoint_has_no_more_requests_than_its_maximum() {
        for balance in ALL {
            let limited = |port| Endpoint { most_active: NonZeroUsize::new(2), ..endpoint(port, 1) };
            let spare = Endpoint { priority: 1, ..endpoint(3, 1) };
            let balancer = Balancer::new(balance, 0, false, vec![limited(1), limited(2), spare]);
            let pick = || balancer.pick(CLIENT, Some(7), &[]);
            let held: Vec<_> = (0..4).map(|_| pick().expect("a server")).collect();
            let active = || balancer.states().iter().map(|(_, state)| state.active()).collect::<Vec<_>>();
            assert_eq!(active(), [2, 2, 0], "{balance:?}");
            assert_eq!(pick().err(), Some(NoServer::Full), "{balance:?}: the backup is for failures");
            drop(held);
            assert_eq!(active(), [0, 0, 0]);
            set_healthy(&balancer, 1, false);
            set_healthy(&balancer, 2, false);
            assert_eq!(pick().map(|server| port(&server)), Ok(3), "{balance:?}");
            set_healthy(&balancer, 3, false);
            assert_eq!(pick().err(), Some(NoServer::Unhealthy), "{balance:?}");
        }
    }

    #[test]
    fn one_of_several_new_endpoints_is_used_while_all_shares_grow() {
        for balance in [Balance::RoundRobin, Balance::Random, Balance::LeastRequest] {
            let balancer = Balancer::new(balance, 0, false, of_ports(&[1]))
                .with_slow_start(Some(std::time::Duration::from_secs(86_400)));
            assert_eq!(picked(&balancer, &[]), [1].into());
            balancer.set(of_ports(&[2, 3]));
            assert_eq!(picked(&balancer, &[]), [2, 3].into(), "{balance:?}");
            balancer.set(of_ports(&[2]));
            assert_eq!(picked(&balancer, &[]), [2].into(), "{balance:?}");
        }
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
