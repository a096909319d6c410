//! Rate and latency of the GPU by batch size and number of batches in flight.

use super::{Known, Work, generate, known, throughput};
use quadrille_kernels::{Ceiling, Lanes};
use quadrille_kernels_cuda::{Gpu, KeySize, Options};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Measurement of one batch size and number of streams.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Name of the algorithm, for instance `RSA-2048`.
    pub algorithm: String,
    /// Number of batches in flight, each on a stream of its own.
    pub streams: usize,
    /// Operations per batch. A batch above the device's capacity is computed in parts.
    pub batch: usize,
    /// Operations per second of wall-clock time, checked on the device.
    pub per_second: f64,
    /// Milliseconds for one batch without others in flight, the median of at least five.
    pub milliseconds_alone: f64,
}

/// Measures every combination for `turn` each. Reopens the GPU for each number of streams.
///
/// # Errors
/// A message, if there is no GPU, or it is lost, rejects a key, or returns a wrong result.
pub fn sweep(
    size: KeySize,
    streams: &[usize],
    batches: &[usize],
    turn: Duration,
) -> Result<Vec<Point>, String> {
    let keys = [generate(size)?, generate(size)?];
    let mut points = Vec::new();
    for &streams in streams {
        let options = Options { lanes: streams, ..Options::default() };
        let gpu = Gpu::open(&options).map_err(|error| error.to_string())?;
        let known: Vec<Known> = keys.iter().map(|key| known(&gpu, key)).collect::<Result<_, _>>()?;
        let work = Work { gpu: &gpu, known: &known, lanes: Lanes::up_to(Ceiling::default()) };
        for &batch in batches {
            work.run(batch)?; // the first batch is not representative
            points.push(Point {
                algorithm: format!("RSA-{}", size.bits()),
                streams,
                batch,
                per_second: throughput(&gpu, batch, turn, |count| work.run(count).map(drop))?,
                milliseconds_alone: alone(&work, batch, turn)?,
            });
        }
    }
    Ok(points)
}

fn alone(work: &Work<'_>, batch: usize, turn: Duration) -> Result<f64, String> {
    let began = Instant::now();
    let mut each = Vec::new();
    while each.len() < 5 || (began.elapsed() < turn && each.len() < 1000) {
        let one = Instant::now();
        work.run(batch)?;
        each.push(one.elapsed().as_secs_f64() * 1e3);
    }
    each.sort_by(f64::total_cmp);
    Ok(each[each.len() / 2])
}
