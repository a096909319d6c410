//! One wake-up of the engine for all operations that a turn of an event loop has brought.

use crate::{Engine, turn_end};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Flushes the engine at the end of each turn of an event loop in which operations were [enqueued](Engine::enqueue), and
/// computes what this thread is to compute itself: cheap signatures, and answers to [key shares](Engine::exchange). A future
/// that never ends: spawn one on each event-loop thread, whose scheduler must be first come, first served, as
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
        if !turn_end::schedule() {
            engine.flush();
        }
    }
}

impl Future for BatchFlusher {
    type Output = std::convert::Infallible;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if turn_end::arrive(context.waker().clone()) {
            // First: what compute threads do, they do meanwhile.
            self.0.flush();
            turn_end::compute(self.0.shared());
        }
        Poll::Pending
    }
}

impl Drop for BatchFlusher {
    /// What was scheduled goes now, and what comes later at once.
    fn drop(&mut self) {
        turn_end::leave();
        self.0.flush();
        turn_end::compute(self.0.shared());
    }
}
