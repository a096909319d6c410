//! When a free compute thread starts, on which queue, and with how many operations.
//!
//! Pure: it sees queue lengths and `now`, and decides. The default is work-conserving: a free thread takes what
//! waits at once, and batches fill by themselves while the backend is busy. With a `poll_delay` it is Envoy's
//! CryptoMB rule: a batch goes when it is full or when its first operation has waited long enough.

use crate::{Batching, KeyType};
use std::{
    num::NonZeroUsize,
    time::{Duration, Instant},
};

/// What the policy may be told.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Wait up to this long for a batch to fill; zero never waits. Costs every lone client that long.
    pub poll_delay: Duration,
    /// The most operations offered to the backend at once, in whole passes (and never less than one), and with a
    /// `poll_delay` the number that need not wait for it. More means fewer wake-ups and a longer wait for the last.
    pub batch: NonZeroUsize,
}

/// One queue, as the policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Which queue.
    pub key_type: KeyType,
    /// How many operations wait in it; at least one.
    pub count: usize,
    /// Since when the first of them waits.
    pub oldest: Instant,
    /// How many of them the backend computes at the price of one, and from how many on that pays.
    pub batching: Batching,
}

/// What a free compute thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Take so many from this queue.
    Take {
        /// Which queue.
        key_type: KeyType,
        /// At least one.
        count: usize,
    },
    /// Nothing is due before this time, unless more arrives.
    WaitUntil(Instant),
    /// Nothing waits.
    Sleep,
}

impl Policy {
    /// Decides for one free thread of `free` in all. The queue whose first operation has waited longest goes first.
    pub fn decide(
        &self,
        now: Instant,
        waiting: impl Iterator<Item = Waiting>,
        free: NonZeroUsize,
    ) -> Decision {
        let mut next: Option<(Instant, Waiting)> = None;
        for queue in waiting {
            let due = self.due(&queue);
            if next.is_none_or(|(soonest, first)| {
                (due.max(now), queue.oldest) < (soonest.max(now), first.oldest)
            }) {
                next = Some((due, queue));
            }
        }
        match next {
            None => Decision::Sleep,
            Some((due, _)) if due > now => Decision::WaitUntil(due),
            Some((_, queue)) => Decision::Take { key_type: queue.key_type, count: self.share(&queue, free) },
        }
    }

    fn due(&self, queue: &Waiting) -> Instant {
        if self.poll_delay.is_zero() || queue.count >= self.limit(queue) {
            queue.oldest
        } else {
            queue.oldest + self.poll_delay.min(LONGEST_DELAY)
        }
    }

    /// Whole passes where one can be filled, because a pass costs the same however full it is; what is left over waits
    /// for the next turn. Fewer go together if a pass pays, and otherwise are shared one by one.
    fn share(&self, queue: &Waiting, free: NonZeroUsize) -> usize {
        let Waiting { count, batching: Batching { width, crossover }, .. } = *queue;
        let share = if self.poll_delay.is_zero() { count.div_ceil(free.get()) } else { count };
        let share = share.min(self.limit(queue));
        if count >= width {
            share.next_multiple_of(width).min(count - count % width)
        } else if count >= crossover {
            count
        } else {
            share
        }
    }

    fn limit(&self, queue: &Waiting) -> usize {
        let width = queue.batching.width;
        (self.batch.get() - self.batch.get() % width).max(width)
    }
}

/// Nobody means more, and no sum with it overflows.
const LONGEST_DELAY: Duration = Duration::from_secs(60 * 60);

impl Default for Policy {
    fn default() -> Self {
        Self { poll_delay: Duration::ZERO, batch: const { NonZeroUsize::new(8).expect("8 is not zero") } }
    }
}
