//! Observer interface for metrics.

use crate::{ExchangeReport, KeyType, Overflow};
use std::time::{Duration, Instant};

/// Receives a report of every batch, on the thread that computed it; implementations must be quick.
pub trait Observer: Send + Sync + 'static {
    /// A batch was computed.
    fn batch(&self, _: &BatchReport) {}
    /// Operations of key exchange were computed.
    fn exchanged(&self, _: &ExchangeReport) {}
    /// An operation was rejected because the queue was full.
    fn shed(&self, _: KeyType) {}
    /// The overflow has been retired, for the given reason.
    fn retired(&self, _: &dyn Overflow, _reason: &str) {}
    /// An operation was withdrawn before it had begun.
    fn withdrawn(&self, _: KeyType) {}
}

/// Outcome of one batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchReport {
    /// Key type of all its operations.
    pub key_type: KeyType,
    /// Name of the backend.
    pub backend: &'static str,
    /// Number of operations offered together.
    pub operations: usize,
    /// Time that the first of them waited.
    pub waited: Duration,
    /// Time to compute the whole batch.
    pub computed: Duration,
    /// CPU time of the batch.
    pub cpu: Duration,
    /// CPU time saved by batching: what the operations would have cost one by one, as far as that was measured when
    /// the engine started, less `cpu`.
    pub saved: Duration,
    /// Number of results that did not verify or were not computed, and that the scalar backend computed again.
    pub recomputed: usize,
    /// Number of operations that finally failed.
    pub failed: usize,
    /// Computed on the submitting thread, without a queue, because handing it over would have cost more.
    pub in_place: bool,
}

/// Depth of the queue of one key type.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// Key type of the queue.
    pub key_type: KeyType,
    /// Number of operations that wait.
    pub waiting: usize,
    /// Time since which the first of them has waited.
    pub oldest: Option<Instant>,
}

/// Observer that ignores all reports.
#[derive(Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
