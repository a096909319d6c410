//! One operation on its way through the engine: shared by the completion, which may withdraw it, and the queue.

use crate::{Key, Operation, error::OperationError};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    time::{Duration, Instant},
};

/// The result of an operation, and what it took.
#[derive(Debug)]
pub struct Outcome {
    /// A signature in its TLS form (ECDSA: DER), or the raw RSA result with its padding on.
    pub bytes: Vec<u8>,
    /// How long the operation waited.
    pub waited: Duration,
    /// How long the batch that it was part of took to compute.
    pub computed: Duration,
    /// How many operations were offered to the backend together.
    pub batch: usize,
}

pub(crate) struct Ticket {
    pub(crate) key: Key,
    pub(crate) operation: Operation,
    pub(crate) submitted: Instant,
    state: Mutex<State>,
}

enum State {
    Waiting(Option<Waker>),
    Computing(Option<Waker>),
    Done(Result<Outcome, OperationError>),
    /// The result was taken, or nobody wants it.
    Over,
}

impl Ticket {
    pub(crate) fn new(key: Key, operation: Operation, submitted: Instant) -> Self {
        Self { key, operation, submitted, state: Mutex::new(State::Waiting(None)) }
    }

    /// For the completion: the result, or a promise to wake.
    pub(crate) fn poll(&self, waker: &Waker) -> Poll<Result<Outcome, OperationError>> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Over) {
            State::Waiting(_) => *state = State::Waiting(Some(waker.clone())),
            State::Computing(_) => *state = State::Computing(Some(waker.clone())),
            State::Done(result) => return Poll::Ready(result),
            // A future is not polled after it was ready; if it is, it stays pending rather than panics.
            State::Over => {}
        }
        Poll::Pending
    }

    /// Nobody waits any more. True if the operation had not begun, and so leaves the queue.
    pub(crate) fn withdraw(&self) -> bool {
        let waiting = |state: &State| matches!(state, State::Waiting(_));
        let mut state = self.state();
        waiting(&std::mem::replace(&mut state, State::Over))
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

    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.state(), State::Over)
    }

    /// Hands over the result, and the waker of whoever waits for it.
    pub(crate) fn finish(&self, result: Result<Outcome, OperationError>) -> Option<Waker> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Done(result)) {
            State::Waiting(waker) | State::Computing(waker) => waker,
            State::Done(_) => None,
            State::Over => {
                *state = State::Over;
                None
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
