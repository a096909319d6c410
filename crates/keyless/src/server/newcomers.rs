//! Unidentified connections: they have separate places, so that a flood of them does not shut out known clients, and
//! each source has a few.
//!
//! When the places are taken, the oldest connection is evicted: a handshake takes milliseconds, and a slower client
//! may be dropped.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::oneshot;

/// Places of all sources together.
const PLACES: usize = 2048;
/// Places of each source. A gateway that starts opens one connection for each of its event loops.
const PLACES_OF_A_SOURCE: usize = 256;

/// Source of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// IPv4 address, or an IPv6 network of 64 bits, which a single machine typically has.
    Network(IpAddr),
    /// User of this machine.
    User(u32),
}

#[derive(Debug, Default)]
pub(super) struct Newcomers(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// Connections in the order of arrival.
    all: BTreeMap<u64, (Source, oneshot::Sender<()>)>,
    sources: HashMap<Source, VecDeque<u64>>,
}

/// Place of one connection, until it is identified.
#[derive(Debug)]
pub(super) struct WaitingPlace {
    all: Arc<Newcomers>,
    number: u64,
    displaced: oneshot::Receiver<()>,
}

impl Source {
    pub(super) fn network(address: IpAddr) -> Self {
        const NETWORK: u128 = !0 << 64;
        Self::Network(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6((u128::from(address) & NETWORK).into()),
            address => address,
        })
    }
}

impl Newcomers {
    /// Returns a place for one more connection; the oldest may be evicted for it.
    pub(super) fn enter(self: &Arc<Self>, source: Source) -> WaitingPlace {
        let (sender, displaced) = oneshot::channel();
        let mut waiting = self.waiting();
        let of_source = waiting.sources.get(&source);
        let oldest = match of_source.filter(|numbers| numbers.len() >= PLACES_OF_A_SOURCE) {
            Some(numbers) => numbers.front().copied(),
            None if waiting.all.len() >= PLACES => waiting.all.keys().next().copied(),
            None => None,
        };
        if let Some(oldest) = oldest {
            // Its task sees that the sender was dropped.
            waiting.remove(oldest);
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.all.insert(number, (source, sender));
        waiting.sources.entry(source).or_default().push_back(number);
        WaitingPlace { all: Arc::clone(self), number, displaced }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn remove(&mut self, number: u64) {
        let Some((source, _)) = self.all.remove(&number) else { return };
        if let Some(numbers) = self.sources.get_mut(&source) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.sources.remove(&source);
            }
        }
    }
}

impl WaitingPlace {
    /// Returns when the connection is evicted.
    pub(super) async fn displaced(&mut self) {
        let _ = (&mut self.displaced).await;
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.all.waiting().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_displaced(place: &mut WaitingPlace) -> bool {
        place.displaced.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    fn network(number: u32) -> Source {
        Source::network(IpAddr::V4(number.into()))
    }

    #[test]
    fn a_source_that_floods_displaces_only_its_own() {
        let all = Arc::new(Newcomers::default());
        let mut other = all.enter(network(2));
        let mut flood: Vec<_> = (0..5000).map(|_| all.enter(network(1))).collect();
        assert!(!is_displaced(&mut other));
        let left = flood.iter_mut().map(is_displaced).filter(|gone| !gone).count();
        assert_eq!(left, PLACES_OF_A_SOURCE);
        assert!(
            flood.iter_mut().rev().take(PLACES_OF_A_SOURCE).all(|place| !is_displaced(place)),
            "the newest"
        );
        drop((flood, other));
        let waiting = all.waiting();
        assert!(waiting.all.is_empty() && waiting.sources.is_empty());
    }

    #[test]
    fn a_flood_from_everywhere_leaves_a_place_for_new_connections() {
        let all = Arc::new(Newcomers::default());
        let mut flood: Vec<_> = (0..20_000).map(|number| all.enter(network(number))).collect();
        let mut gateway = all.enter(network(100_000));
        assert!(!is_displaced(&mut gateway));
        assert_eq!(flood.iter_mut().map(is_displaced).filter(|gone| !gone).count(), PLACES - 1);
    }

    #[test]
    fn machines_are_distinguished_by_their_network() {
        let source = |text: &str| Source::network(text.parse().expect("an address"));
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:1"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
        assert_ne!(source("192.0.2.1"), source("192.0.2.2"));
    }
}
