//! This machine's rates by algorithm, as TLS uses them: CPU time on one core, medians over interleaved rounds.

mod bulk;
mod exchange;
mod signature;

use crate::clock::{median, thread_time};
use boring::error::ErrorStack;
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

/// How fast one algorithm is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// What it is for.
    pub purpose: Purpose,
    /// For instance `RSA-2048`, `AES-128-GCM`.
    pub algorithm: String,
    /// Who computes: `scalar`, or a tier of lanes with all its lanes filled.
    pub by: &'static str,
    /// Bytes that one operation protects or hashes.
    pub bytes: Option<usize>,
    /// Microseconds of CPU an operation.
    pub microseconds: f64,
}

impl Rate {
    /// Operations a second on one core.
    pub fn per_second(&self) -> f64 {
        1e6 / self.microseconds
    }
}

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Interleaved rounds.
    pub rounds: usize,
    /// CPU time of each algorithm in each round, at least one operation.
    pub turn: Duration,
}

impl Default for Effort {
    fn default() -> Self {
        Self { rounds: 7, turn: Duration::from_millis(20) }
    }
}

/// One algorithm, ready to run.
pub(crate) struct Case {
    purpose: Purpose,
    algorithm: String,
    by: &'static str,
    bytes: Option<usize>,
    /// Operations of one run.
    operations: usize,
    run: Box<dyn FnMut()>,
}

/// Measures all algorithms; `progress` is told of each round that has begun.
///
/// # Errors
/// What BoringSSL refuses, for lack of memory.
pub fn measure(effort: Effort, mut progress: impl FnMut(usize)) -> Result<Vec<Rate>, ErrorStack> {
    let mut cases =
        [signature::cases()?, exchange::cases()?, bulk::cases()?].into_iter().flatten().collect::<Vec<_>>();
    for case in &mut cases {
        (case.run)(); // warms caches, and whatever a key computes in its first operation
    }
    let mut samples = vec![Vec::new(); cases.len()];
    for round in 0..effort.rounds {
        progress(round);
        for (case, samples) in cases.iter_mut().zip(&mut samples) {
            samples.push(case.sample(effort.turn));
        }
    }
    let rate = |(case, samples): (Case, Vec<f64>)| Rate {
        purpose: case.purpose,
        algorithm: case.algorithm,
        by: case.by,
        bytes: case.bytes,
        microseconds: median(samples),
    };
    Ok(cases.into_iter().zip(samples).map(rate).collect())
}

impl Case {
    fn new(purpose: Purpose, algorithm: impl Into<String>, run: impl FnMut() + 'static) -> Self {
        let algorithm = algorithm.into();
        Self { purpose, algorithm, by: "scalar", bytes: None, operations: 1, run: Box::new(run) }
    }

    /// Microseconds an operation. The clock is asked twice in all, because asking costs more than hashing sixteen bytes.
    fn sample(&mut self, turn: Duration) -> f64 {
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
