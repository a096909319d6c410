//! Share of the load that goes to the overflow: operations that would wait longer locally than they take there.
//!
//! While CPU is scarce, an operation computed locally also delays everything else that waits for a CPU: event loops and
//! compute threads share the cores, so that the queue stays short although handshakes wait. The CPU time that the
//! overflow saves therefore counts, times [`Load::scarcity`](crate::Load::scarcity), as time gained: with scarce CPU
//! fewer operations stay, and finally none, and compute threads leave them to the overflow for a short time.
//!
//! Pure: its inputs are the measured durations and CPU times of batches, and CPU scarcity.

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
    /// CPU time of one local operation in the fullest of recent passes, as they are while CPU is scarce; unknown before
    /// the first batch.
    cpu_here: Option<Duration>,
    /// CPU time of this process for one operation at the overflow.
    cpu_there: Duration,
}

/// Assumed duration of a batch at the overflow before one has been measured.
const FIRST_GUESS: Duration = Duration::from_millis(10);
/// Upper limit of the duration of a batch at the overflow, which bounds its size if that leaves it large enough.
const LONGEST: Duration = Duration::from_millis(25);
/// A batch at the overflow that is smaller than this part of its capacity wastes most of it.
const SMALLEST_PART: usize = 8;
/// Local batches after which most of a CPU time is forgotten that may no longer be right: one at the overflow that was
/// too high, which is measured again, and a local one in a fuller pass.
const FORGOTTEN_AFTER: u32 = 256;

impl Default for Pace {
    fn default() -> Self {
        let (here, there_each, cpu_here) = (None, None, None);
        Self { here, there: FIRST_GUESS, there_each, cpu_here, cpu_there: Duration::ZERO }
    }
}

impl Pace {
    /// Records a batch computed locally in `took`, with `cpu` of CPU time, by one of `threads` threads.
    pub fn computed(&mut self, operations: usize, took: Duration, cpu: Duration, threads: usize) {
        let operations = count(operations.max(1));
        let each = took / operations / count(threads.max(1));
        self.here = Some(self.here.map_or(each, |known| blend(known, each)));
        let cpu = cpu / operations;
        let dearer = |known: Duration| known + cpu.saturating_sub(known) / FORGOTTEN_AFTER;
        self.cpu_here = Some(self.cpu_here.map_or(cpu, |known| cpu.min(dearer(known))));
        self.cpu_there -= self.cpu_there / FORGOTTEN_AFTER;
    }

    /// Records a batch computed at the overflow, with a maximum of `capacity`.
    pub fn overflowed(&mut self, operations: usize, took: Duration, cpu: Duration, capacity: usize) {
        self.there = blend(self.there, took);
        self.cpu_there = blend(self.cpu_there, cpu / count(operations.max(1)));
        // The duration of a small batch says little about the cost of an operation.
        if operations * 2 >= self.most(capacity) {
            let each = took / count(operations.max(1));
            self.there_each = Some(self.there_each.map_or(each, |known| blend(known, each)));
        }
    }

    /// Returns how many of the waiting operations should go to the overflow: those beyond what is computed locally by
    /// the time that a batch returns from it, less the time gained by saved CPU. Zero, if too few wait.
    pub fn share(&self, waiting: usize, capacity: usize, scarcity: f64) -> usize {
        match self.here {
            Some(here) if capacity > 0 => {
                waiting.saturating_sub(self.kept(here, scarcity)).min(self.most(capacity))
            }
            _ => 0,
        }
    }

    /// Returns the maximum time that an operation waits for the overflow instead of a compute thread; `None` if
    /// compute threads take it at once. After that time the overflow is too busy, and they help.
    pub fn hold(&self, capacity: usize, scarcity: f64) -> Option<Duration> {
        let holds = capacity > 0 && self.here.is_some() && self.penalty(scarcity).is_zero();
        holds.then(|| self.there.min(LONGEST))
    }

    fn kept(&self, here: Duration, scarcity: f64) -> usize {
        let penalty = self.penalty(scarcity);
        let kept = penalty.as_nanos() / here.as_nanos().max(1);
        usize::try_from(kept).unwrap_or(usize::MAX).max(usize::from(!penalty.is_zero()))
    }

