//! Sliding-window CPU accounting per client network or server name, with a fair-share threshold. The table has a
//! fixed size, independent of what clients send: when it is full, the entry with the lowest usage is evicted.

use crate::sets::{Sets, find_or_evict};
use std::time::Duration;

/// Length of the sliding window.
const WINDOW: Duration = Duration::from_secs(1);
const WAYS: usize = 4;

/// Interval of adjustments of the level.
const ADJUSTED_EVERY: Duration = Duration::from_millis(50);
/// Minimum of the level, as a multiple of the mean.
const LEAST_LEVEL: f64 = 1.25;
/// Minimum of a share, as a fraction of the total: with thousands of entries, the mean is less than a handshake, and
/// chance would decide which are over it.
const LEAST_SHARE: f64 = 1.0 / 64.0;

/// Usage of all keys. Times are relative to an arbitrary epoch, CPU time is in seconds.
pub(super) struct Shares {
    sets: Sets<[Entry; WAYS]>,
    total: Sliding,
    active: [u32; 2],
    window: u32,
    /// Share as a multiple of the mean. It includes the capacity that keys with less demand leave unused.
    level: f64,
    adjusted: Duration,
}

/// Usage of a key.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    key: u64,
    /// Window in which the key was seen last.
    window: u32,
    taken: Sliding,
    rejections_in_a_row: u8,
}

/// Sum over the last window.
#[derive(Clone, Copy, Debug, Default)]
struct Sliding {
    window: u32,
    now: f32,
    before: f32,
}

/// Use of its share by a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShareUse {
    /// Whether it has exceeded its share.
    pub(super) is_over: bool,
    /// Number of consecutive rejections.
    pub(super) rejections_in_a_row: u8,
}

impl Shares {
    /// Creates a table for at least this number of keys.
    pub(super) fn new(entries: usize) -> Self {
        let sets = Sets::new(entries, WAYS);
        let adjusted = Duration::ZERO;
        Self { sets, total: Sliding::default(), active: [0; 2], window: 0, level: 2.0, adjusted }
    }

    /// Counts the key as active in this window, and returns the use of its share.
    pub(super) fn count(&mut self, key: u64, now: Duration) -> ShareUse {
        self.advance_to(window(now));
        let window = self.window;
        let entry = self.entry(key, now);
        let (taken, rejections_in_a_row) = (entry.taken.sum(now), entry.rejections_in_a_row);
        if std::mem::replace(&mut entry.window, window) != window {
            self.active[0] += 1;
        }
        ShareUse { is_over: taken > self.share(now), rejections_in_a_row }
    }

    /// Adds the CPU time of an admitted handshake.
    pub(super) fn take(&mut self, key: u64, cpu: f64, now: Duration) {
        let entry = self.entry(key, now);
        entry.taken.add(cpu, now);
        self.total.add(cpu, now);
    }

    /// Resets the count of consecutive rejections.
    pub(super) fn reset_rejections(&mut self, key: u64, now: Duration) {
        self.entry(key, now).rejections_in_a_row = 0;
    }

    /// Counts a rejection.
    pub(super) fn count_rejection(&mut self, key: u64, now: Duration) {
        let entry = self.entry(key, now);
        entry.rejections_in_a_row = entry.rejections_in_a_row.saturating_add(1);
    }

    /// Moves the level between starving the queue and overloading the machine: max-min fairness, found by trial.
    pub(super) fn adjust(&mut self, too_much: bool, now: Duration) {
        if now.saturating_sub(self.adjusted) < ADJUSTED_EVERY {
            return;
        }
        self.adjusted = now;
        let factor = if too_much { 0.85 } else { 1.1 };
        self.level = (self.level * factor).clamp(LEAST_LEVEL, self.active_keys().max(LEAST_LEVEL));
    }

    fn share(&self, now: Duration) -> f64 {
        (self.level / self.active_keys()).max(LEAST_SHARE) * self.total.sum(now)
    }

    fn active_keys(&self) -> f64 {
        f64::from(self.active[0].max(self.active[1]).max(1))
    }

