//! Set-associative tables: a key belongs to one set of a few entries, which evicts one of them when it is full. Their size
//! is fixed, independent of what clients send.

use std::cmp::Ordering;

/// The sets of a table.
pub(crate) struct Sets<S>(Box<[S]>);

impl<S: Default> Sets<S> {
    /// Creates sets of `ways` entries each, for at least this number of entries.
    pub(crate) fn new(entries: usize, ways: usize) -> Self {
        Self((0..entries.div_ceil(ways).next_power_of_two()).map(|_| S::default()).collect())
    }

    /// Returns the set of a key. Keys are hashes, whose high half selects it.
    pub(crate) fn of(&self, key: u64) -> &S {
        &self.0[self.index(key)]
    }

    /// Returns the set of a key, for changes.
    pub(crate) fn of_mut(&mut self, key: u64) -> &mut S {
        let index = self.index(key);
        &mut self.0[index]
    }

    /// Returns the number of sets, a power of two.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn index(&self, key: u64) -> usize {
        (key >> 32) as usize & (self.0.len() - 1)
    }
}

/// Returns the index of the first entry that fits, or else of the one with the lowest worth, which is evicted.
pub(crate) fn find_or_evict<E, W: PartialOrd>(
    set: &[E],
    fits: impl Fn(&E) -> bool,
    worth: impl Fn(&E) -> W,
) -> usize {
    set.iter().position(fits).unwrap_or_else(|| {
        let worths = set.iter().map(worth).enumerate();
        let least = worths.min_by(|one, other| one.1.partial_cmp(&other.1).unwrap_or(Ordering::Equal));
        least.map_or(0, |(way, _)| way)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_spread_over_a_power_of_two_of_sets() {
        let mut sets = Sets::<[u32; 4]>::new(1000, 4);
        assert_eq!(sets.len(), 256);
        for high in 0..1024_u64 {
            sets.of_mut(high << 32)[0] += 1;
        }
        assert!((0..256_u64).all(|high| sets.of(high << 32)[0] == 4));
        assert_eq!(Sets::<[u32; 4]>::new(0, 4).len(), 1);
    }

    #[test]
    fn a_full_set_evicts_the_entry_of_least_worth() {
        let set = [3.0, 1.0, 2.0];
        assert_eq!(find_or_evict(&set, |entry| *entry == 2.0, |entry| *entry), 2);
        assert_eq!(find_or_evict(&set, |entry| *entry == 4.0, |entry| *entry), 1);
    }
}