    /// Returns the duration of a batch at the overflow, less the total delay that it spares others.
    fn penalty(&self, scarcity: f64) -> Duration {
        let saved = self.cpu_here.unwrap_or_default().saturating_sub(self.cpu_there);
        let spared = Duration::try_from_secs_f64(saved.as_secs_f64() * scarcity).unwrap_or(Duration::ZERO);
        self.there.saturating_sub(spared)
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

    const PLENTY: f64 = 0.0;

    /// 16 threads that need 160 microseconds for each operation: ten for one, together.
    fn known() -> Pace {
        let mut pace = Pace::default();
        let took = Duration::from_micros(8 * 160);
        pace.computed(8, took, took, 16);
        pace
    }

    #[test]
    fn nothing_goes_before_something_was_measured() {
        assert_eq!(Pace::default().share(1_000_000, 10_000, PLENTY), 0);
    }

    #[test]
    fn what_is_done_here_in_the_meantime_stays() {
        let pace = known();
        assert_eq!(pace.share(1, 10_000, PLENTY), 0);
        assert_eq!(pace.share(1_000, 10_000, PLENTY), 0, "local threads compute these in ten milliseconds");
        assert_eq!(pace.share(1_001, 10_000, PLENTY), 1);
        assert_eq!(pace.share(6_000, 10_000, PLENTY), 5_000);
        assert_eq!(pace.share(60_000, 10_000, PLENTY), 10_000);
        assert_eq!(pace.share(60_000, 0, PLENTY), 0, "the overflow does not support the type");
    }

    #[test]
    fn the_slower_it_is_there_the_more_stays() {
        let mut pace = known();
        for _ in 0..100 {
            pace.overflowed(100, Duration::from_millis(40), Duration::ZERO, 10_000);
        }
        assert_eq!(pace.share(3_900, 10_000, PLENTY), 0);
        assert!((1..=200).contains(&pace.share(4_100, 10_000, PLENTY)));
    }

    #[test]
    fn batches_become_as_small_as_they_have_to_last() {
        let mut pace = known();
        for _ in 0..100 {
            let took = Duration::from_micros(10) * 5_000;
            pace.overflowed(pace.share(1_000_000, 10_000, PLENTY), took, Duration::ZERO, 10_000);
        }
        let most = pace.share(1_000_000, 10_000, PLENTY);
        assert!(most < 10_000, "fifty milliseconds are too long: {most}");
        let mut slow = known();
        for _ in 0..100 {
            let count = slow.share(1_000_000, 800, PLENTY);
            slow.overflowed(count, Duration::from_secs(1), Duration::ZERO, 800);
        }
        assert_eq!(slow.share(1_000_000, 800, PLENTY), 100, "never less than an eighth");
    }

    #[test]
    fn the_scarcer_the_cpu_the_less_stays() {
        let pace = known();
        // 160 microseconds of CPU each, and ten milliseconds at the overflow.
        let kept = |scarcity| 10_000 - pace.share(10_000, 10_000, scarcity);
        assert_eq!([0.0, 3.0, 30.0].map(kept), [1_000, 952, 520]);
        assert_eq!(pace.share(1, 10_000, 62.0), 0, "one stays");
        assert_eq!(pace.hold(10_000, 62.0), None);
        assert_eq!(pace.share(1, 10_000, 63.0), 1, "none stays");
        assert_eq!(pace.hold(10_000, 63.0), Some(Duration::from_millis(10)));
        assert_eq!(pace.share(1, 0, 63.0), 0, "the overflow does not support the type");
        assert_eq!(pace.hold(0, 63.0), None);
        assert_eq!(Pace::default().hold(10_000, 63.0), None, "nothing was measured");
    }

    #[test]
    fn an_overflow_that_saves_no_cpu_gets_no_more_until_that_is_forgotten() {
        let mut pace = known();
        let (took, cpu) = (Duration::from_millis(10), Duration::from_micros(200));
        (0..100).for_each(|_| pace.overflowed(1, took, cpu, 10_000));
        assert_eq!(pace.share(1_000, 10_000, 140.0), 0);
        assert_eq!(pace.hold(10_000, 140.0), None);
        let (took, mut batches) = (Duration::from_micros(8 * 160), 0);
        while pace.hold(10_000, 140.0).is_none() {
            pace.computed(8, took, took, 16);
            batches += 1;
        }
        assert!((100..1_000).contains(&batches), "{batches}");
    }

    #[test]
    fn operations_are_not_held_for_longer_than_a_batch_may_last() {
        let mut pace = known();
        let (took, cpu) = (Duration::from_millis(35), Duration::from_micros(8));
        (0..100).for_each(|_| pace.overflowed(100, took, cpu, 10_000));
        assert_eq!(pace.hold(10_000, 140.0), None, "too slow for 152 microseconds of CPU");
        assert_eq!(pace.hold(10_000, 240.0), Some(Duration::from_millis(25)));
    }
}
