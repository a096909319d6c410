//! Table of clients with a recent successful handshake. Its size is fixed: when it is full, the entry seen least
//! recently is evicted.

use crate::sets::{Sets, find_or_evict};
use std::time::Duration;

/// Time for which a client stays known after its last successful handshake.
const REMEMBERED: Duration = Duration::from_secs(600);
const WAYS: usize = 4;

/// Table of known clients. Times are relative to an arbitrary epoch.
pub(super) struct RecentClients(Sets<[Entry; WAYS]>);

/// Entry of the table. Seconds are counted from 1; 0 marks an unused entry.
#[derive(Clone, Copy, Default)]
struct Entry {
    key: u64,
    first: u32,
    last: u32,
}

impl RecentClients {
    /// Creates a table for at least this number of entries.
    pub(super) fn new(entries: usize) -> Self {
        Self(Sets::new(entries, WAYS))
    }

    /// Records a successful handshake of a client.
    pub(super) fn record(&mut self, key: u64, now: Duration) {
        let last = second(now);
        let first = self.find(key, now).map_or(last, |known| known.first);
        let set = self.0.of_mut(key);
        let way = find_or_evict(set, |known| known.key == key, |known| known.last);
        set[way] = Entry { key, first, last };
    }

    /// Returns whether the client had a successful handshake recently.
    pub(super) fn knows(&self, key: u64, now: Duration) -> bool {
        self.find(key, now).is_some()
    }

    /// Returns whether the client is known, and was first seen before the second that contains `then`.
    pub(super) fn knew(&self, key: u64, then: Duration, now: Duration) -> bool {
        self.find(key, now).is_some_and(|known| known.first < second(then))
    }

    fn find(&self, key: u64, now: Duration) -> Option<Entry> {
        let since = second(now).saturating_sub(REMEMBERED.as_secs() as u32);
        self.0.of(key).iter().find(|known| known.key == key && known.last > since).copied()
    }
}

fn second(now: Duration) -> u32 {
    now.as_secs() as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn recent_clients_are_known() {
        let mut all = RecentClients::new(1024);
        assert!(!all.knows(5, at(0)) && !all.knows(0, at(0)));
        all.record(5, at(0));
        assert!(all.knows(5, REMEMBERED - at(1)));
        assert!(!all.knows(5, REMEMBERED + at(1)));
    }

    #[test]
    fn the_first_handshake_of_a_client_is_remembered() {
        let mut all = RecentClients::new(1024);
        all.record(5, at(10));
        all.record(5, at(20));
        all.record(6, at(20));
        assert_eq!([5, 6].map(|key| all.knew(key, Duration::from_millis(20_900), at(30))), [true, false]);
        assert_eq!([5, 6].map(|key| all.knew(key, at(21), at(30))), [true, true]);
        // After a long absence the client starts as a new one.
        all.record(5, at(20) + REMEMBERED);
        assert!(!all.knew(5, at(20) + REMEMBERED, at(20) + REMEMBERED));
    }

    #[test]
    fn the_oldest_make_room() {
        let mut all = RecentClients::new(WAYS);
        for key in 1..=5 {
            all.record(key, at(key));
        }
        let known: Vec<_> = (1..=5).filter(|key| all.knows(*key, at(6))).collect();
        assert_eq!(known, [2, 3, 4, 5]);
    }
}
