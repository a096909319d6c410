//! One wake-up of the engine for all operations of an event-loop turn.

use crate::{Engine, turn_end};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Flushes the engine at the end of each turn of an event loop in which operations were [enqueued](Engine::enqueue),
/// and computes this thread's own work: cheap signatures, responses to [key shares](Engine::exchange), and an RSA-2048
/// or ML-DSA operation that is alone while no compute thread is busy, because two changes of thread cost more. The
/// future never completes. Spawn one on each event-loop thread; the scheduler must be first come, first served, as Tokio's
/// current-thread scheduler is. The first operation of a turn wakes the flusher, which then runs after all
/// connections that were ready with that operation.
#[must_use = "operations are flushed at the end of a turn only if this is spawned"]
pub struct BatchFlusher(Engine);

impl BatchFlusher {
    /// Creates a flusher for the thread on which it is spawned.
    pub fn new(engine: Engine) -> Self {
        Self(engine)
    }

    /// Flushes `engine` when this turn ends, or immediately if this thread has no flusher. Must be called on the
    /// thread that enqueued the operation.
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
            let shared = self.0.shared();
            // Flushing comes first: compute threads then work in parallel with this thread.
            let lone = shared.take_lone_or_flush();
            turn_end::compute(shared);
            if let Some(lone) = lone {
                shared.compute(&lone);
            }
        }
        Poll::Pending
    }
}

impl Drop for BatchFlusher {
    /// Flushes scheduled operations now; later ones are flushed immediately.
    fn drop(&mut self) {
        turn_end::leave();
        self.0.flush();
        turn_end::compute(self.0.shared());
    }
}
