//! One algorithm that is measured.

use crate::clock::thread_time;
use serde::Serialize;
use std::time::Duration;

/// What an algorithm is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A private-key operation: what the server's certificate costs in each full handshake.
    Sign,
    /// A public-key operation.
    Verify,
    /// Key exchange, the server's side: a key pair, or an encapsulation, and the shared secret.
    Exchange,
    /// Protecting records.
    Record,
    /// Hashing.
    Hash,
}

/// One algorithm, ready to run.
pub(super) struct Case {
    pub(super) purpose: Purpose,
    pub(super) algorithm: String,
    pub(super) by: &'static str,
    pub(super) bytes: Option<usize>,
    /// Operations of one run.
    pub(super) operations: usize,
    pub(super) run: Box<dyn FnMut()>,
}

impl Case {
    pub(super) fn new(purpose: Purpose, algorithm: impl Into<String>, run: impl FnMut() + 'static) -> Self {
        let algorithm = algorithm.into();
        Self { purpose, algorithm, by: "scalar", bytes: None, operations: 1, run: Box::new(run) }
    }

    /// Microseconds an operation. The clock is asked twice in all, because asking costs more than hashing sixteen
    /// bytes.
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
