//! State of one operation in the engine: shared by the completion, which may withdraw it, and the queue.

use crate::{Key, Operation, Priority, error::OperationError};
use std::{
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, Waker},
    time::{Duration, Instant},
};
use zeroize::Zeroizing;

/// Result of an operation, with its cost.
pub struct Outcome {
    /// Signature in its TLS form (ECDSA: DER), or the raw RSA result with its padding on. A decrypted result is a
    /// secret.
    pub bytes: Zeroizing<Vec<u8>>,
    /// Time that the operation waited.
    pub waited: Duration,
    /// Time to compute its batch.
    pub computed: Duration,
    /// Number of operations offered to the backend together.
    pub batch: usize,
    /// CPU time that compute threads spent on this operation: its share of the batch's cost at the time of its
    /// result. Zero if it was computed in place, on the caller's own thread.
    pub cpu: Duration,
}

/// Shows the costs only, never the result.
impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes: _, waited, computed, batch, cpu } = self;
        let mut shown = f.debug_struct("Outcome");
        shown
            .field("waited", waited)
            .field("computed", computed)
            .field("batch", batch)
            .field("cpu", cpu)
            .finish_non_exhaustive()
    }
}

pub(crate) struct Ticket {
    pub(crate) key: Key,
    pub(crate) operation: Operation,
    pub(crate) submitted: Instant,
    pub(crate) priority: Priority,
    state: Mutex<State>,
    /// Whether the overflow returned it unfinished. Set under the lock of the queues.
    put_back: AtomicBool,
}

/// State of the operation. Replaced states are dropped after every lock is released: dropping a waker runs foreign
/// code, which may drop another completion and so take the same locks.
pub(crate) enum State {
    Waiting(Option<Waker>),
    Computing(Option<Waker>),
    Done(Result<Outcome, OperationError>),
    /// The result was taken, or the completion was dropped.
    Over,
}

impl State {
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting(_))
    }
}

impl Ticket {
    pub(crate) fn new(key: Key, operation: Operation, submitted: Instant, priority: Priority) -> Self {
        Self {
            key,
            operation,
            submitted,
            priority,
            state: Mutex::new(State::Waiting(None)),
            put_back: AtomicBool::new(false),
        }
    }

    /// Called by the completion: returns the result, or registers the waker. The last waker wins.
    pub(crate) fn poll(&self, waker: &Waker) -> Poll<Result<Outcome, OperationError>> {
        let waker = Some(waker.clone());
        let before = {
            let mut state = self.state();
            let next = match &*state {
                State::Waiting(_) => State::Waiting(waker),
                State::Computing(_) => State::Computing(waker),
                // A future is not polled after it was ready; if it is, it stays pending rather than panics.
                State::Done(_) | State::Over => State::Over,
            };
            std::mem::replace(&mut *state, next)
        };
        match before {
            State::Done(result) => Poll::Ready(result),
            _ => Poll::Pending,
        }
    }

    /// Withdraws the operation. Returns its state.
    pub(crate) fn withdraw(&self) -> State {
        std::mem::replace(&mut *self.state(), State::Over)
    }

    /// Called by the compute thread. Returns whether the operation is still wanted.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Over) {
            State::Waiting(waker) => {
                *state = State::Computing(waker);
                true
            }
            other => {
                *state = other;
                false
            }
        }
    }

    /// Marks the operation as waiting again. Returns whether it is still wanted.
    pub(crate) fn put_back(&self) -> bool {
        self.put_back.store(true, Ordering::Relaxed);
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Over) {
            State::Computing(waker) => {
                *state = State::Waiting(waker);
                true
            }
            other => {
                *state = other;
                false
            }
        }
    }

    pub(crate) fn was_put_back(&self) -> bool {
        self.put_back.load(Ordering::Relaxed)
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.state(), State::Over)
    }

    /// Stores the result, and returns the waker of the waiting task.
    pub(crate) fn finish(&self, result: Result<Outcome, OperationError>) -> Option<Waker> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Over) {
            State::Waiting(waker) | State::Computing(waker) => {
                *state = State::Done(result);
                waker
            }
            other => {
                *state = other;
                None
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
