//! Threads that pass operations to the overflow, and return them to the queue if it fails.

use crate::{BatchReport, Job, KeyType, Overflow, delivery::Delivery, shared::Shared, ticket::Ticket};
use quadrille_handshake_timing::process_time;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

struct Batch {
    key_type: KeyType,
    tickets: Vec<Arc<Ticket>>,
}

impl Shared {
    /// Runs one lane's thread until the engine stops or the overflow is retired.
    pub(crate) fn work_overflow(&self, overflow: &dyn Overflow) {
        while let Some(batch) = self.next_overflow(overflow) {
            self.compute_overflow(overflow, &batch);
        }
    }

    fn next_overflow(&self, overflow: &dyn Overflow) -> Option<Batch> {
        let mut state = self.state();
        loop {
            if state.stopped || state.overflow_retired {
                return None;
            }
            state.load.observe(Instant::now(), process_time);
            if let Some((key_type, count)) = self.spills(&state, overflow) {
                let tickets = state.queues.take_last(key_type, count);
                if !tickets.is_empty() {
                    state.overflowing += tickets.len();
                    self.wake_overflow(&mut state, overflow);
                    return Some(Batch { key_type, tickets });
                }
            }
            state.overflow_idle += 1;
            state = self.spilled.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.overflow_idle -= 1;
            state.overflow_woken = false;
        }
    }

    fn compute_overflow(&self, overflow: &dyn Overflow, batch: &Batch) {
        let offered = batch.tickets.len();
        let delivery = Delivery::new(offered, offered, true);
        let mut jobs: Vec<Job<'_>> = batch.tickets.iter().map(|ticket| Job::new(ticket, &delivery)).collect();
        let done = catch_unwind(AssertUnwindSafe(|| overflow.compute(&mut jobs)));
        let done = done.unwrap_or_else(|_| Err("it panicked".to_owned()));
        let (took, cpu) = (delivery.began.elapsed(), delivery.cpu());
        let unfinished = jobs.iter().zip(&batch.tickets).filter(|(job, _)| !job.is_finished());
        let unfinished: Vec<_> = unfinished.map(|(_, ticket)| Arc::clone(ticket)).collect();
        let finished = offered - unfinished.len();
        let capacity = overflow.capacity(batch.key_type);
        let retired = self.settle(batch, unfinished, done.is_err(), (took, cpu), capacity);
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
                cpu,
                saved: self.backend.batching(batch.key_type).saved(finished, cpu),
                recomputed: delivery.recomputed.get(),
                failed: delivery.failed.get(),
                in_place: false,
            };
            self.tell(|observer| observer.batch(&report));
        }
    }

    /// Queues unfinished operations again, and records the batch's duration and CPU time. Returns true for the lane that retired
    /// the overflow.
    fn settle(
        &self,
        batch: &Batch,
        unfinished: Vec<Arc<Ticket>>,
        lost: bool,
        (took, cpu): (Duration, Duration),
        capacity: usize,
    ) -> bool {
        let mut state = self.state();
        let offered = batch.tickets.len();
        state.overflowing -= offered;
        if unfinished.is_empty() {
            state.pace_mut(batch.key_type).overflowed(offered, took, cpu, capacity);
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
