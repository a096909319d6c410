//! Operations of one connection in the engine: completed in any order, withdrawn by number.

use futures_util::task::AtomicWaker;
use quadrille_engine::{Completion, OperationError, Outcome};
use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Wake, Waker},
};

/// Operations by number, each with a `T`.
pub(super) struct Completions<T> {
    running: HashMap<u32, (Completion, T)>,
    /// Number of operations with external keys, whose owners bound them.
    external: usize,
    ready: Arc<Ready>,
}

/// Result of an operation, with its number and tag.
pub(super) type Done<T> = (u32, Result<Outcome, OperationError>, T);

#[derive(Default)]
struct Ready {
    numbers: Mutex<Vec<u32>>,
    /// Woken once for all operations that are ready by then.
    task: AtomicWaker,
}

struct Signal {
    number: u32,
    ready: Arc<Ready>,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.ready.numbers.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
        self.ready.task.wake();
    }
}

impl<T> Completions<T> {
    pub(super) fn new() -> Self {
        Self { running: HashMap::new(), external: 0, ready: Arc::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    /// Number of operations in the engine's queues. A hanging token of PKCS#11 does not delay other keys.
    pub(super) fn in_engine(&self) -> usize {
        self.running.len() - self.external
    }

    /// Adds an operation; returns it if it is already complete.
    pub(super) fn push(&mut self, number: u32, mut completion: Completion, tag: T) -> Option<Done<T>> {
        match self.poll_one(number, &mut completion) {
            Poll::Ready(result) => Some((number, result, tag)),
            Poll::Pending => {
                self.insert(number, completion, tag);
                None
            }
        }
    }

    /// Returns the completed operations; the task is woken for later ones.
    pub(super) fn take_ready(&mut self, context: &Context<'_>) -> Vec<Done<T>> {
        self.ready.task.register(context.waker());
        let numbers = std::mem::take(&mut *self.ready.numbers.lock().unwrap_or_else(PoisonError::into_inner));
        let mut done = Vec::with_capacity(numbers.len());
        for number in numbers {
            let Some((mut completion, tag)) = self.remove(number) else { continue };
            match self.poll_one(number, &mut completion) {
                Poll::Ready(result) => done.push((number, result, tag)),
                Poll::Pending => self.insert(number, completion, tag),
            }
        }
        done
    }

    /// Withdraws the operation.
    pub(super) fn withdraw(&mut self, number: u32) -> Option<T> {
        self.remove(number).map(|(_, tag)| tag)
    }

    fn insert(&mut self, number: u32, completion: Completion, tag: T) {
        self.external += usize::from(completion.is_external());
        self.running.insert(number, (completion, tag));
    }

    fn remove(&mut self, number: u32) -> Option<(Completion, T)> {
        let removed = self.running.remove(&number)?;
        self.external -= usize::from(removed.0.is_external());
        Some(removed)
    }

    fn poll_one(&self, number: u32, completion: &mut Completion) -> Poll<Result<Outcome, OperationError>> {
        let waker = Waker::from(Arc::new(Signal { number, ready: Arc::clone(&self.ready) }));
        Pin::new(completion).poll(&mut Context::from_waker(&waker))
    }
}
