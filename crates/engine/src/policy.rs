//! Batching policy: decides when a free compute thread starts, on which queue, and with how many operations.
//!
//! Pure: its inputs are queue lengths, `now` and CPU scarcity. While CPU is plentiful it is work-conserving: a free
//! thread takes waiting operations at once, and batches fill by themselves while the backend is busy. When CPU
//! becomes scarce, operations wait for others as long as that delays all of them together by less than the saved pass
//! would ([`Load`](crate::Load)), and never longer than the latency budget. A `poll_delay` selects Envoy's CryptoMB
//! rule instead: a batch goes when it is full or when its first operation has waited long enough. A key may have its
//! own delay; the first operation that has waited long enough takes the others with it.

use crate::{Batching, KeyType};
use std::{
    num::NonZeroUsize,
    time::{Duration, Instant},
};

/// Batching policy settings.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Maximum wait for a batch to fill; zero never waits. Delays every lone client by that time.
    pub poll_delay: Duration,
    /// Maximum wait for other operations while CPU is scarce, without a `poll_delay`; zero never waits.
    pub latency_budget: Duration,
    /// Maximum number of operations offered to the backend at once, in whole passes (and never less than one), and
    /// with a `poll_delay` the number that need not wait for it. More means fewer wake-ups and a longer wait for the
    /// last.
    pub batch: NonZeroUsize,
}

/// State of one queue, as input of the policy.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Key type of the queue.
    pub key_type: KeyType,
    /// Number of operations that wait in it; at least one.
    pub count: usize,
    /// Time since which the first of them has waited.
    pub oldest: Instant,
    /// Time since which the first operation without a key-specific delay has waited; `None` if all have one.
    pub oldest_by_policy: Option<Instant>,
    /// Deadline of the first of the others. Both consider only as many operations as go at once.
    pub deadline: Option<Instant>,
    /// Average time between two arrivals; `None` if nothing has arrived lately.
    pub interval: Option<Duration>,
    /// Batching parameters of the key type.
    pub batching: Batching,
}

/// Next step of a free compute thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Take operations from a queue.
    Take {
        /// Key type of the queue.
        key_type: KeyType,
        /// Number of operations; at least one.
        count: usize,
    },
    /// Wait until this time, unless more operations arrive.
    WaitUntil(Instant),
    /// Wait for operations: the queues are empty.
    Sleep,
}

impl Waiting {
    /// Returns the policy for an engine that stops, which does not wait for batches to fill.
    pub(crate) fn at_once(self) -> Self {
        Self { oldest_by_policy: Some(self.oldest), deadline: None, ..self }
    }
}

impl Policy {
    /// Less than most networks add to a handshake, and enough for others to arrive while CPU is scarce.
    pub const LATENCY_BUDGET: Duration = Duration::from_millis(1);

    /// Decides for one free thread of `free` in all. The queue with the longest-waiting first operation goes first.
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

    /// Maximum wait of the first operation without a key-specific delay.
    fn delay(&self, queue: &Waiting, scarcity: f64) -> Duration {
        if !self.poll_delay.is_zero() {
            self.poll_delay.min(LONGEST_DELAY)
        } else if self.pays_to_wait(queue, scarcity) {
            self.latency_budget.min(LONGEST_DELAY)
        } else {
            Duration::ZERO
        }
    }

    /// One more operation is free in this pass, and expensive alone. Waiting for it delays all operations of this
    /// queue; if its CPU time is not saved, that delays all others of a machine with scarce CPU.
    fn pays_to_wait(&self, queue: &Waiting, scarcity: f64) -> bool {
        let Waiting { count, interval: Some(interval), batching, .. } = *queue else { return false };
        let delayed = interval.as_secs_f64() * count as f64;
        count < batching.half
            && interval <= self.latency_budget
            && delayed <= batching.price.as_secs_f64() * scarcity
    }

    /// Takes whole passes if one can be filled, because a pass costs the same at any fill; the remainder waits for
    /// the next turn. Of fewer operations, takes as many as half a pass computes at half the price. Those go together
    /// if a pass pays, and otherwise are shared one by one.
    fn share(&self, queue: &Waiting, free: NonZeroUsize) -> usize {
        let Waiting { count, batching: Batching { width, half, crossover, .. }, .. } = *queue;
        // A batch that has waited for others is not split.
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

    /// Number of operations that need not wait for more.
    pub(crate) fn most(&self, batching: Batching) -> usize {
        let width = batching.width;
        (self.batch.get() - self.batch.get() % width).max(width).min(batching.most)
    }
}

/// Upper limit of delays; no sum with it overflows.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(60 * 60);

impl Default for Policy {
    fn default() -> Self {
        let batch = const { NonZeroUsize::new(8).expect("8 is not zero") };
        Self { poll_delay: Duration::ZERO, latency_budget: Self::LATENCY_BUDGET, batch }
    }
}
