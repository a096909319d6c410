//! Bounded places for connections, fair by network: once all are occupied, a newcomer evicts the oldest holder that
//! waits for its client, of the network that has most places. Silent clients thus take places from each other, and
//! never from clients of smaller networks.

use super::network;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// Maximum number of holders that are considered for eviction when one connection arrives.
const MOST_CONSIDERED: usize = 256;

/// Maximum number of holders that one newcomer evicts; more than one only after the limit was lowered.
const MOST_EVICTED: usize = 64;

/// Interval at which a newcomer looks again for a holder that waits for its client.
const AGAIN: Duration = Duration::from_millis(100);

/// Connection that holds a place.
pub(crate) trait Holder: Send + Sync {
    /// Returns whether it may be evicted for a newcomer, because it waits for its client.
    fn yields(&self, now: Instant) -> bool;

    /// Ends the connection. It may not call back into the places.
    fn evict(&self);
}

/// Places of a limit, shared by event loops.
pub(crate) struct Places {
    state: Mutex<State>,
    freed: Notify,
}

struct State {
    limit: usize,
    taken: usize,
    next: u64,
    networks: HashMap<IpAddr, Network>,
    /// The networks by their number of places, and then by their oldest holder.
    order: BTreeSet<Rank>,
}

type Rank = (usize, Reverse<u64>, IpAddr);

/// Holders of a network, in the order of arrival.
#[derive(Default)]
struct Network {
    holders: BTreeMap<u64, Arc<dyn Holder>>,
    /// The holder considered last. Considering continues behind it, so that holders that do not yield are not
    /// considered again and again.
    considered: u64,
}

/// Guard of one place.
pub(crate) struct Place {
    all: Arc<Places>,
    network: IpAddr,
    number: u64,
}

impl Places {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let (networks, order) = (HashMap::new(), BTreeSet::new());
        let state = Mutex::new(State { limit, taken: 0, next: 1, networks, order });
        Arc::new(Self { state, freed: Notify::new() })
    }

    /// Changes the number of places. Holders beyond it stay until newcomers evict them.
    pub(crate) fn set_limit(&self, limit: usize) {
        self.state().limit = limit;
        self.freed.notify_waiters();
    }

    /// Returns a place for a connection of this client, for which others may be evicted; `None` if all places are
    /// occupied, and no holder considered yields.
    pub(crate) fn enter(self: &Arc<Self>, client: IpAddr, holder: Arc<dyn Holder>) -> Option<Place> {
        let network = network::of(client);
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.add(network, number, holder);
        let evicted = if state.taken > state.limit { state.make_room(number) } else { Vec::new() };
        let has_room = state.taken <= state.limit;
        if !has_room {
            state.remove(network, number);
        }
        drop(state);
        evicted.iter().for_each(|holder| holder.evict());
        has_room.then(|| Place { all: Arc::clone(self), network, number })
    }

    /// Waits for a place. Cancel safe.
    pub(crate) async fn wait(self: &Arc<Self>, client: IpAddr, holder: &Arc<dyn Holder>) -> Place {
        loop {
            let freed = self.freed.notified();
            if let Some(place) = self.enter(client, Arc::clone(holder)) {
                return place;
            }
            let _ = tokio::time::timeout(AGAIN, freed).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, network: IpAddr, number: u64, holder: Arc<dyn Holder>) {
        self.change(network, |all| _ = all.holders.insert(number, holder));
        self.taken += 1;
    }

    /// Removes a holder; returns `None` if it was evicted before.
    fn remove(&mut self, network: IpAddr, number: u64) -> Option<Arc<dyn Holder>> {
        let mut removed = None;
        self.change(network, |all| removed = all.holders.remove(&number));
        self.taken -= usize::from(removed.is_some());
        removed
    }

    /// Changes the holders of a network, and its rank with them.
    fn change(&mut self, address: IpAddr, change: impl FnOnce(&mut Network)) {
        let network = self.networks.entry(address).or_default();
        if let Some(rank) = network.rank(address) {
            self.order.remove(&rank);
        }
        change(network);
        match network.rank(address) {
            Some(rank) => _ = self.order.insert(rank),
            None => _ = self.networks.remove(&address),
        }
    }

    /// Removes holders that yield, so that `newcomer` has a place; returns them.
    fn make_room(&mut self, newcomer: u64) -> Vec<Arc<dyn Holder>> {
        let (now, mut left) = (Instant::now(), MOST_CONSIDERED);
        let mut evicted = Vec::new();
        while self.taken > self.limit && evicted.len() < MOST_EVICTED {
            let Some((network, number)) = self.find(newcomer, now, &mut left) else { break };
            evicted.extend(self.remove(network, number));
        }
        evicted
    }

    /// Finds the next holder that yields, in the networks with most places first.
    fn find(&mut self, newcomer: u64, now: Instant, left: &mut usize) -> Option<(IpAddr, u64)> {
        for &(_, _, address) in self.order.iter().rev() {
            let network = self.networks.get_mut(&address)?;
            let found = network.find(newcomer, now, left);
            if found.is_some() || *left == 0 {
                return found.map(|number| (address, number));
            }
        }
        None
    }
}

impl Network {
    fn rank(&self, address: IpAddr) -> Option<Rank> {
        let (oldest, _) = self.holders.first_key_value()?;
        Some((self.holders.len(), Reverse(*oldest), address))
    }

