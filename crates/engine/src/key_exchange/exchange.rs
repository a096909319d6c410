//! Future of the response to a key share.

use crate::{ClientShare, ExchangeError, ServerShare};
use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Instant,
};

type Answer = Result<ServerShare, ExchangeError>;

/// Response to a client's key share. Dropping it withdraws the share, if it has not been processed.
#[must_use = "dropping an exchange withdraws it"]
pub struct Exchange(Arc<Pending>);

/// Key share that waits for its response.
pub(super) struct Pending {
    pub(super) share: ClientShare,
    pub(super) submitted: Instant,
    /// Whether the CPU time of its batch is measured, which takes two system calls.
    pub(super) is_measured: bool,
    state: Mutex<State>,
}

/// Replaced states are dropped after the lock is released: dropping a waker runs foreign code.
enum State {
    Waiting(Option<Waker>),
    Done(Answer),
    /// The response was taken, or the exchange was dropped.
    Over,
}

impl Exchange {
    pub(super) fn new(pending: Arc<Pending>) -> Self {
        Self(pending)
    }
}

impl Future for Exchange {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let waiting = State::Waiting(Some(context.waker().clone()));
        let before = {
            let mut state = self.0.state();
            let next = if matches!(*state, State::Waiting(_)) { waiting } else { State::Over };
            mem::replace(&mut *state, next)
        };
        match before {
            State::Done(answer) => Poll::Ready(answer),
            // A future is not polled after it was ready; if it is, it stays pending rather than panics.
            State::Waiting(_) | State::Over => Poll::Pending,
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        drop(self.0.replace(State::Over));
    }
}

impl Pending {
    pub(super) fn new(share: ClientShare, is_measured: bool) -> Self {
        Self { share, submitted: Instant::now(), is_measured, state: Mutex::new(State::Waiting(None)) }
    }

    /// Returns whether the response is still wanted.
    pub(super) fn is_wanted(&self) -> bool {
        matches!(*self.state(), State::Waiting(_))
    }

    /// Stores the response, and returns the waker of the waiting task.
    pub(super) fn finish(&self, answer: Answer) -> Option<Waker> {
        let mut state = self.state();
        match mem::replace(&mut *state, State::Over) {
            State::Waiting(waker) => {
                *state = State::Done(answer);
                waker
            }
            State::Done(_) | State::Over => None,
        }
    }

    /// Takes the response; without one, [`Failed`](ExchangeError::Failed).
    pub(super) fn take(&self) -> Answer {
        match self.replace(State::Over) {
            State::Done(answer) => answer,
            State::Waiting(_) | State::Over => Err(ExchangeError::Failed),
        }
    }

    fn replace(&self, next: State) -> State {
        mem::replace(&mut *self.state(), next)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
