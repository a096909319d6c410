//! Key shares of one turn of an event loop.

use super::{batch, exchange::Pending};
use crate::{Engine, shared::Shared, turn_end};
use std::{cell::RefCell, sync::Arc};

/// Number of shares that are computed without waiting for the end of the turn: the batches are full, and the first
/// share has waited long enough.
const MOST: usize = 32;

thread_local! {
    static TURN: RefCell<Vec<Arc<Pending>>> = const { RefCell::new(Vec::new()) };
}

/// Adds a share to this turn's, which are computed at the end of the turn.
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

/// Computes the shares collected in this turn so far.
fn compute_turn(shared: &Shared) {
    // The turn may already be destroyed while the thread ends.
    let Ok(waiting) = TURN.try_with(RefCell::take) else { return };
    if !waiting.is_empty() {
        batch::compute(shared, &waiting);
    }
}
