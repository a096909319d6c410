//! When a free compute thread starts, on which queue, and with how many operations.
//!
//! Pure: it sees queue lengths, `now` and how scarce CPU is, and decides. While CPU is plentiful it is work-conserving:
//! a free thread takes what waits at once, and batches fill by themselves while the backend is busy. When CPU becomes
//! scarce, operations wait for company as long as that delays all of them together by less than the pass that is saved
//! would ([`Load`](crate::Load)), and never longer than the latency budget. With a `poll_delay` it is Envoy's CryptoMB
//! rule instead: a batch goes when it is full or when its first operation has waited long enough. A key may have a delay
//! of its own; the first operation that has waited long enough takes the others with it.

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
    /// Without a `poll_delay`: the longest that an operation waits for company while CPU is scarce; zero never waits.
    pub latency_budget: Duration,
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
    /// Since when the first of those waits whose keys have no delay of their own; `None` if all have one.
    pub oldest_by_policy: Option<Instant>,
    /// When the first of the others must go. Both look no further than at as many operations as go at once.
    pub deadline: Option<Instant>,
    /// The time between two arrivals, on average; `None` if nothing has arrived lately.
    pub interval: Option<Duration>,
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

impl Waiting {
    /// The same of an engine that stops, in which nobody waits for company.
    pub(crate) fn at_once(self) -> Self {
        Self { oldest_by_policy: Some(self.oldest), deadline: None, ..self }
    }
}

impl Policy {
    /// Less than most networks add to a handshake, and time enough for others to arrive where CPU is scarce.
    pub const LATENCY_BUDGET: Duration = Duration::from_millis(1);

    /// Decides for one free thread of `free` in all. The queue whose first operation has waited longest goes first.
    /// `scarcity` is [`Load::scarcity`](crate::Load::scarcity).
    pub fn decide(
        &self,
        now: Instant,
        waiting: impl Iterator<Item = Waiting>,
        free: NonZeroUsize,
        scarcity: f64,
    ) -> Decision {
        let mut next: Option<(Instant, Waiting)> = None;
        for queue in waiting {
            let due = self.due(&queue, scarcity);
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

    fn due(&self, queue: &Waiting, scarcity: f64) -> Instant {
        if queue.count >= self.limit(queue) {
            return queue.oldest;
        }
        let by_policy = queue.oldest_by_policy.map(|oldest| oldest + self.delay(queue, scarcity));
        by_policy.into_iter().chain(queue.deadline).min().unwrap_or(queue.oldest)
    }

    /// How long the first operation waits whose key says nothing of it.
    fn delay(&self, queue: &Waiting, scarcity: f64) -> Duration {
        if !self.poll_delay.is_zero() {
            self.poll_delay.min(LONGEST_DELAY)
        } else if self.pays_to_wait(queue, scarcity) {
            self.latency_budget.min(LONGEST_DELAY)
        } else {
            Duration::ZERO
        }
    }

    /// One more operation in this pass costs nothing, and much by itself. The wait for it delays all that wait here; its
    /// CPU, if that is not saved, delays all others of a machine whose CPU is scarce.
    fn pays_to_wait(&self, queue: &Waiting, scarcity: f64) -> bool {
        let Waiting { count, interval: Some(interval), batching, .. } = *queue else { return false };
        let delayed = interval.as_secs_f64() * count as f64;
        count < batching.half
            && interval <= self.latency_budget
            && delayed <= batching.price.as_secs_f64() * scarcity
    }

    /// Whole passes where one can be filled, because a pass costs the same however full it is; what is left over waits
    /// for the next turn. Of fewer go as many as half a pass computes at half the price. Those go together if a pass
    /// pays, and otherwise are shared one by one.
    fn share(&self, queue: &Waiting, free: NonZeroUsize) -> usize {
        let Waiting { count, batching: Batching { width, half, crossover, .. }, .. } = *queue;
        // What has waited for company is not taken apart.
        let waited =
            !self.poll_delay.is_zero() || queue.deadline.is_some_and(|deadline| deadline > queue.oldest);
        let share = if waited { count } else { count.div_ceil(free.get()) };
        let share = share.min(self.limit(queue));
        if count >= width {
            share.next_multiple_of(width).min(count - count % width)
        } else if count >= crossover {
            count.min(half)
        } else {
            share
        }
    }

    fn limit(&self, queue: &Waiting) -> usize {
        self.most(queue.batching)
    }

    /// How many operations need not wait for more.
    pub(crate) fn most(&self, batching: Batching) -> usize {
        let width = batching.width;
        (self.batch.get() - self.batch.get() % width).max(width).min(batching.most)
    }
}

/// Nobody means more, and no sum with it overflows.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(60 * 60);

impl Default for Policy {
    fn default() -> Self {
        let batch = const { NonZeroUsize::new(8).expect("8 is not zero") };
        Self { poll_delay: Duration::ZERO, latency_budget: Self::LATENCY_BUDGET, batch }
    }
}
