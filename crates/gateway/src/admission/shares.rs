//! How much CPU each of many has taken lately, and whether that is more than its share. The table has a fixed size,
//! whatever clients send: where it is full, whoever has taken least is forgotten.

use std::time::Duration;

/// What was taken in the last second counts.
const WINDOW: Duration = Duration::from_secs(1);
const WAYS: usize = 4;

/// The level is moved this often.
const ADJUSTED_EVERY: Duration = Duration::from_millis(50);
/// Of the mean.
const LEAST_LEVEL: f64 = 1.25;
/// Of the total: among thousands, the mean is less than a handshake, and chance would decide who is over it.
const LEAST_SHARE: f64 = 1.0 / 64.0;

/// Shares of all who ask. Times are since some epoch, CPU is in seconds.
pub(super) struct Shares {
    sets: Vec<[Entry; WAYS]>,
    total: Sliding,
    asking: [u32; 2],
    window: u32,
    /// How many times the mean is a share: as much as those who want less leave over.
    level: f64,
    adjusted: Duration,
}

/// One who asks.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    key: u64,
    /// In which it was seen last.
    window: u32,
    taken: Sliding,
    refused_in_a_row: u8,
}

/// A sum over the last window.
#[derive(Clone, Copy, Debug, Default)]
struct Sliding {
    window: u32,
    now: f32,
    before: f32,
}

/// How somebody stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// It has taken more than its share.
    pub(super) is_over: bool,
    /// How often it was refused since it was welcome.
    pub(super) refused_in_a_row: u8,
}

impl Shares {
    /// A table for at least so many.
    pub(super) fn new(entries: usize) -> Self {
        let sets = vec![[Entry::default(); WAYS]; entries.div_ceil(WAYS).next_power_of_two()];
        let adjusted = Duration::ZERO;
        Self { sets, total: Sliding::default(), asking: [0; 2], window: 0, level: 2.0, adjusted }
    }

    /// Counts this one among those who ask, and says how it stands.
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

    /// It was admitted, and takes this much.
    pub(super) fn take(&mut self, key: u64, cpu: f64, now: Duration) {
        let entry = self.entry(key, now);
        entry.taken.add(cpu, now);
        self.total.add(cpu, now);
    }

    /// It is not one of those who come in vain.
    pub(super) fn welcome(&mut self, key: u64, now: Duration) {
        self.entry(key, now).refused_in_a_row = 0;
    }

    /// It was refused.
    pub(super) fn refuse(&mut self, key: u64, now: Duration) {
        let entry = self.entry(key, now);
        entry.refused_in_a_row = entry.refused_in_a_row.saturating_add(1);
    }

    /// Moves the level to where it is neither too little for those who wait, nor too much for the machine: max-min
    /// fairness, found by trial.
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

/// In which window a time is.
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
    fn whoever_is_alone_has_all() {
        let mut shares = Shares::new(64);
        for tick in 0..5000 {
            assert!(!shares.ask(1 << 40, at(tick)).is_over);
            shares.take(1 << 40, 0.001, at(tick));
            shares.adjust(true, at(tick));
        }
    }

    #[test]
    fn whoever_takes_more_than_others_is_over_its_share() {
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
    fn the_table_keeps_those_who_take_most() {
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
    fn refusals_in_a_row_are_counted_until_it_is_welcome() {
        let mut shares = Shares::new(16);
        (0..300).for_each(|_| shares.refuse(7, at(1)));
        assert_eq!(shares.ask(7, at(1)).refused_in_a_row, u8::MAX);
        shares.take(7, 0.0, at(1));
        assert_eq!(shares.ask(7, at(1)).refused_in_a_row, u8::MAX);
        shares.welcome(7, at(1));
        assert_eq!(shares.ask(7, at(1)).refused_in_a_row, 0);
    }
}
