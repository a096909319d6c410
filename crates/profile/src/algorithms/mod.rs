//! This machine's rates by algorithm, as TLS uses them: CPU time on one core, medians over interleaved rounds.

mod bulk;
mod case;
mod exchange;
mod signature;

use crate::clock::median;
use boring::error::ErrorStack;
use case::Case;
pub use case::Purpose;
use serde::Serialize;
use std::time::Duration;

/// How fast one algorithm is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// What it is for.
    pub purpose: Purpose,
    /// For instance `RSA-2048`, `AES-128-GCM`.
    pub algorithm: String,
    /// Who computes: `scalar` (BoringSSL), `engine` (the engine's key exchange with one client), or a tier of lanes with all
    /// its lanes filled.
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

/// Measures all algorithms; `progress` is told of each round that has begun.
///
/// # Errors
/// What BoringSSL refuses, for lack of memory.
pub fn measure(effort: Effort, progress: impl FnMut(usize)) -> Result<Vec<Rate>, ErrorStack> {
    let cases = [signature::cases()?, exchange::cases()?, bulk::cases()?].into_iter().flatten().collect();
    Ok(rates(cases, effort, progress))
}

/// The server's operations of a handshake with a key of RSA-2048 or P-256 and X25519, one at a time and in full lanes.
pub(crate) fn of_a_handshake() -> Result<Vec<Rate>, ErrorStack> {
    let cases = [signature::of_a_handshake()?, exchange::in_the_engine()].into_iter().flatten().collect();
    Ok(rates(cases, Effort { rounds: 5, turn: Duration::from_millis(5) }, drop))
}

fn rates(mut cases: Vec<Case>, effort: Effort, mut progress: impl FnMut(usize)) -> Vec<Rate> {
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
    cases.into_iter().zip(samples).map(rate).collect()
}
