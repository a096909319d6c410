//! Observer that records reports.

use quadrille_engine::{BatchReport, KeyType, Observer};
use std::sync::{Arc, Mutex};

/// Clones share one record.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    batches: Vec<BatchReport>,
    shed: usize,
    withdrawn: usize,
}

impl Recorder {
    pub(crate) fn batches(&self) -> Vec<BatchReport> {
        self.0.lock().unwrap().batches.clone()
    }

    pub(crate) fn sizes(&self) -> Vec<usize> {
        self.batches().iter().map(|batch| batch.operations).collect()
    }

    /// Returns the sum over all batches.
    pub(crate) fn sum(&self, of: impl Fn(&BatchReport) -> usize) -> usize {
        self.batches().iter().map(of).sum()
    }

    pub(crate) fn shed(&self) -> usize {
        self.0.lock().unwrap().shed
    }

    pub(crate) fn withdrawn(&self) -> usize {
        self.0.lock().unwrap().withdrawn
    }
}

impl Observer for Recorder {
    fn batch(&self, report: &BatchReport) {
        self.0.lock().unwrap().batches.push(*report);
    }

    fn shed(&self, _: KeyType) {
        self.0.lock().unwrap().shed += 1;
    }

    fn withdrawn(&self, _: KeyType) {
        self.0.lock().unwrap().withdrawn += 1;
    }
}
