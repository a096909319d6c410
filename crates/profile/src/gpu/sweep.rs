//! Rate and latency of the GPU by the size of a batch and by how many are under way.

use super::{Known, Work, generate, known, throughput};
use quadrille_kernels::{Ceiling, Lanes};
use quadrille_kernels_cuda::{Gpu, KeySize, Options};
use serde::Serialize;
use std::time::{Duration, Instant};

/// What was measured of one batch size with so many streams.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// For instance `RSA-2048`.
    pub algorithm: String,
    /// Batches under way at once, each on a stream of its own.
    pub streams: usize,
    /// Operations of a batch. What exceeds the device's capacity is computed in turns.
    pub batch: usize,
    /// Operations a second, by the clock on the wall, checked on the device.
    pub per_second: f64,
    /// Milliseconds of one batch while nothing else is under way, the median of at least five.
    pub milliseconds_alone: f64,
}

/// Measures every combination for `turn` each. It opens the GPU anew for each number of streams.
///
/// # Errors
/// A sentence, if there is no GPU, if it is lost, refuses a key, or gives a wrong result.
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
            work.run(batch)?; // the first is not like the others
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
