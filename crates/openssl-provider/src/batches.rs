//! Batch sizes: totals of the process, and the size of each thread's last batch.

use quadrille_engine::{BatchReport, Observer};
use std::{
    cell::Cell,
    ffi::c_uint,
    sync::atomic::{AtomicU64, Ordering},
};

/// Totals computed by the engine since it was started.
#[repr(C)]
pub(crate) struct Totals {
    operations: u64,
    batches: u64,
}

static OPERATIONS: AtomicU64 = AtomicU64::new(0);
static BATCHES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Has no destructor: the thread may be inside a job.
    static LAST_BATCH: Cell<c_uint> = const { Cell::new(0) };
}

/// Observer that counts computed batches.
pub(crate) struct Counts;

impl Observer for Counts {
    fn batch(&self, report: &BatchReport) {
        OPERATIONS.fetch_add(report.operations as u64, Ordering::Relaxed);
        BATCHES.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the current totals.
pub(crate) fn totals() -> Totals {
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Totals { operations: count(&OPERATIONS), batches: count(&BATCHES) }
}

/// Records the size of the batch in which an operation of this thread was computed.
pub(crate) fn note_last(size: usize) {
    LAST_BATCH.set(c_uint::try_from(size).unwrap_or(c_uint::MAX));
}

/// Returns and resets the size of the batch in which this thread's last operation was computed; 0 if there was no
/// operation since the last call.
pub(crate) fn take_last() -> c_uint {
    LAST_BATCH.replace(0)
}
