//! Share of the load that goes to the overflow: only operations that would wait longer locally than they take there.
//!
//! Pure: its inputs are the measured durations of batches.

use std::time::Duration;

/// Measured speed of one key type, locally and at the overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// One local operation, with all threads computing; unknown before the first batch.
    here: Option<Duration>,
    /// Batch at the overflow, from the first operation's departure to its return.
    there: Duration,
    /// One operation of a large batch at the overflow; unknown before the first.
    there_each: Option<Duration>,
}

/// Assumed duration of a batch at the overflow before one has been measured.
const FIRST_GUESS: Duration = Duration::from_millis(10);
/// Upper limit of the duration of a batch at the overflow, which bounds its size if that leaves it large enough.
const LONGEST: Duration = Duration::from_millis(25);
/// A batch at the overflow that is smaller than this part of its capacity wastes most of it.
const SMALLEST_PART: usize = 8;

impl Default for Pace {
    fn default() -> Self {
        Self { here: None, there: FIRST_GUESS, there_each: None }
    }
}

impl Pace {
    /// Records a batch computed locally by one of `threads` threads.
    pub fn computed(&mut self, operations: usize, took: Duration, threads: usize) {
        let each = took / count(operations.max(1)) / count(threads.max(1));
        self.here = Some(self.here.map_or(each, |known| blend(known, each)));
    }

    /// Records a batch computed at the overflow, with a maximum of `capacity`.
    pub fn overflowed(&mut self, operations: usize, took: Duration, capacity: usize) {
        self.there = blend(self.there, took);
        // The duration of a small batch says little about the cost of an operation.
        if operations * 2 >= self.most(capacity) {
            let each = took / count(operations.max(1));
            self.there_each = Some(self.there_each.map_or(each, |known| blend(known, each)));
        }
    }

    /// Returns how many of the waiting operations should go to the overflow: those beyond what is computed locally by
    /// the time that a batch returns from it. Zero, if too few wait.
    pub fn share(&self, waiting: usize, capacity: usize) -> usize {
        match self.here {
            Some(here) if capacity > 0 => waiting.saturating_sub(self.kept(here)).min(self.most(capacity)),
            _ => 0,
        }
    }

    fn kept(&self, here: Duration) -> usize {
        let kept = self.there.as_nanos() / here.as_nanos().max(1);
        usize::try_from(kept).unwrap_or(usize::MAX).max(1)
    }

    fn most(&self, capacity: usize) -> usize {
        let least = capacity.div_ceil(SMALLEST_PART);
        let lasting = |each: Duration| LONGEST.as_nanos() / each.as_nanos().max(1);
        let most =
            self.there_each.map_or(capacity, |each| usize::try_from(lasting(each)).unwrap_or(capacity));
        most.clamp(least, capacity.max(least))
    }
}

/// Weighted average of recent batches; the latest weighs most.
fn blend(known: Duration, new: Duration) -> Duration {
    (known * 7 + new) / 8
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::Pace;
    use std::time::Duration;

    /// 16 threads that need 160 microseconds for each operation: ten for one, together.
    fn known() -> Pace {
        let mut pace = Pace::default();
        pace.computed(8, Duration::from_micros(8 * 160), 16);
        pace
    }

    #[test]
    fn nothing_goes_before_something_was_measured() {
        assert_eq!(Pace::default().share(1_000_000, 10_000), 0);
    }

    #[test]
    fn what_is_done_here_in_the_meantime_stays() {
        let pace = known();
        assert_eq!(pace.share(1, 10_000), 0);
        assert_eq!(pace.share(1_000, 10_000), 0, "local threads compute these in ten milliseconds");
        assert_eq!(pace.share(1_001, 10_000), 1);
        assert_eq!(pace.share(6_000, 10_000), 5_000);
        assert_eq!(pace.share(60_000, 10_000), 10_000);
        assert_eq!(pace.share(60_000, 0), 0, "the overflow does not support the type");
    }

    #[test]
    fn the_slower_it_is_there_the_more_stays() {
        let mut pace = known();
        for _ in 0..100 {
            pace.overflowed(100, Duration::from_millis(40), 10_000);
        }
        assert_eq!(pace.share(3_900, 10_000), 0);
        assert!((1..=200).contains(&pace.share(4_100, 10_000)));
    }

    #[test]
    fn batches_become_as_small_as_they_have_to_last() {
        let mut pace = known();
        for _ in 0..100 {
            pace.overflowed(pace.share(1_000_000, 10_000), Duration::from_micros(10) * 5_000, 10_000);
        }
        let most = pace.share(1_000_000, 10_000);
        assert!(most < 10_000, "fifty milliseconds are too long: {most}");
        let mut slow = known();
        for _ in 0..100 {
            slow.overflowed(slow.share(1_000_000, 800), Duration::from_secs(1), 800);
        }
        assert_eq!(slow.share(1_000_000, 800), 100, "never less than an eighth");
    }
}
