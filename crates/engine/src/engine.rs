//! The engine itself: queues in front, compute threads behind.

use crate::{
    Backend, BatchReport, Completion, Depth, Job, Key, KeyType, Observer, Operation, OperationError, Policy,
    delivery::Delivery,
    policy::Decision,
    queue::Queues,
    scalar,
    ticket::{Outcome, Ticket},
};
use std::{
    cell::Cell,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Instant,
};

/// How an engine is set up.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// When batches go.
    pub policy: Policy,
    /// Compute threads.
    pub threads: NonZeroUsize,
    /// Operations that may wait, in all queues together, before new ones are refused.
    pub capacity: NonZeroUsize,
}

/// Takes operations from everywhere and computes them in batches. Clones share one engine; when the last is
/// dropped, what waits is still computed, and then its threads end.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
    _threads: Arc<Threads>,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    work: Condvar,
    backend: Box<dyn Backend>,
    observer: Box<dyn Observer>,
    policy: Policy,
    capacity: usize,
}

#[derive(Default)]
struct State {
    queues: Queues,
    idle: usize,
    stopped: bool,
}

impl Engine {
    /// Starts the compute threads.
    pub fn start(
        settings: Settings,
        backend: impl Backend,
        observer: impl Observer,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            backend: Box::new(backend),
            observer: Box::new(observer),
            policy: settings.policy,
            capacity: settings.capacity.get(),
        });
        let threads = Threads::start(&shared, settings.threads)?;
        Ok(Self { shared, _threads: Arc::new(threads) })
    }

    /// Hands in an operation and wakes a compute thread for it.
    pub fn submit(&self, key: &Key, operation: Operation) -> Result<Completion, OperationError> {
        let completion = self.enqueue(key, operation)?;
        self.flush();
        Ok(completion)
    }

    /// Hands in an operation without waking anybody: call [`flush`](Self::flush) when the event loop's turn is over,
    /// so that all operations of one turn form one batch and cost one wake-up.
    ///
    /// An operation that costs less than handing it over is computed here and now, on the caller's thread.
    pub fn enqueue(&self, key: &Key, operation: Operation) -> Result<Completion, OperationError> {
        if is_cheap(key.key_type()) {
            return Ok(Completion::ready(self.shared.compute_in_place(key, &operation)));
        }
        let ticket = Arc::new(Ticket::new(key.clone(), operation, Instant::now()));
        self.shared.push(Arc::clone(&ticket))?;
        Ok(Completion::pending(ticket, Arc::clone(&self.shared)))
    }

    /// Wakes a compute thread if something waits and one is free.
    pub fn flush(&self) {
        let state = self.shared.state();
        if state.idle > 0 && state.queues.live() > 0 {
            self.shared.work.notify_one();
        }
    }

    /// What waits.
    pub fn depths(&self) -> Vec<Depth> {
        self.shared.state().queues.depths()
    }

    /// The backend's name.
    pub fn backend(&self) -> &'static str {
        self.shared.backend.name()
    }
}

/// Below about 40 microseconds, waking a compute thread and being woken by it (two context switches) costs a
/// considerable part of the operation itself. See docs/decisions/cheap-operations-in-place.md.
fn is_cheap(key_type: KeyType) -> bool {
    matches!(key_type, KeyType::EcdsaP256 | KeyType::Ed25519)
}

impl Shared {
    fn push(&self, ticket: Arc<Ticket>) -> Result<(), OperationError> {
        let mut state = self.state();
        if state.stopped {
            return Err(OperationError::Stopped);
        }
        if state.queues.live() >= self.capacity {
            drop(state);
            self.observer.shed(ticket.key.key_type());
            return Err(OperationError::QueueFull);
        }
        state.queues.push(ticket);
        Ok(())
    }

    pub(crate) fn withdraw(&self, ticket: &Ticket) {
        if self.state().queues.withdraw(ticket) {
            self.observer.withdrawn(ticket.key.key_type());
        }
    }

