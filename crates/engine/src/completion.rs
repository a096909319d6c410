//! Future of a result; it needs no runtime.

use crate::{OperationError, Outcome, shared::Shared, signing_turn, ticket::Ticket};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// Result of a submitted operation. Dropping it withdraws the operation if it has not begun, which frees its place in
/// the queue.
#[must_use = "dropping a completion withdraws its operation"]
pub struct Completion(State);

enum State {
    /// Computed immediately by the caller.
    InPlace(Result<Outcome, OperationError>),
    Pending(Arc<Ticket>, Arc<Shared>),
    /// Computed when the turn of the caller's event loop ends.
    Deferred(Arc<Ticket>, Arc<Shared>),
    /// Computed by the owner of an external key.
    External(Arc<Ticket>, Arc<Shared>),
    Over,
}

impl Completion {
    pub(crate) fn in_place(result: Result<Outcome, OperationError>) -> Self {
        Self(State::InPlace(result))
    }

    pub(crate) fn pending(ticket: Arc<Ticket>, shared: Arc<Shared>) -> Self {
        Self(State::Pending(ticket, shared))
    }

    pub(crate) fn deferred(ticket: Arc<Ticket>, shared: Arc<Shared>) -> Self {
        Self(State::Deferred(ticket, shared))
    }

    pub(crate) fn external(ticket: Arc<Ticket>, shared: Arc<Shared>) -> Self {
        Self(State::External(ticket, shared))
    }

    /// Returns whether the operation waits for a compute thread, so that the caller must flush.
    pub fn is_queued(&self) -> bool {
        matches!(self.0, State::Pending(..) | State::Deferred(..))
    }

    /// Returns whether the key is outside this process's memory, so that the operation is in no queue of the engine.
    pub fn is_external(&self) -> bool {
        matches!(self.0, State::External(..))
    }

    /// Returns whether [`Engine::enqueue`](crate::Engine::enqueue) itself computed the operation, in which case the
    /// caller need not flush.
    pub fn is_in_place(&self) -> bool {
        matches!(self.0, State::InPlace(_))
    }

    /// Flushes, and blocks this thread until the result is available. For callers without an executor.
    pub fn wait(self) -> Result<Outcome, OperationError> {
        match &self.0 {
            State::Pending(_, shared) => shared.flush(),
            State::Deferred(_, shared) => signing_turn::compute(shared),
            State::InPlace(_) | State::External(..) | State::Over => {}
        }
        let waker = Arc::new(Unpark(std::thread::current())).into();
        let mut context = Context::from_waker(&waker);
        let mut completion = std::pin::pin!(self);
        loop {
            match completion.as_mut().poll(&mut context) {
                Poll::Ready(result) => return result,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl Future for Completion {
    type Output = Result<Outcome, OperationError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match std::mem::replace(&mut self.0, State::Over) {
            State::InPlace(result) => Poll::Ready(result),
            State::Pending(ticket, shared) => {
                let poll = ticket.poll(context.waker());
                if poll.is_pending() {
                    self.0 = State::Pending(ticket, shared);
                }
                poll
            }
            State::Deferred(ticket, shared) => {
                let poll = ticket.poll(context.waker());
                if poll.is_pending() {
                    self.0 = State::Deferred(ticket, shared);
                }
                poll
            }
            State::External(ticket, shared) => {
                let poll = ticket.poll(context.waker());
                if poll.is_pending() {
                    self.0 = State::External(ticket, shared);
                }
                poll
            }
            State::Over => Poll::Ready(Err(OperationError::Stopped)),
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        match &self.0 {
            State::Pending(ticket, shared) => shared.withdraw(ticket),
            State::Deferred(ticket, shared) | State::External(ticket, shared) => {
                shared.withdraw_deferred(ticket);
            }
            State::InPlace(_) | State::Over => {}
        }
    }
}

struct Unpark(std::thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
