//! One wake-up of the engine for all operations that a turn of an event loop has brought.

use crate::{Engine, key_exchange};
use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

thread_local! {
    /// Wakes this thread's flusher, once that has run.
    static FLUSHER: RefCell<Option<Waker>> = const { RefCell::new(None) };
    /// The flusher has been woken, and has not run since.
    static SCHEDULED: Cell<bool> = const { Cell::new(false) };
}

/// Flushes the engine at the end of each turn of an event loop in which operations were [enqueued](Engine::enqueue), and
/// answers the turn's [key shares](Engine::exchange). A
/// future that never ends: spawn one on each event-loop thread, whose scheduler must be first come, first served, as
/// Tokio's current-thread scheduler is. Woken by the first operation of a turn, it then runs after all connections that
/// were ready with that one.
#[must_use = "operations are flushed at the end of a turn only if this is spawned"]
pub struct BatchFlusher(Engine);

impl BatchFlusher {
    /// For the thread on which it is spawned.
    pub fn new(engine: Engine) -> Self {
        Self(engine)
    }

    /// Flushes `engine` when this turn ends, or now if this thread has no flusher. Call it on the thread that has enqueued
    /// an operation.
    pub fn schedule(engine: &Engine) {
        if !Self::schedule_if_any() {
            engine.flush();
        }
    }

    /// The same; false if this thread has no flusher.
    pub(crate) fn schedule_if_any() -> bool {
        if SCHEDULED.get() {
            return true;
        }
        // A waker is foreign code: it runs outside the borrow.
        let Some(waker) = FLUSHER.with_borrow(Clone::clone) else { return false };
        SCHEDULED.set(true);
        waker.wake();
        true
    }
}

impl Future for BatchFlusher {
    type Output = std::convert::Infallible;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        drop(FLUSHER.replace(Some(context.waker().clone())));
        if SCHEDULED.take() {
            // First: what compute threads do, they do meanwhile.
            self.0.flush();
            key_exchange::compute(self.0.shared());
        }
        Poll::Pending
    }
}

impl Drop for BatchFlusher {
    /// What was scheduled goes now, and what comes later at once.
    fn drop(&mut self) {
        drop(FLUSHER.try_with(RefCell::take));
        let _ = SCHEDULED.try_with(Cell::take);
        self.0.flush();
        key_exchange::compute(self.0.shared());
    }
}
