//! Work at the end of a turn of this thread's event loop.

use crate::shared::Shared;
use std::{
    cell::{Cell, RefCell},
    task::Waker,
};

thread_local! {
    /// Wakes this thread's flusher, after its first run.
    static FLUSHER: RefCell<Option<Waker>> = const { RefCell::new(None) };
    /// Whether the flusher has been woken, and has not run since.
    static SCHEDULED: Cell<bool> = const { Cell::new(false) };
    /// Work of this thread at the end of the turn.
    static WORK: RefCell<Vec<fn(&Shared)>> = const { RefCell::new(Vec::new()) };
}

/// Schedules the flusher for the end of this turn; false if this thread has none.
pub(crate) fn schedule() -> bool {
    if SCHEDULED.get() {
        return true;
    }
    // A waker is foreign code: it runs outside the borrow.
    let Some(waker) = FLUSHER.with_borrow(Clone::clone) else { return false };
    SCHEDULED.set(true);
    waker.wake();
    true
}

/// Adds work for the end of this turn; false if this thread has no flusher.
pub(crate) fn compute_then(work: fn(&Shared)) -> bool {
    schedule() && {
        WORK.with_borrow_mut(|all| all.push(work));
        true
    }
}

/// Registers this thread's flusher. Returns whether it has already been woken.
pub(crate) fn arrive(waker: Waker) -> bool {
    drop(FLUSHER.replace(Some(waker)));
    SCHEDULED.take()
}

/// Removes this thread's flusher. Its thread-locals may already be destroyed while the thread ends.
pub(crate) fn leave() {
    drop(FLUSHER.try_with(RefCell::take));
    let _ = SCHEDULED.try_with(Cell::take);
}

/// Runs the work deferred to the end of the turn.
pub(crate) fn compute(shared: &Shared) {
    let work = WORK.try_with(RefCell::take).unwrap_or_default();
    work.into_iter().for_each(|work| work(shared));
}
