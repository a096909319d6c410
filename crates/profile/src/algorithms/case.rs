//! A benchmark case: one algorithm to measure.

use crate::clock::thread_time;
use serde::Serialize;
use std::time::Duration;

/// Purpose of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A private-key operation: the cost of the server's certificate in each full handshake.
    Sign,
    /// A public-key operation.
    Verify,
    /// Key exchange on the server: a key pair, or an encapsulation, and the shared secret.
    Exchange,
    /// Record protection.
    Record,
    /// Hashing.
    Hash,
}

/// A prepared benchmark of one algorithm.
pub(super) struct Case {
    pub(super) purpose: Purpose,
    pub(super) algorithm: String,
    pub(super) by: &'static str,
    pub(super) bytes: Option<usize>,
    /// Number of operations in one run.
    pub(super) operations: usize,
    pub(super) run: Box<dyn FnMut()>,
}

impl Case {
    pub(super) fn new(purpose: Purpose, algorithm: impl Into<String>, run: impl FnMut() + 'static) -> Self {
        let algorithm = algorithm.into();
        Self { purpose, algorithm, by: "scalar", bytes: None, operations: 1, run: Box::new(run) }
    }

    /// Returns microseconds per operation. The clock is read twice in all, because reading it costs more than hashing
    /// sixteen bytes.
    pub(super) fn sample(&mut self, turn: Duration) -> f64 {
        let mut runs = 1;
        loop {
            let began = thread_time();
            (0..runs).for_each(|_| (self.run)());
            let used = thread_time().saturating_sub(began);
            if used >= turn / 2 {
                return used.as_secs_f64() * 1e6 / (runs * self.operations) as f64;
            }
            let wanted = turn.as_secs_f64() / used.as_secs_f64().max(1e-7);
            runs = (runs as f64 * wanted.clamp(1.5, 1000.0)).ceil() as usize;
        }
    }
}
