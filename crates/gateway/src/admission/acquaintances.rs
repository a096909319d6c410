//! Whose handshakes have succeeded lately. The table has a fixed size: where it is full, whoever came longest ago is
//! forgotten.

use std::time::Duration;

/// Whoever came back within this time is known.
const REMEMBERED: Duration = Duration::from_secs(600);
const WAYS: usize = 4;

/// Keys with the second in which they were seen last, counted from 1. Times are since some epoch.
pub(super) struct Acquaintances(Vec<[(u64, u32); WAYS]>);

impl Acquaintances {
    /// A table for at least so many.
    pub(super) fn new(entries: usize) -> Self {
        Self(vec![[(0, 0); WAYS]; entries.div_ceil(WAYS).next_power_of_two()])
    }

    /// Its handshake has succeeded.
    pub(super) fn meet(&mut self, key: u64, now: Duration) {
        let set = self.set(key);
        let oldest = |set: &[(u64, u32); WAYS]| {
            set.iter().enumerate().min_by_key(|(_, (_, seen))| *seen).map_or(0, |(way, _)| way)
        };
        let way = set.iter().position(|(known, _)| *known == key).unwrap_or_else(|| oldest(set));
        set[way] = (key, second(now));
    }

    pub(super) fn knows(&mut self, key: u64, now: Duration) -> bool {
        let since = second(now).saturating_sub(REMEMBERED.as_secs() as u32);
        self.set(key).iter().any(|(known, seen)| *known == key && *seen > since)
    }

    fn set(&mut self, key: u64) -> &mut [(u64, u32); WAYS] {
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

    #[test]
    fn who_came_lately_is_known() {
        let mut all = Acquaintances::new(1024);
        assert!(!all.knows(5, Duration::ZERO) && !all.knows(0, Duration::ZERO));
        all.meet(5, Duration::ZERO);
        assert!(all.knows(5, REMEMBERED - Duration::from_secs(1)));
        assert!(!all.knows(5, REMEMBERED + Duration::from_secs(1)));
    }

    #[test]
    fn the_oldest_make_room() {
        let mut all = Acquaintances::new(WAYS);
        for key in 1..=5 {
            all.meet(key, Duration::from_secs(key));
        }
        let known: Vec<_> = (1..=5).filter(|key| all.knows(*key, Duration::from_secs(6))).collect();
        assert_eq!(known, [2, 3, 4, 5]);
    }
}