    fn find(&mut self, newcomer: u64, now: Instant, left: &mut usize) -> Option<u64> {
        let behind = self.holders.range((Bound::Excluded(self.considered), Bound::Unbounded));
        let before = self.holders.range(..=self.considered);
        for (&number, holder) in behind.chain(before).filter(|(number, _)| **number != newcomer) {
            *left = left.checked_sub(1)?;
            self.considered = number;
            if holder.yields(now) {
                return Some(number);
            }
        }
        None
    }
}

impl Place {
    /// Counts the place for another network: a proxy has announced the client's address.
    pub(crate) fn belongs_to(&mut self, client: IpAddr) {
        let network = network::of(client);
        if network == self.network {
            return;
        }
        let mut state = self.all.state();
        if let Some(holder) = state.remove(self.network, self.number) {
            state.add(network, self.number, holder);
        }
        drop(state);
        self.network = network;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let removed = self.all.state().remove(self.network, self.number);
        if removed.is_some() {
            self.all.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[derive(Default)]
    struct Client {
        busy: AtomicBool,
        evicted: AtomicBool,
    }

    impl Holder for Client {
        fn yields(&self, _: Instant) -> bool {
            !self.busy.load(Ordering::Relaxed)
        }

        fn evict(&self) {
            self.evicted.store(true, Ordering::Relaxed);
        }
    }

    impl Client {
        fn is_evicted(&self) -> bool {
            self.evicted.load(Ordering::Relaxed)
        }

        fn is_busy(&self) {
            self.busy.store(true, Ordering::Relaxed);
        }
    }

    fn address(network: u32) -> IpAddr {
        IpAddr::V4((network << 8).into())
    }

    fn enter(places: &Arc<Places>, network: u32) -> (Arc<Client>, Option<Place>) {
        let client = Arc::new(Client::default());
        let place = places.enter(address(network), Arc::clone(&client) as Arc<dyn Holder>);
        (client, place)
    }

    fn evicted(clients: &[(Arc<Client>, Option<Place>)]) -> Vec<bool> {
        clients.iter().map(|(client, _)| client.is_evicted()).collect()
    }

    #[test]
    fn a_network_that_floods_takes_places_from_itself() {
        let places = Places::new(100);
        let other = enter(&places, 2);
        let flood: Vec<_> = (0..1000).map(|_| enter(&places, 1)).collect();
        assert!(!other.0.is_evicted());
        assert!(flood.iter().all(|(_, place)| place.is_some()), "each was admitted");
        let gone = evicted(&flood);
        assert!(gone[..901].iter().all(|gone| *gone) && gone[901..].iter().all(|gone| !gone), "the oldest");
        let newcomer = enter(&places, 3);
        assert!(newcomer.1.is_some() && flood[901].0.is_evicted() && !other.0.is_evicted());
        drop((flood, other, newcomer));
        let state = places.state();
        assert!(state.taken == 0 && state.networks.is_empty() && state.order.is_empty());
    }

    #[test]
    fn of_networks_with_equal_shares_the_oldest_holder_is_evicted() {
        let places = Places::new(10);
        let clients: Vec<_> = (0..10).rev().map(|network| enter(&places, network)).collect();
        let newcomer = enter(&places, 100);
        assert!(newcomer.1.is_some());
        assert_eq!(evicted(&clients).iter().position(|gone| *gone), Some(0));
        assert_eq!(evicted(&clients).iter().filter(|gone| **gone).count(), 1);
    }

    #[test]
    fn a_holder_that_does_not_wait_for_its_client_stays() {
        let places = Places::new(3);
        let clients: Vec<_> = (0..3).map(|_| enter(&places, 1)).collect();
        clients[0].0.is_busy();
        clients[1].0.is_busy();
        let third = enter(&places, 1);
        assert_eq!(evicted(&clients), [false, false, true]);
        third.0.is_busy();
        assert!(enter(&places, 2).1.is_none(), "all are busy");
        assert_eq!(places.state().taken, 3);
        drop(third);
        assert!(enter(&places, 2).1.is_some());
    }

    #[test]
    fn a_lowered_limit_applies_to_newcomers() {
        let places = Places::new(200);
        let clients: Vec<_> = (0..200).map(|_| enter(&places, 1)).collect();
        places.set_limit(2);
        assert!(!evicted(&clients).contains(&true), "nothing is closed by the change itself");
        let newcomers: Vec<_> = (0..4).map(|_| enter(&places, 2)).collect();
        assert!(places.state().taken <= 2, "{}", places.state().taken);
        assert!(newcomers[3].1.is_some());
        places.set_limit(300);
        let more: Vec<_> = (0..200).map(|_| enter(&places, 3)).collect();
        assert!(more.iter().all(|(_, place)| place.is_some()) && !evicted(&more).contains(&true));
    }

    #[test]
    fn an_announced_client_counts_for_its_own_network() {
        let places = Places::new(10);
        let mut clients: Vec<_> = (0..10).map(|_| enter(&places, 1)).collect();
        for (_, place) in &mut clients[1..] {
            place.as_mut().expect("a place").belongs_to(address(2));
        }
        let newcomer = enter(&places, 1);
        assert!(newcomer.1.is_some());
        assert!(!clients[0].0.is_evicted() && clients[1].0.is_evicted());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_newcomer_waits_for_a_place() {
        let places = Places::new(1);
        let (client, place) = enter(&places, 1);
        client.is_busy();
        let newcomer: Arc<dyn Holder> = Arc::new(Client::default());
        let waiting = places.wait(address(2), &newcomer);
        let leaving = async { drop(place) };
        let (_place, ()) = tokio::join!(waiting, leaving);
        assert!(!client.is_evicted());
        assert_eq!(places.state().taken, 1);
    }
}
