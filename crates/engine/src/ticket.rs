//! One operation on its way through the engine: shared by the completion, which may withdraw it, and the queue.

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

/// The result of an operation, and what it took.
pub struct Outcome {
    /// A signature in its TLS form (ECDSA: DER), or the raw RSA result with its padding on. Decrypted, it is a secret.
    pub bytes: Zeroizing<Vec<u8>>,
    /// How long the operation waited.
    pub waited: Duration,
    /// How long the batch that it was part of took to compute.
    pub computed: Duration,
    /// How many operations were offered to the backend together.
    pub batch: usize,
    /// CPU that compute threads have spent on this operation: its share of what the batch had cost when its result was
    /// there. Zero if it was computed in place, which costs the caller's own thread.
    pub cpu: Duration,
}

/// Shows what it took only, never the result.
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
    /// The overflow had it once and did not compute it. Set under the lock of the queues.
    put_back: AtomicBool,
}

/// How far the operation is. Replaced states are dropped after every lock is released: to drop a waker is to run
/// foreign code, which may drop another completion and so come back to the same locks.
pub(crate) enum State {
    Waiting(Option<Waker>),
    Computing(Option<Waker>),
    Done(Result<Outcome, OperationError>),
    /// The result was taken, or nobody wants it.
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

    /// For the completion: the result, or a promise to wake. The last waker wins.
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

    /// Nobody waits any more. Returns how far the operation was.
    pub(crate) fn withdraw(&self) -> State {
        std::mem::replace(&mut *self.state(), State::Over)
    }

    /// For the compute thread: true if somebody still waits.
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

    /// It waits again, if somebody still waits for it.
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

    /// Hands over the result, and the waker of whoever waits for it.
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
