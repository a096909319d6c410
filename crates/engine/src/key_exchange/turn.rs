//! The shares that one turn of an event loop has brought.

use super::{
    batch,
    exchange::{Exchange, Pending},
    share::ClientShare,
};
use crate::shared::Shared;
use std::{cell::RefCell, sync::Arc};

/// So many shares are answered without waiting for the turn's end: batches are full by then, and the first of them
/// waits long enough.
const MOST: usize = 32;

thread_local! {
    static TURN: RefCell<Vec<Arc<Pending>>> = const { RefCell::new(Vec::new()) };
}

/// Adds a share to this turn's. `schedule` has them [computed](compute) when the turn ends, and is false if this thread has no
/// turns.
pub(crate) fn push(shared: &Shared, share: ClientShare, schedule: impl FnOnce() -> bool) -> Exchange {
    let pending = Arc::new(Pending::new(share));
    let waiting = TURN.with_borrow_mut(|turn| {
        turn.push(Arc::clone(&pending));
        turn.len()
    });
    if waiting >= MOST || !schedule() {
        compute(shared);
    }
    Exchange::new(pending)
}

/// Answers what this turn has brought so far.
pub(crate) fn compute(shared: &Shared) {
    // While the thread ends there may be no turn any more.
    let Ok(waiting) = TURN.try_with(RefCell::take) else { return };
    if !waiting.is_empty() {
        batch::compute(shared, &waiting);
    }
}