    fn compute_in_place(&self, key: &Key, operation: &Operation) -> Result<Outcome, OperationError> {
        let began = Instant::now();
        let result = scalar::compute(key, operation);
        let computed = began.elapsed();
        self.observer.batch(&BatchReport {
            key_type: key.key_type(),
            backend: "scalar",
            operations: 1,
            waited: std::time::Duration::ZERO,
            computed,
            recomputed: 0,
            failed: usize::from(result.is_err()),
            in_place: true,
        });
        result.map(|bytes| Outcome { bytes, waited: std::time::Duration::ZERO, computed, batch: 1 })
    }

    /// A compute thread's life: take a batch, compute it, until the engine stops and nothing waits.
    fn work(&self) {
        while let Some((key_type, batch)) = self.next_batch() {
            self.compute(key_type, &batch);
        }
    }

    fn next_batch(&self) -> Option<(KeyType, Vec<Arc<Ticket>>)> {
        let mut state = self.state();
        loop {
            if state.stopped && state.queues.live() == 0 {
                return None;
            }
            let now = Instant::now();
            let free = NonZeroUsize::MIN.saturating_add(state.idle);
            let waiting = state.queues.waiting(|key_type| self.backend.width(key_type));
            match self.policy.decide(now, waiting, free) {
                Decision::Take { key_type, count } => {
                    let batch = state.queues.take(key_type, count);
                    if state.idle > 0 && state.queues.live() > 0 {
                        self.work.notify_one();
                    }
                    if !batch.is_empty() {
                        return Some((key_type, batch));
                    }
                }
                Decision::WaitUntil(due) => {
                    state = self.idle(state, |state| {
                        let wait = self.work.wait_timeout(state, due.saturating_duration_since(now));
                        wait.unwrap_or_else(PoisonError::into_inner).0
                    })
                }
                Decision::Sleep => {
                    state = self
                        .idle(state, |state| self.work.wait(state).unwrap_or_else(PoisonError::into_inner))
                }
            }
        }
    }

    fn idle<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        wait: impl FnOnce(MutexGuard<'a, State>) -> MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        state.idle += 1;
        let mut state = wait(state);
        state.idle -= 1;
        state
    }

    fn compute(&self, key_type: KeyType, batch: &[Arc<Ticket>]) {
        let delivery = Delivery {
            backend_verifies: self.backend.verifies(),
            offered: batch.len(),
            began: Instant::now(),
            recomputed: Cell::new(0),
            failed: Cell::new(0),
        };
        let mut jobs: Vec<Job<'_>> = batch.iter().map(|ticket| Job::new(ticket, &delivery)).collect();
        // A backend that panics loses its unfinished jobs to the scalar one, and nothing else.
        let _ = catch_unwind(AssertUnwindSafe(|| self.backend.compute(&mut jobs)));
        for job in jobs.iter_mut().filter(|job| !job.is_finished()) {
            job.finish(Err(OperationError::Failed));
        }
        let first = batch.iter().map(|ticket| ticket.submitted).min().unwrap_or(delivery.began);
        self.observer.batch(&BatchReport {
            key_type,
            backend: self.backend.name(),
            operations: batch.len(),
            waited: delivery.began.saturating_duration_since(first),
            computed: delivery.began.elapsed(),
            recomputed: delivery.recomputed.get(),
            failed: delivery.failed.get(),
            in_place: false,
        });
    }

    fn stop(&self) {
        self.state().stopped = true;
        self.work.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Threads {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    fn start(shared: &Arc<Shared>, count: NonZeroUsize) -> std::io::Result<Self> {
        let mut threads = Self { shared: Arc::clone(shared), handles: Vec::new() };
        for index in 0..count.get() {
            let shared = Arc::clone(shared);
            let thread = std::thread::Builder::new().name(format!("compute-{index}"));
            threads.handles.push(thread.spawn(move || shared.work())?);
        }
        Ok(threads)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.stop();
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
    }
}
