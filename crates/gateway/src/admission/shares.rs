//! Sliding-window CPU accounting per client network or server name, with a fair-share threshold. The table has a
//! fixed size, independent of what clients send: when it is full, the entry with the lowest usage is evicted.

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
    sets: Vec<[Entry; WAYS]>,
    total: Sliding,
    asking: [u32; 2],
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
    refused_in_a_row: u8,
}

/// Sum over the last window.
#[derive(Clone, Copy, Debug, Default)]
struct Sliding {
    window: u32,
    now: f32,
    before: f32,
}

/// A key's standing: whether it exceeds its share, and how often it was rejected in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// Whether it has exceeded its share.
    pub(super) is_over: bool,
    /// Number of consecutive rejections.
    pub(super) refused_in_a_row: u8,
}

impl Shares {
    /// Creates a table for at least this number of keys.
    pub(super) fn new(entries: usize) -> Self {
        let sets = vec![[Entry::default(); WAYS]; entries.div_ceil(WAYS).next_power_of_two()];
        let adjusted = Duration::ZERO;
        Self { sets, total: Sliding::default(), asking: [0; 2], window: 0, level: 2.0, adjusted }
    }

    /// Counts the key as active in this window, and returns its standing.
    pub(super) fn ask(&mut self, key: u64, now: Duration) -> Standing {
        self.turn_to(window(now));
        let window = self.window;
        let entry = self.entry(key, now);
        let (taken, refused_in_a_row) = (entry.taken.sum(now), entry.refused_in_a_row);
        if std::mem::replace(&mut entry.window, window) != window {
            self.asking[0] += 1;
        }
        Standing { is_over: taken > self.share(now), refused_in_a_row }
    }

    /// Adds the CPU time of an admitted handshake.
    pub(super) fn take(&mut self, key: u64, cpu: f64, now: Duration) {
        let entry = self.entry(key, now);
        entry.taken.add(cpu, now);
        self.total.add(cpu, now);
    }

    /// Resets the count of consecutive rejections.
    pub(super) fn welcome(&mut self, key: u64, now: Duration) {
        self.entry(key, now).refused_in_a_row = 0;
    }

    /// Counts a rejection.
    pub(super) fn refuse(&mut self, key: u64, now: Duration) {
        let entry = self.entry(key, now);
        entry.refused_in_a_row = entry.refused_in_a_row.saturating_add(1);
    }

    /// Moves the level between starving the queue and overloading the machine: max-min fairness, found by trial.
    pub(super) fn adjust(&mut self, too_much: bool, now: Duration) {
        if now.saturating_sub(self.adjusted) < ADJUSTED_EVERY {
            return;
        }
        self.adjusted = now;
        let factor = if too_much { 0.85 } else { 1.1 };
        self.level = (self.level * factor).clamp(LEAST_LEVEL, self.askers().max(LEAST_LEVEL));
    }

    fn share(&self, now: Duration) -> f64 {
        (self.level / self.askers()).max(LEAST_SHARE) * self.total.sum(now)
    }

    fn askers(&self) -> f64 {
        f64::from(self.asking[0].max(self.asking[1]).max(1))
    }

    fn turn_to(&mut self, window: u32) {
        match window.wrapping_sub(self.window) {
            0 => return,
            1 => self.asking = [0, self.asking[0]],
            _ => self.asking = [0; 2],
        }
        self.window = window;
    }

    fn entry(&mut self, key: u64, now: Duration) -> &mut Entry {
        let mask = self.sets.len() - 1;
        let set = &mut self.sets[(key >> 32) as usize & mask];
        let least = |set: &[Entry; WAYS]| {
            let taken = set.iter().map(|entry| entry.taken.sum(now)).enumerate();
            taken.min_by(|one, other| one.1.total_cmp(&other.1)).map_or(0, |(way, _)| way)
        };
        let way = set.iter().position(|entry| entry.key == key).unwrap_or_else(|| least(set));
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
            assert!(!shares.ask(1 << 40, at(tick)).is_over);
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
            if shares.ask(1 << 40, now).is_over {
                over += 1;
            } else {
                shares.take(1 << 40, 0.001, now);
            }
            if tick % 10 == 0 {
                modest += usize::from(shares.ask(2 << 40, now).is_over);
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
            shares.ask(2 << 40, now);
            if tick % 100 == 0 {
                shares.take(2 << 40, 0.001, now);
            }
            if !shares.ask(1 << 40, now).is_over {
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
                shares.ask((tick * 16 + other + 1) << 30, at(tick));
            }
        }
        assert!(shares.entry(heavy, at(1000)).taken.sum(at(1000)) > 900.0);
        assert_eq!(shares.sets.len() * WAYS, 16);
    }

    #[test]
    fn consecutive_rejections_are_counted_until_reset() {
        let mut shares = Shares::new(16);
        (0..300).for_each(|_| shares.refuse(7, at(1)));
        assert_eq!(shares.ask(7, at(1)).refused_in_a_row, u8::MAX);
        shares.take(7, 0.0, at(1));
        assert_eq!(shares.ask(7, at(1)).refused_in_a_row, u8::MAX);
        shares.welcome(7, at(1));
        assert_eq!(shares.ask(7, at(1)).refused_in_a_row, 0);
    }
}
