//! The end of a turn of this thread's event loop, and what is to be done then.

use crate::shared::Shared;
use std::{
    cell::{Cell, RefCell},
    task::Waker,
};

thread_local! {
    /// Wakes this thread's flusher, once that has run.
    static FLUSHER: RefCell<Option<Waker>> = const { RefCell::new(None) };
    /// The flusher has been woken, and has not run since.
    static SCHEDULED: Cell<bool> = const { Cell::new(false) };
    /// What this thread computes itself when the turn ends.
    static WORK: RefCell<Vec<fn(&Shared)>> = const { RefCell::new(Vec::new()) };
}

/// Has the flusher run when this turn ends; false if this thread has none.
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

/// Does this, too, when this turn ends; false if this thread has no flusher.
pub(crate) fn compute_then(work: fn(&Shared)) -> bool {
    schedule() && {
        WORK.with_borrow_mut(|all| all.push(work));
        true
    }
}

/// This thread's flusher can be woken, and has been if the answer is true.
pub(crate) fn arrive(waker: Waker) -> bool {
    drop(FLUSHER.replace(Some(waker)));
    SCHEDULED.take()
}

/// This thread has no flusher any more. What it has may be gone already, while the thread ends.
pub(crate) fn leave() {
    drop(FLUSHER.try_with(RefCell::take));
    let _ = SCHEDULED.try_with(Cell::take);
}

/// Does what was left for the turn's end.
pub(crate) fn compute(shared: &Shared) {
    let work = WORK.try_with(RefCell::take).unwrap_or_default();
    work.into_iter().for_each(|work| work(shared));
}
