//! What the backend cannot compute in time goes to somebody far away who computes a great many at once: a GPU.
//!
//! Such a one is slow for a single operation and cheap for thousands, so that it gets only what would wait longer here
//! than there. [`pace`] decides that; the rest of this module carries the operations there, and back if it fails.

pub mod pace;

use crate::{
    BatchReport, Job, KeyType,
    delivery::Delivery,
    shared::{Shared, State},
    ticket::Ticket,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, PoisonError},
    time::Duration,
};

/// Computes what is too much for a [`Backend`](crate::Backend).
pub trait Overflow: Send + Sync + 'static {
    /// As logs and metrics name it.
    fn name(&self) -> &'static str;

    /// Which one it is, as its maker calls it.
    fn device(&self) -> &str;

    /// How many batches it computes at once. Does not change.
    fn lanes(&self) -> usize;

    /// The most operations of this type in one batch; 0 if it computes none of them. Does not change.
    fn capacity(&self, key_type: KeyType) -> usize;

    /// Computes jobs of one key type, and finishes those that it could. What it leaves unfinished is queued again, ahead
    /// of all others, for the backend alone. Results must have been checked against the public key.
    ///
    /// # Errors
    /// The reason, if it is of no use any more: it is not asked again.
    fn compute(&self, batch: &mut [Job<'_>]) -> Result<(), String>;
}

struct Batch {
    key_type: KeyType,
    tickets: Vec<Arc<Ticket>>,
}

impl Shared {
    /// One lane's thread, until the engine stops or the other side is of no use any more.
    pub(crate) fn work_overflow(&self, overflow: &dyn Overflow) {
        while let Some(batch) = self.next_overflow(overflow) {
            self.compute_overflow(overflow, &batch);
        }
    }

    /// Whether something waits that would be done sooner elsewhere: which type, and how much of it.
    pub(crate) fn spills(&self, state: &State, overflow: &dyn Overflow) -> Option<(KeyType, usize)> {
        state.queues.waiting().find_map(|queue| {
            let capacity = overflow.capacity(queue.key_type);
            let count = state.pace(queue.key_type).share(queue.count, capacity);
            (count > 0).then_some((queue.key_type, count))
        })
    }

    fn next_overflow(&self, overflow: &dyn Overflow) -> Option<Batch> {
        let mut state = self.state();
        loop {
            if state.stopped || state.overflow_retired {
                return None;
            }
            if let Some((key_type, count)) = self.spills(&state, overflow) {
                let tickets = state.queues.take_last(key_type, count);
                if !tickets.is_empty() {
                    state.overflowing += tickets.len();
                    return Some(Batch { key_type, tickets });
                }
            }
            state.overflow_idle += 1;
            state = self.spilled.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.overflow_idle -= 1;
        }
    }

    fn compute_overflow(&self, overflow: &dyn Overflow, batch: &Batch) {
        let offered = batch.tickets.len();
        let delivery = Delivery::new(offered, offered, true);
        let mut jobs: Vec<Job<'_>> = batch.tickets.iter().map(|ticket| Job::new(ticket, &delivery)).collect();
        let done = catch_unwind(AssertUnwindSafe(|| overflow.compute(&mut jobs)));
        let done = done.unwrap_or_else(|_| Err("it panicked".to_owned()));
        let took = delivery.began.elapsed();
        let unfinished = jobs.iter().zip(&batch.tickets).filter(|(job, _)| !job.is_finished());
        let unfinished: Vec<_> = unfinished.map(|(_, ticket)| Arc::clone(ticket)).collect();
        let finished = offered - unfinished.len();
        let retired = self.settle(batch, unfinished, done.is_err(), took, overflow.capacity(batch.key_type));
        if let (Err(reason), true) = (&done, retired) {
            self.tell(|observer| observer.retired(overflow, reason));
        }
        if finished > 0 {
            let oldest = batch.tickets.iter().map(|ticket| ticket.submitted).min();
            let report = BatchReport {
                key_type: batch.key_type,
                backend: overflow.name(),
                operations: finished,
                waited: delivery.began.saturating_duration_since(oldest.unwrap_or(delivery.began)),
                computed: took,
                recomputed: delivery.recomputed.get(),
                failed: delivery.failed.get(),
                in_place: false,
            };
            self.tell(|observer| observer.batch(&report));
        }
    }

    /// Queues again what was not computed, and learns from what was. Returns true for the lane that found the other side
    /// lost.
    fn settle(
        &self,
        batch: &Batch,
        unfinished: Vec<Arc<Ticket>>,
        lost: bool,
        took: Duration,
        capacity: usize,
    ) -> bool {
        let mut state = self.state();
        let offered = batch.tickets.len();
        state.overflowing -= offered;
        if unfinished.is_empty() {
            state.pace_mut(batch.key_type).overflowed(offered, took, capacity);
        }
        let again = unfinished.len();
        state.queues.put_back(batch.key_type, unfinished);
        let retired = lost && !state.overflow_retired;
        state.overflow_retired |= lost;
        if retired {
            self.spilled.notify_all();
        }
        if again > 0 || state.stopped {
            self.work.notify_all();
        }
        retired
    }
}
