//! The shares that one turn of an event loop has brought.

use super::{batch, exchange::Pending};
use crate::{Engine, shared::Shared, turn_end};
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
    let in_time = waiting > 1 || turn_end::compute_then(compute_turn);
    if waiting >= MOST || !in_time {
        compute_turn(engine.shared());
    }
}

/// Answers what this turn has brought so far.
fn compute_turn(shared: &Shared) {
    // While the thread ends there may be no turn any more.
    let Ok(waiting) = TURN.try_with(RefCell::take) else { return };
    if !waiting.is_empty() {
        batch::compute(shared, &waiting);
    }
}
