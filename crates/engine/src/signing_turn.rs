//! The cheap signatures that one turn of an event loop has brought: enough of them go in lanes, on the event loop's own
//! thread, when the turn ends.
//!
//! To hand them to a compute thread would cost more than it saves ([why](../../docs/decisions/cheap-operations-in-place.md)).
//! To wait for the turn's end costs a little too, so it is done only after a turn that brought enough of them.

use crate::{
    Batching, Key, KeyType, Operation, Priority, compute::Batch, shared::Shared, ticket::Ticket, turn_end,
};
use std::{
    cell::{Cell, RefCell},
    sync::Arc,
    time::Instant,
};

/// So many signatures are computed without waiting for the turn's end: passes are full by then, and the first of them has
/// waited long enough.
const MOST: usize = 32;

thread_local! {
    static WAITING: RefCell<Vec<Arc<Ticket>>> = const { RefCell::new(Vec::new()) };
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { now: 0, expected: 0 }) };
}

/// How many signatures this turn has brought, and how many a turn brings at best: of those that brought any, the last one
/// counts as it is, the one before it half, and so on. Turns in which many handshakes come to their signature alternate with
/// turns in which few do.
#[derive(Clone, Copy)]
struct Counts {
    now: usize,
    expected: usize,
}

/// Has the operation wait for the end of this turn if that is likely to pay; hands it back if it is to be computed at once.
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

/// The turn is over: computes what waits.
fn end(shared: &Shared) {
    // While the thread ends there may be no counts any more.
    let _ = COUNTS.try_with(|counts| {
        let Counts { now, expected } = counts.get();
        counts.set(Counts { now: 0, expected: now.max(expected / 2) });
    });
    compute(shared);
}

/// Computes what waits on this thread.
pub(crate) fn compute(shared: &Shared) {
    let Ok(mut waiting) = WAITING.try_with(RefCell::take) else { return };
    waiting.retain(|ticket| ticket.begin());
    while let Some(key_type) = waiting.first().map(|ticket| ticket.key.key_type()) {
        let (same, others) = waiting.into_iter().partition(|ticket| ticket.key.key_type() == key_type);
        waiting = others;
        compute_all(shared, key_type, same);
    }
}

/// Whole passes in lanes, and what is left over there too if it pays.
fn compute_all(shared: &Shared, key_type: KeyType, mut tickets: Vec<Arc<Ticket>>) {
    let in_lanes = shared.backend.batching(key_type).worth(tickets.len());
    let rest = tickets.split_off(in_lanes);
    for (tickets, scalar) in [(tickets, false), (rest, true)] {
        if !tickets.is_empty() {
            shared.compute(&Batch { key_type, tickets, scalar });
        }
    }
}
