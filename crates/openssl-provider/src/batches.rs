//! How many operations are computed together: counted for the process, and remembered for the last one of a thread.

use quadrille_engine::{BatchReport, Observer};
use std::{
    cell::Cell,
    ffi::c_uint,
    sync::atomic::{AtomicU64, Ordering},
};

/// What the engine of this process has computed since it was started.
#[repr(C)]
pub(crate) struct Totals {
    operations: u64,
    batches: u64,
}

static OPERATIONS: AtomicU64 = AtomicU64::new(0);
static BATCHES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// It has no destructor: the thread may be in the midst of a job.
    static LAST_BATCH: Cell<c_uint> = const { Cell::new(0) };
}

/// Counts what the engine computes.
pub(crate) struct Counts;

impl Observer for Counts {
    fn batch(&self, report: &BatchReport) {
        OPERATIONS.fetch_add(report.operations as u64, Ordering::Relaxed);
        BATCHES.fetch_add(1, Ordering::Relaxed);
    }
}

/// Until now.
pub(crate) fn totals() -> Totals {
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Totals { operations: count(&OPERATIONS), batches: count(&BATCHES) }
}

/// An operation of this thread was computed in a batch of this size.
pub(crate) fn note_last(size: usize) {
    LAST_BATCH.set(c_uint::try_from(size).unwrap_or(c_uint::MAX));
}

/// The size of the batch that this thread's last operation was computed in; 0 if there was none since it was last
/// taken.
pub(crate) fn take_last() -> c_uint {
    LAST_BATCH.replace(0)
}
