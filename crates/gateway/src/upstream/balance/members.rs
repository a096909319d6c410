//! Endpoints of an upstream with their state, by priority.

use super::{
    endpoint::{Endpoint, Endpoints},
    hash_ring::Ring,
    outliers,
    round_robin::Rotation,
    server::ServerState,
};
use quadrille_config::model::Balance;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Instant,
};

/// Snapshot of the endpoints.
pub(super) struct Servers {
    pub(super) members: Box<[Member]>,
    /// Priority levels: the first with an acceptable endpoint is used.
    pub(super) levels: Box<[Level]>,
    /// Whether an endpoint has a maximum number of active requests.
    pub(super) limited: bool,
}

/// Endpoints of one priority.
pub(super) struct Level {
    /// Indices of the endpoints in `Servers::members`.
    pub(super) members: Box<[usize]>,
    pub(super) order: Order,
}

/// An endpoint with its state.
pub(super) struct Member {
    pub(super) endpoint: Endpoint,
    pub(super) state: Arc<ServerState>,
}

/// Order in which the endpoints of a level are selected.
pub(super) enum Order {
    Rotation(Rotation),
    Ring(Ring),
}

impl Servers {
    /// Creates a snapshot; endpoints that are in `before` keep their state. The share of others grows from `now` on if
    /// there were endpoints before.
    pub(super) fn new(balance: Balance, endpoints: Endpoints, before: &[Member], now: Instant) -> Self {
        let known: HashMap<_, _> =
            before.iter().map(|member| (member.endpoint.name(), &member.state)).collect();
        let member = |endpoint: Endpoint| {
            let state = known.get(&endpoint.name()).map(|state| Arc::clone(state)).unwrap_or_else(|| {
                let state = Arc::<ServerState>::default();
                if !before.is_empty() {
                    state.begin_slow_start(now);
                }
                state
            });
            Member { endpoint, state }
        };
        let members: Box<[_]> = endpoints.into_iter().map(member).collect();
        let mut by_priority: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, member) in members.iter().enumerate() {
            by_priority.entry(member.endpoint.priority).or_default().push(index);
        }
        let levels = by_priority.into_values().map(|own| Level::new(balance, own, &members)).collect();
        let limited = members.iter().any(|member| member.endpoint.most_active.is_some());
        Self { members, levels, limited }
    }

    /// Returns the priorities in panic mode, as in Envoy: those with too few healthy endpoints, unless the endpoints of
    /// all priorities together can carry the load when each carries 1.4 times its share.
    pub(super) fn panics(&self, threshold: u8, is_healthy: impl Fn(&Member) -> bool) -> Vec<u32> {
        const BORNE: usize = 140;
        if threshold == 0 {
            return Vec::new();
        }
        let mut borne = 0;
        let mut few = Vec::new();
        for level in &self.levels {
            let Some(first) = level.members.first() else { continue };
            let all = level.members.len();
            let healthy = level.members.iter().filter(|index| is_healthy(&self.members[**index])).count();
            borne += BORNE * healthy / all;
            if 100 * healthy < usize::from(threshold) * all {
                few.push(self.members[*first].endpoint.priority);
            }
        }
        if borne < 100 { few } else { Vec::new() }
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
    /// Returns whether it has fewer active requests than its maximum.
    pub(super) fn has_room(&self) -> bool {
        self.endpoint.most_active.is_none_or(|most| self.state.active() < most.get())
    }

    /// Returns whether it has fewer active requests relative to its weight, compared as fractions.
    pub(super) fn is_less_busy_than(&self, other: &Self) -> bool {
        let load =
            |of: &Self, weighed_by: &Self| of.state.active() as u128 * weighed_by.endpoint.weight as u128;
        load(self, other) < load(other, self)
    }

    /// Returns whether it takes this request, at random while its share grows over `window` milliseconds.
    pub(super) fn takes(&self, window: u64, now: impl FnOnce() -> Instant) -> bool {
        /// The first share is a tenth of the weight, as in Envoy.
        const FIRST: u64 = 10;
        let began = self.state.slow_since();
        if began == 0 {
            return true;
        }
        let passed = outliers::moment(now()).saturating_sub(began);
        passed >= window || fastrand::u64(..window) < passed.max(window / FIRST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn member() -> Member {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into();
        let host = "a.example".into();
        let endpoint = Endpoint { address, weight: 1, host, transport: 0, priority: 0, most_active: None };
        Member { endpoint, state: Arc::default() }
    }

    #[test]
    fn the_share_of_a_recovered_endpoint_grows_with_time() {
        let (member, now) = (member(), Instant::now());
        let share = |seconds| {
            let then = || now + Duration::from_secs(seconds);
            (0..10_000).filter(|_| member.takes(100_000, then)).count()
        };
        assert_eq!(share(0), 10_000, "it has not recovered from anything");
        member.state.begin_slow_start(now);
        for (seconds, expected) in [(0, 1_000), (5, 1_000), (30, 3_000), (80, 8_000)] {
            assert!(share(seconds).abs_diff(expected) < 300, "{seconds}: {}", share(seconds));
        }
        // Later than the 100 s: times have milliseconds.
        assert_eq!((share(101), share(1_000)), (10_000, 10_000));
    }

    #[test]
    fn endpoints_of_the_first_snapshot_have_their_share_at_once() {
        let now = Instant::now();
        let endpoint = |port: u16| {
            let address = std::net::SocketAddr::from(([127, 0, 0, 1], port)).into();
            Endpoint { address, ..member().endpoint }
        };
        let first = Servers::new(Balance::RoundRobin, vec![endpoint(1)], &[], now);
        let second = Servers::new(Balance::RoundRobin, vec![endpoint(1), endpoint(2)], &first.members, now);
        let slow: Vec<_> = second.members.iter().map(|member| member.state.slow_since() != 0).collect();
        assert_eq!((first.members[0].state.slow_since(), slow), (0, vec![false, true]));
    }
}
