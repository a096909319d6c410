//! Rates of this machine by algorithm, as TLS uses them: CPU time on one core, medians over interleaved rounds.

mod bulk;
mod case;
mod exchange;
mod ml_dsa;
mod signature;

use crate::clock::median;
use boring::error::ErrorStack;
use case::Case;
pub use case::Purpose;
use serde::Serialize;
use std::time::Duration;

/// Measured rate of one algorithm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Purpose of the algorithm.
    pub purpose: Purpose,
    /// Name of the algorithm, for instance `RSA-2048`, `AES-128-GCM`.
    pub algorithm: String,
    /// Implementation: `scalar` (BoringSSL), `engine` (the engine's key exchange with one client), or a tier of lanes
    /// with all lanes filled.
    pub by: &'static str,
    /// Number of bytes that one operation protects or hashes.
    pub bytes: Option<usize>,
    /// Microseconds of CPU per operation.
    pub microseconds: f64,
}

impl Rate {
    /// Returns operations per second on one core.
    pub fn per_second(&self) -> f64 {
        1e6 / self.microseconds
    }
}

/// Duration of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Number of interleaved rounds.
    pub rounds: usize,
    /// CPU time of each algorithm in each round; at least one operation is run.
    pub turn: Duration,
}

impl Default for Effort {
    fn default() -> Self {
        Self { rounds: 7, turn: Duration::from_millis(20) }
    }
}

/// Measures all algorithms; `progress` is called at the start of each round.
///
/// # Errors
/// If BoringSSL fails for lack of memory.
pub fn measure(effort: Effort, progress: impl FnMut(usize)) -> Result<Vec<Rate>, ErrorStack> {
    let cases = [signature::cases()?, ml_dsa::cases()?, exchange::cases()?, bulk::cases()?];
    let cases = cases.into_iter().flatten().collect();
    Ok(rates(cases, effort, progress))
}

/// Measures the server's operations of a handshake with an RSA-2048 or P-256 key and X25519, one at a time and in
/// full lanes.
pub(crate) fn of_a_handshake() -> Result<Vec<Rate>, ErrorStack> {
    let cases = [signature::of_a_handshake()?, exchange::in_the_engine()].into_iter().flatten().collect();
    Ok(rates(cases, Effort { rounds: 5, turn: Duration::from_millis(5) }, drop))
}

fn rates(mut cases: Vec<Case>, effort: Effort, mut progress: impl FnMut(usize)) -> Vec<Rate> {
    for case in &mut cases {
        (case.run)(); // warms caches, and values that a key computes in its first operation
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