    fn advance_to(&mut self, window: u32) {
        match window.wrapping_sub(self.window) {
            0 => return,
            1 => self.active = [0, self.active[0]],
            _ => self.active = [0; 2],
        }
        self.window = window;
    }

    fn entry(&mut self, key: u64, now: Duration) -> &mut Entry {
        let set = self.sets.of_mut(key);
        let way = find_or_evict(set, |entry| entry.key == key, |entry| entry.taken.sum(now));
        if set[way].key != key {
            set[way] = Entry { key, window: u32::MAX, ..Entry::default() };
        }
        &mut set[way]
    }
}

impl Sliding {
    fn add(&mut self, amount: f64, now: Duration) {
        let window = window(now);
        match window.wrapping_sub(self.window) {
            0 => {}
            1 => (self.before, self.now) = (self.now, 0.0),
            _ => (self.before, self.now) = (0.0, 0.0),
        }
        self.window = window;
        self.now += amount as f32;
    }

    fn sum(&self, now: Duration) -> f64 {
        let left = 1.0 - f64::from(now.subsec_nanos()) * 1e-9;
        match window(now).wrapping_sub(self.window) {
            0 => f64::from(self.before) * left + f64::from(self.now),
            1 => f64::from(self.now) * left,
            _ => 0.0,
        }
    }
}

/// Returns the window that contains a time.
fn window(now: Duration) -> u32 {
    const { assert!(WINDOW.as_secs() == 1) };
    now.as_secs() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_single_client_gets_all() {
        let mut shares = Shares::new(64);
        for tick in 0..5000 {
            assert!(!shares.count(1 << 40, at(tick)).is_over);
            shares.take(1 << 40, 0.001, at(tick));
            shares.adjust(true, at(tick));
        }
    }

    #[test]
    fn a_client_that_takes_more_than_others_is_over_its_share() {
        let mut shares = Shares::new(64);
        let (mut over, mut modest) = (0, 0);
        for tick in 0..5000 {
            let now = at(tick);
            if shares.count(1 << 40, now).is_over {
                over += 1;
            } else {
                shares.take(1 << 40, 0.001, now);
            }
            if tick % 10 == 0 {
                modest += usize::from(shares.count(2 << 40, now).is_over);
                shares.take(2 << 40, 0.001, now);
            }
            shares.adjust(true, now);
        }
        assert!(over > 4000 && modest == 0, "{over} and {modest}");
    }

    #[test]
    fn what_others_leave_is_for_the_greedy() {
        let mut shares = Shares::new(64);
        let mut taken = 0.0;
        for tick in 0..10_000 {
            let now = at(tick);
            shares.count(2 << 40, now);
            if tick % 100 == 0 {
                shares.take(2 << 40, 0.001, now);
            }
            if !shares.count(1 << 40, now).is_over {
                shares.take(1 << 40, 0.001, now);
                taken += 0.001;
            }
            shares.adjust(false, now);
        }
        assert!(taken > 9.0, "{taken}");
    }

    #[test]
    fn the_table_keeps_the_highest_usage() {
        let mut shares = Shares::new(16);
        let heavy = u64::MAX;
        for tick in 0..1000 {
            shares.take(heavy, 1.0, at(tick));
            for other in 0..16 {
                shares.count((tick * 16 + other + 1) << 30, at(tick));
            }
        }
        assert!(shares.entry(heavy, at(1000)).taken.sum(at(1000)) > 900.0);
        assert_eq!(shares.sets.len() * WAYS, 16);
    }

    #[test]
    fn consecutive_rejections_are_counted_until_reset() {
        let mut shares = Shares::new(16);
        (0..300).for_each(|_| shares.count_rejection(7, at(1)));
        assert_eq!(shares.count(7, at(1)).rejections_in_a_row, u8::MAX);
        shares.take(7, 0.0, at(1));
        assert_eq!(shares.count(7, at(1)).rejections_in_a_row, u8::MAX);
        shares.reset_rejections(7, at(1));
        assert_eq!(shares.count(7, at(1)).rejections_in_a_row, 0);
    }
}
