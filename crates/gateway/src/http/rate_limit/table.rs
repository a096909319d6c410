//! Usage by key, in memory of fixed size.

use crate::sets::{Sets, find_or_evict};
use governor::{nanos::Nanos, state::StateStore};
use std::{
    num::NonZeroUsize,
    sync::{Mutex, PoisonError},
};

/// Number of keys in a set, which is the unit of locking and eviction.
const WAYS: usize = 8;

/// Times at which the keys regain their whole burst. A key belongs to one set; if the set is full, it evicts the key
/// that regains its burst first. A client with ever new addresses thus evicts keys with little usage, and never a key
/// with high usage.
pub(crate) struct Table(Sets<Mutex<[Entry; WAYS]>>);

/// A key, and the time at which it regains its burst; the key 0 means a free entry.
#[derive(Clone, Copy, Default)]
struct Entry {
    key: u64,
    due: u64,
}

impl Table {
    /// Creates a table for about this number of keys, which must be evenly distributed.
    pub(crate) fn new(keys: NonZeroUsize) -> Self {
        Self(Sets::new(keys.get(), WAYS))
    }
}

impl StateStore for Table {
    type Key = u64;

    fn measure_and_replace<T, F, E>(&self, key: &u64, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut set = self.0.of(*key).lock().unwrap_or_else(PoisonError::into_inner);
        let way = find_or_evict(&*set, |entry| entry.key == *key, |entry| entry.due);
        let before = (set[way].key == *key).then(|| Nanos::new(set[way].due));
        let (measured, due) = measure(before)?;
        set[way] = Entry { key: *key, due: due.as_u64() };
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores a value under a key and returns the previous value.
    fn put(table: &Table, key: u64, due: u64) -> Option<u64> {
        let before: Result<_, ()> = table.measure_and_replace(&key, |before| Ok((before, Nanos::new(due))));
        before.expect("it is put").map(Nanos::as_u64)
    }

    #[test]
    fn a_key_finds_what_it_left() {
        let table = Table::new(NonZeroUsize::new(1000).expect("a number"));
        assert_eq!(table.0.len(), 128);
        assert_eq!(put(&table, 5, 1), None);
        assert_eq!(put(&table, 6, 2), None);
        assert_eq!(put(&table, 5, 3), Some(1));
        assert_eq!(put(&table, 5, 4), Some(3));
        let refused: Result<(), &str> = table.measure_and_replace(&5, |_| Err("too much"));
        assert_eq!(refused, Err("too much"));
        assert_eq!(put(&table, 5, 5), Some(4), "a rejected request changes nothing");
    }

    #[test]
    fn the_least_used_key_is_evicted_first() {
        let table = Table::new(NonZeroUsize::MIN);
        for key in 1..=8 {
            assert_eq!(put(&table, key, 100 * key), None);
        }
        assert_eq!(put(&table, 9, 150), None);
        assert_eq!(put(&table, 10, 120), None, "in the place of 9");
        for key in 2..=8 {
            assert_eq!(put(&table, key, 100 * key), Some(100 * key));
        }
        for forgotten in [1, 9] {
            assert_eq!(put(&table, forgotten, 1), None);
        }
    }

    #[test]
    fn memory_is_as_the_reference_says() {
        assert!(size_of::<Mutex<[Entry; WAYS]>>() <= 17 * WAYS);
    }
}
