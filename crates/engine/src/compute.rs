//! Compute threads: take and compute batches until the engine stops and the queues are empty.

use crate::{
    BatchReport, Job, KeyType, OperationError,
    delivery::Delivery,
    policy::Decision,
    shared::{Shared, State},
    ticket::Ticket,
};
use quadrille_handshake_timing::process_time;
use std::{
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Compute threads of one engine. On drop they compute the queued operations and end.
pub(crate) struct Threads {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
}

/// Operations that have begun.
pub(crate) struct Batch {
    pub(crate) key_type: KeyType,
    pub(crate) tickets: Vec<Arc<Ticket>>,
    /// Too few operations for the backend to pay.
    pub(crate) scalar: bool,
}

/// Number of operations gained by yielding the CPU.
#[derive(Default)]
struct Gathered {
    yields: u8,
    operations: usize,
}

impl Gathered {
    /// Returns whether to yield once more: only if the last yield gained operations.
    fn may_grow(&mut self, operations: usize, most: u8) -> bool {
        let grows = operations > self.operations && self.yields < most;
        self.operations = operations;
        self.yields += u8::from(grows);
        grows
    }
}

impl Threads {
    pub(crate) fn start(shared: &Arc<Shared>, count: NonZeroUsize) -> std::io::Result<Self> {
        let mut threads = Self { shared: Arc::clone(shared), handles: Vec::new() };
        for index in 0..count.get() {
            let shared = Arc::clone(shared);
            let thread = std::thread::Builder::new().name(format!("compute-{index}"));
            threads.handles.push(thread.spawn(move || shared.work(count))?);
        }
        if let Some(overflow) = &shared.backend.overflow {
            for index in 0..overflow.lanes() {
                let (shared, overflow) = (Arc::clone(shared), Arc::clone(overflow));
                let thread = std::thread::Builder::new().name(format!("overflow-{index}"));
                threads.handles.push(thread.spawn(move || shared.work_overflow(&*overflow))?);
            }
        }
        Ok(threads)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.stop();
        // An observer or a waker may hold the last engine; that compute thread cannot join itself.
        let me = std::thread::current().id();
        for handle in self.handles.drain(..).filter(|handle| handle.thread().id() != me) {
            let _ = handle.join();
        }
    }
}

impl Shared {
    fn work(&self, threads: NonZeroUsize) {
        while let Some(batch) = self.next_batch() {
            let (took, cpu) = self.compute(&batch);
            let mut state = self.state();
            if self.backend.overflow.is_some() {
                state.pace_mut(batch.key_type).computed(batch.tickets.len(), took, cpu, threads.get());
            }
            let more_waits = state.queues.live() > 0;
            drop(state);
            if more_waits {
                // Yields to the event loop that may share this core and has results to send.
                std::thread::yield_now();
            }
        }
    }

    fn next_batch(&self) -> Option<Batch> {
        let mut state = self.state();
        let mut gathered = Gathered::default();
        loop {
            if state.stopped && state.queues.live() == 0 && state.overflowing == 0 {
                return None;
            }
            let now = Instant::now();
            state.load.observe(now, process_time);
            match self.decide(&state, now) {
                Decision::Take { key_type, count } => {
                    let width = state.queues.batching(key_type).map_or(1, |batching| batching.width);
                    if count < width && !state.stopped && gathered.may_grow(count, self.settings.yields) {
                        drop(state);
                        std::thread::yield_now();
                        state = self.state();
                        continue;
                    }
                    let batch = self.take(&mut state, key_type, count);
                    if state.idle > 0 && state.queues.live() > 0 {
                        self.work.notify_one();
                    }
                    return Some(batch);
                }
                Decision::WaitUntil(due) => {
                    // The CPU may have become scarce since the operations were queued.
                    if let Some(overflow) = &self.backend.overflow {
                        self.wake_overflow(&mut state, &**overflow);
                    }
                    state = self.sleep_until(state, now, due);
                }
                Decision::Sleep => {
                    state = self.sleep(state);
                    gathered = Gathered::default();
                }
            }
        }
    }

    /// Ends the turn of an event loop, which computes the operation that is returned; otherwise wakes a compute thread
    /// as [`flush`](Self::flush) does.
    pub(crate) fn take_lone_or_flush(&self) -> Option<Batch> {
        let mut state = self.state();
        let lone = self.take_lone(&mut state);
        if lone.is_none() {
            self.wake_threads(&mut state);
        }
        lone
    }

    /// Takes an operation that a compute thread would compute at once and alone, while all of them are idle: if the
    /// calling thread computes it, two changes of thread are saved. The operation is a short one, because other
    /// connections of the calling event loop wait for it.
    fn take_lone(&self, state: &mut State) -> Option<Batch> {
        if state.queues.live() != 1 || state.idle < self.settings.threads.get() || state.stopped {
            return None;
        }
        let now = Instant::now();
        state.load.observe(now, process_time);
        match self.decide(state, now) {
            Decision::Take {
                key_type: key_type @ (KeyType::Rsa { bits: ..=2048 } | KeyType::MlDsa(_)),
                count: 1,
            } => Some(self.take(state, key_type, 1)),
            _ => None,
        }
    }

    fn take(&self, state: &mut State, key_type: KeyType, count: usize) -> Batch {
        let tickets = state.queues.take(key_type, count);
        let scalar =
            state.queues.batching(key_type).is_none_or(|batching| tickets.len() < batching.crossover);
        Batch { key_type, tickets, scalar }
    }

    fn sleep<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.idle += 1;
        let mut state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.idle -= 1;
        state
    }

    fn sleep_until<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        now: Instant,
        due: Instant,
    ) -> MutexGuard<'a, State> {
        let limit = due.saturating_duration_since(now);
        state.idle += 1;
        state.timed.push(due);
        let mut state = self.work.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0;
        if let Some(own) = state.timed.iter().position(|time| *time == due) {
            state.timed.swap_remove(own);
        }
        state.idle -= 1;
        state
    }

    /// Returns the time it took, and its CPU time.
    pub(crate) fn compute(&self, batch: &Batch) -> (Duration, Duration) {
        let chosen = self.backend.choose(batch.scalar);
        let batching = self.backend.batching(batch.key_type);
        let width = if batch.scalar { 1 } else { batching.width };
        let delivery = Delivery::new(batch.tickets.len(), width, chosen.verifies);
        let mut jobs: Vec<Job<'_>> = batch.tickets.iter().map(|ticket| Job::new(ticket, &delivery)).collect();
        // If the backend panics, only its unfinished jobs are lost, and the scalar backend computes them.
        let _ = catch_unwind(AssertUnwindSafe(|| chosen.backend.compute(&mut jobs)));
        for job in jobs.iter_mut().filter(|job| !job.is_finished()) {
            job.finish(Err(OperationError::Failed));
        }
        let oldest = batch.tickets.iter().map(|ticket| ticket.submitted).min();
        let cpu = delivery.cpu();
        let report = BatchReport {
            key_type: batch.key_type,
            backend: chosen.name,
            operations: batch.tickets.len(),
            waited: delivery.began.saturating_duration_since(oldest.unwrap_or(delivery.began)),
            computed: delivery.began.elapsed(),
            cpu,
            saved: if batch.scalar { Duration::ZERO } else { batching.saved(batch.tickets.len(), cpu) },
            recomputed: delivery.recomputed.get(),
            failed: delivery.failed.get(),
            in_place: false,
        };
        self.tell(|observer| observer.batch(&report));
        (report.computed, cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::Gathered;

    #[test]
    fn yields_as_long_as_that_brings_something() {
        let asked = |counts: &[usize], most| {
            let mut gathered = Gathered::default();
            counts.iter().map(|count| gathered.may_grow(*count, most)).collect::<Vec<_>>()
        };
        assert_eq!(asked(&[1, 1], 3), [true, false], "a lone operation stops waiting when no others arrive");
        assert_eq!(asked(&[1, 3, 5, 7], 3), [true, true, true, false], "the number of yields is limited");
        assert_eq!(asked(&[1, 2], 0), [false, false]);
    }
}
