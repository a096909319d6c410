//! `--leak`: does the time of a batch depend on its inputs? (dudect: Reparaz, Balasch, Verbauwhede 2017.)
//!
//! Two classes of batches, one with a fixed input in every lane and one with random inputs, in random order;
//! Welch's t of their times. Beyond 4.5 in magnitude, the classes differ with near certainty. Small values prove
//! nothing by themselves: they say that this many measurements found nothing.

use std::error::Error;

use quadrille_kernels::{KeySize, Lanes, PrivateKey, PrivateOperation};

use crate::clock::{cpu_time, median};
use crate::rival::Key;

/// What dudect takes for certain.
const THRESHOLD: f64 = 4.5;

/// Measures every tier with RSA-2048, and fails if one leaks.
pub(crate) fn run(tiers: &[Lanes], batches: usize) -> Result<(), Box<dyn Error>> {
    let key = Key::generate(KeySize::Rsa2048)?;
    let mut leaks = Vec::new();
    println!("{:6} {:>8} {:>12} {:>12} {:>8}", "tier", "batches", "fixed ns", "random ns", "t");
    for tier in tiers {
        let times = measure(tier, &key, batches)?;
        let [fixed, random] = crop(times);
        let t = welch(&fixed, &random);
        let middle = |times: &[f64]| median(times.iter().copied());
        println!(
            "{:6} {:>8} {:>12.0} {:>12.0} {:>8.2}",
            tier.name(),
            batches,
            middle(&fixed),
            middle(&random),
            t
        );
        if t.abs() > THRESHOLD {
            leaks.push(tier.name());
        }
    }
    if leaks.is_empty() {
        Ok(())
    } else {
        Err(format!("time depends on the input: {}", leaks.join(", ")).into())
    }
}

/// Nanoseconds of the batches of both classes.
fn measure(lanes: &Lanes, key: &Key, batches: usize) -> Result<[Vec<f64>; 2], Box<dyn Error>> {
    let prepared = PrivateKey::new(&key.components())?;
    let fixed = {
        let mut input = vec![0; prepared.size().bytes()];
        input[prepared.size().bytes() - 1] = 1; // every power is one
        input
    };
    let (mut times, mut random) = ([Vec::new(), Vec::new()], 0x9e37_79b9_7f4a_7c15u64);
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for _ in 0..batches {
        let class = (next() >> 40) as usize & 1;
        // Both classes do the same before the clock starts.
        let inputs: Vec<Vec<u8>> = (0..lanes.width())
            .map(|_| {
                let random: Vec<u8> =
                    key.input().iter().map(|byte| if *byte == 0 { 0 } else { next() as u8 }).collect();
                if class == 0 { fixed.clone() } else { random }
            })
            .collect();
        let mut outputs = vec![vec![0; fixed.len()]; inputs.len()];
        let pairs = inputs.iter().zip(&mut outputs);
        let mut batch: Vec<_> =
            pairs.map(|(input, output)| PrivateOperation::new(&prepared, input, output)).collect();
        let start = cpu_time();
        lanes.private_operations(&mut batch);
        times[class].push((cpu_time() - start).as_nanos() as f64);
    }
    Ok(times)
}

/// Leaves out, in both classes, what is slower than nine tenths of all: interrupts and neighbours.
fn crop(times: [Vec<f64>; 2]) -> [Vec<f64>; 2] {
    let mut all: Vec<f64> = times.concat();
    all.sort_by(f64::total_cmp);
    let limit = all[all.len() * 9 / 10];
    times.map(|times| times.into_iter().filter(|&time| time <= limit).collect())
}

/// Welch's t: the difference of the means in units of its standard deviation.
fn welch(a: &[f64], b: &[f64]) -> f64 {
    let moments = |times: &[f64]| {
        let n = times.len() as f64;
        let mean = times.iter().sum::<f64>() / n;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, variance / n)
    };
    let ((mean_a, error_a), (mean_b, error_b)) = (moments(a), moments(b));
    (mean_a - mean_b) / (error_a + error_b).sqrt()
}
