//! What submitters, completions and compute threads share: the queues behind one lock.

use crate::{
    Completion, Key, Observer, Operation, OperationError, Policy, backend::Installed, queue::Queues,
    ticket::Ticket,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

pub(crate) struct Shared {
    pub(crate) backend: Installed,
    pub(crate) policy: Policy,
    observer: Box<dyn Observer>,
    capacity: usize,
    state: Mutex<State>,
    /// Compute threads that have nothing to do sleep here.
    pub(crate) work: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) queues: Queues,
    /// Compute threads that sleep, or were woken and have not come up yet.
    pub(crate) idle: usize,
    pub(crate) stopped: bool,
}

impl Shared {
    pub(crate) fn new(
        policy: Policy,
        capacity: usize,
        backend: Installed,
        observer: Box<dyn Observer>,
    ) -> Self {
        Self { backend, policy, observer, capacity, state: Mutex::default(), work: Condvar::new() }
    }

    /// Queues an operation that its key can do.
    pub(crate) fn push(
        self: &Arc<Self>,
        key: &Key,
        operation: Operation,
    ) -> Result<Completion, OperationError> {
        let key_type = key.key_type();
        let ticket = Arc::new(Ticket::new(key.clone(), operation, Instant::now()));
        let mut state = self.state();
        if state.queues.live() >= self.capacity {
            drop(state);
            self.tell(|observer| observer.shed(key_type));
            return Err(OperationError::QueueFull);
        }
        state.queues.push(Arc::clone(&ticket), || self.backend.batching(key_type));
        drop(state);
        Ok(Completion::pending(ticket, Arc::clone(self)))
    }

    /// Nobody waits for this operation any more.
    pub(crate) fn withdraw(&self, ticket: &Ticket) {
        let before = self.state().queues.withdraw(ticket);
        if before.is_waiting() {
            self.tell(|observer| observer.withdrawn(ticket.key.key_type()));
        }
    }

    /// Wakes a compute thread if something waits and one is free; it wakes the next one if it leaves something.
    pub(crate) fn flush(&self) {
        let state = self.state();
        if state.idle > 0 && state.queues.live() > 0 {
            self.work.notify_one();
        }
    }

    /// What waits is computed at once, and then the compute threads end.
    pub(crate) fn stop(&self) {
        self.state().stopped = true;
        self.work.notify_all();
    }

    /// Observers are foreign code, told without locks: a panic in one must cost neither a compute thread nor, through
    /// a callback of BoringSSL's, the process.
    pub(crate) fn tell(&self, what: impl FnOnce(&dyn Observer)) {
        let _ = catch_unwind(AssertUnwindSafe(|| what(&*self.observer)));
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
