//! Table of clients with a recent successful handshake. Its size is fixed: when it is full, the entry seen least
//! recently is evicted.

use std::time::Duration;

/// Time for which a client stays known after its last successful handshake.
const REMEMBERED: Duration = Duration::from_secs(600);
const WAYS: usize = 4;

/// Set-associative table of known clients. Times are relative to an arbitrary epoch.
pub(super) struct Acquaintances(Vec<[Acquaintance; WAYS]>);

/// Entry of the table. Seconds are counted from 1; 0 marks an unused entry.
#[derive(Clone, Copy, Default)]
struct Acquaintance {
    key: u64,
    first: u32,
    last: u32,
}

impl Acquaintances {
    /// Creates a table for at least this number of entries.
    pub(super) fn new(entries: usize) -> Self {
        Self(vec![[Acquaintance::default(); WAYS]; entries.div_ceil(WAYS).next_power_of_two()])
    }

    /// Records a successful handshake of a client.
    pub(super) fn meet(&mut self, key: u64, now: Duration) {
        let last = second(now);
        let first = self.find(key, now).map_or(last, |known| known.first);
        let set = self.set(key);
        let oldest = || set.iter().enumerate().min_by_key(|(_, known)| known.last).map_or(0, |(way, _)| way);
        let way = set.iter().position(|known| known.key == key).unwrap_or_else(oldest);
        set[way] = Acquaintance { key, first, last };
    }

    /// Returns whether the client had a successful handshake recently.
    pub(super) fn knows(&mut self, key: u64, now: Duration) -> bool {
        self.find(key, now).is_some()
    }

    /// Returns whether the client is known, and was first seen before the second that contains `then`.
    pub(super) fn knew(&mut self, key: u64, then: Duration, now: Duration) -> bool {
        self.find(key, now).is_some_and(|known| known.first < second(then))
    }

    fn find(&mut self, key: u64, now: Duration) -> Option<Acquaintance> {
        let since = second(now).saturating_sub(REMEMBERED.as_secs() as u32);
        self.set(key).iter().find(|known| known.key == key && known.last > since).copied()
    }

    fn set(&mut self, key: u64) -> &mut [Acquaintance; WAYS] {
        let mask = self.0.len() - 1;
        &mut self.0[(key >> 32) as usize & mask]
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
        let mut all = Acquaintances::new(1024);
        assert!(!all.knows(5, at(0)) && !all.knows(0, at(0)));
        all.meet(5, at(0));
        assert!(all.knows(5, REMEMBERED - at(1)));
        assert!(!all.knows(5, REMEMBERED + at(1)));
    }

    #[test]
    fn the_first_handshake_of_a_client_is_remembered() {
        let mut all = Acquaintances::new(1024);
        all.meet(5, at(10));
        all.meet(5, at(20));
        all.meet(6, at(20));
        assert_eq!([5, 6].map(|key| all.knew(key, Duration::from_millis(20_900), at(30))), [true, false]);
        assert_eq!([5, 6].map(|key| all.knew(key, at(21), at(30))), [true, true]);
        // After a long absence the client starts as a new one.
        all.meet(5, at(20) + REMEMBERED);
        assert!(!all.knew(5, at(20) + REMEMBERED, at(20) + REMEMBERED));
    }

    #[test]
    fn the_oldest_make_room() {
        let mut all = Acquaintances::new(WAYS);
        for key in 1..=5 {
            all.meet(key, at(key));
        }
        let known: Vec<_> = (1..=5).filter(|key| all.knows(*key, at(6))).collect();
        assert_eq!(known, [2, 3, 4, 5]);
    }
}
