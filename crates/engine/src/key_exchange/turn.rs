//! The shares that one turn of an event loop has brought.

use super::{batch, exchange::Pending};
use crate::{BatchFlusher, Engine};
use std::{cell::RefCell, sync::Arc};

/// So many shares are answered without waiting for the turn's end: batches are full by then, and the first of them
/// waits long enough.
const MOST: usize = 32;

thread_local! {
    static TURN: RefCell<Vec<Arc<Pending>>> = const { RefCell::new(Vec::new()) };
}

/// Adds a share to this turn's, and has them answered when it ends.
pub(super) fn push(engine: &Engine, pending: Arc<Pending>) {
    let waiting = TURN.with_borrow_mut(|turn| {
        turn.push(pending);
        turn.len()
    });
    if waiting >= MOST || !BatchFlusher::at_end_of_turn(compute_turn) {
        compute_turn(engine);
    }
}

/// Answers what this turn has brought so far.
fn compute_turn(engine: &Engine) {
    // While the thread ends there may be no turn any more.
    let Ok(waiting) = TURN.try_with(RefCell::take) else { return };
    if !waiting.is_empty() {
        batch::compute(engine.shared(), &waiting);
    }
}
