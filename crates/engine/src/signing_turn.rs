//! Cheap signatures of one turn of an event loop. If there are enough, they are computed in lanes, on the event
//! loop's own thread, when the turn ends.
//!
//! A hand-over to a compute thread would cost more than it saves
//! ([why](../../docs/decisions/cheap-operations-in-place.md)). Waiting for the end of the turn costs a little too, so
//! it is done only after a turn with enough signatures.

use crate::{
    Batching, Key, KeyType, Operation, Priority, compute::Batch, shared::Shared, ticket::Ticket, turn_end,
};
use std::{
    cell::{Cell, RefCell},
    sync::Arc,
    time::Instant,
};

/// Number of signatures that are computed without waiting for the end of the turn: passes are full, and the first
/// signature has waited long enough.
const MOST: usize = 32;

thread_local! {
    static WAITING: RefCell<Vec<Arc<Ticket>>> = const { RefCell::new(Vec::new()) };
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { now: 0, expected: 0 }) };
}

/// Number of signatures in this turn, and the expected number per turn: the maximum over past turns with signatures,
/// the last one in full, the one before it halved, and so on. Turns in which many handshakes reach their signature
/// alternate with turns in which few do.
#[derive(Clone, Copy)]
struct Counts {
    now: usize,
    expected: usize,
}

/// Defers the operation to the end of this turn if that is likely to pay; returns it if it must be computed
/// immediately.
pub(crate) fn defer(shared: &Shared, key: &Key, operation: Operation) -> Result<Arc<Ticket>, Operation> {
    let Batching { width, crossover, .. } = shared.backend.batching(key.key_type());
    let mut counts = COUNTS.get();
    if width == 1 || counts.now == 0 && !turn_end::compute_then(end) {
        return Err(operation);
    }
    counts.now += 1;
    COUNTS.set(counts);
    if counts.expected < crossover {
        return Err(operation);
    }
    let ticket = Arc::new(Ticket::new(key.clone(), operation, Instant::now(), Priority::Normal));
    let waiting = WAITING.with_borrow_mut(|waiting| {
        waiting.push(Arc::clone(&ticket));
        waiting.len()
    });
    if waiting >= MOST {
        compute(shared);
    }
    Ok(ticket)
}

/// Ends the turn: computes the waiting signatures.
fn end(shared: &Shared) {
    // The counts may already be destroyed while the thread ends.
    let _ = COUNTS.try_with(|counts| {
        let Counts { now, expected } = counts.get();
        counts.set(Counts { now: 0, expected: now.max(expected / 2) });
    });
    compute(shared);
}

/// Computes the signatures that wait on this thread.
pub(crate) fn compute(shared: &Shared) {
    let Ok(mut waiting) = WAITING.try_with(RefCell::take) else { return };
    waiting.retain(|ticket| ticket.begin());
    while let Some(key_type) = waiting.first().map(|ticket| ticket.key.key_type()) {
        let (same, others) = waiting.into_iter().partition(|ticket| ticket.key.key_type() == key_type);
        waiting = others;
        compute_all(shared, key_type, same);
    }
}

/// Computes whole passes in lanes, and the remainder in lanes too if it pays.
fn compute_all(shared: &Shared, key_type: KeyType, mut tickets: Vec<Arc<Ticket>>) {
    let in_lanes = shared.backend.batching(key_type).worth(tickets.len());
    let rest = tickets.split_off(in_lanes);
    for (tickets, scalar) in [(tickets, false), (rest, true)] {
        if !tickets.is_empty() {
            shared.compute(&Batch { key_type, tickets, scalar });
        }
    }
}
