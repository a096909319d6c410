//! What the engine tells whoever keeps its metrics.

use crate::{ExchangeReport, KeyType, Overflow};
use std::time::{Duration, Instant};

/// Told of every batch, on the thread that computed it: be quick.
pub trait Observer: Send + Sync + 'static {
    /// A batch was computed.
    fn batch(&self, _: &BatchReport) {}
    /// Operations of key exchange were computed.
    fn exchanged(&self, _: &ExchangeReport) {}
    /// An operation was refused because the queue was full.
    fn shed(&self, _: KeyType) {}
    /// The overflow is of no use any more, for this reason.
    fn retired(&self, _: &dyn Overflow, _reason: &str) {}
    /// An operation was withdrawn before it had begun.
    fn withdrawn(&self, _: KeyType) {}
}

/// What became of one batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchReport {
    /// Key type of all its operations.
    pub key_type: KeyType,
    /// Who computed it.
    pub backend: &'static str,
    /// How many operations were offered together.
    pub operations: usize,
    /// How long the first of them had waited.
    pub waited: Duration,
    /// How long the whole batch took.
    pub computed: Duration,
    /// CPU time of it.
    pub cpu: Duration,
    /// CPU time that going together has saved: what its operations would have cost one by one, as far as that was measured
    /// when the engine started, less `cpu`.
    pub saved: Duration,
    /// Results that did not verify or were not computed, and were computed again by the scalar backend.
    pub recomputed: usize,
    /// Operations that failed in the end.
    pub failed: usize,
    /// Computed on the submitting thread, without a queue, because handing it over would have cost more.
    pub in_place: bool,
}

/// How much of one key type waits.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// Which queue.
    pub key_type: KeyType,
    /// How many operations wait.
    pub waiting: usize,
    /// Since when the first of them waits.
    pub oldest: Option<Instant>,
}

/// An observer that looks away.
#[derive(Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
