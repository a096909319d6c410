//! `--leak`: tests whether the time of a batch depends on its inputs (dudect: Reparaz, Balasch, Verbauwhede 2017).
//!
//! Two classes of batches, one with a fixed input in every lane and one with random inputs, run in random order; the
//! statistic is Welch's t of their times. Beyond 4.5 in magnitude, the classes differ with near certainty. Small
//! values alone do not prove constant time: this many measurements found no difference. The control shows that they
//! would have found one: the same operation with a little work for each non-zero byte of the input.

use std::error::Error;
use std::hint::black_box;

use quadrille_kernels::{
    Agreement, Encapsulation, KeySize, Lanes, ML_KEM_CIPHERTEXT_BYTES, ML_KEM_PUBLIC_KEY_BYTES,
    P256_POINT_BYTES, P256Agreement, PrivateKey, PrivateOperation,
};

use crate::clock::{cpu_time, median};
use crate::rival::Key;

/// dudect's threshold for certainty.
const THRESHOLD: f64 = 4.5;

/// Measures every operation that a tier has in lanes, and RSA-2048 on every tier. Fails if one leaks, or if a control
/// does not.
pub(crate) fn run(tiers: &[Lanes], batches: usize) -> Result<(), Box<dyn Error>> {
    let key = Key::generate(KeySize::Rsa2048)?;
    let mut wrong = Vec::new();
    println!(
        "{:6} {:24} {:>8} {:>10} {:>10} {:>8}",
        "tier", "operation", "batches", "fixed ns", "random ns", "t"
    );
    for tier in tiers {
        for mut subject in subjects(tier, &key)? {
            for control in [false, true] {
                let times = crop(measure(&mut subject, batches, control));
                let t = welch(&times);
                let [fixed, random] = times.each_ref().map(|times| median(times.iter().copied()));
                let name =
                    if control { format!("{}, control", subject.name) } else { subject.name.to_owned() };
                println!("{:6} {name:24} {batches:>8} {fixed:>10.0} {random:>10.0} {t:>8.2}", tier.name());
                if (t.abs() > THRESHOLD) != control {
                    wrong.push(format!("{} {name}", tier.name()));
                }
            }
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("time depends on the input, or a control does not show it: {}", wrong.join(", ")).into())
    }
}

/// Runs a batch with these secrets, one for each lane.
type Run<'a> = Box<dyn FnMut(&[Vec<u8>]) + 'a>;

/// An operation in lanes, on secrets of one length, with a fixed secret.
struct Subject<'a> {
    name: &'static str,
    lanes: usize,
    fixed: Vec<u8>,
    /// Mask of the random bytes that are kept, so that the number is in its range.
    mask: Vec<u8>,
    run: Run<'a>,
}

fn subjects<'a>(lanes: &'a Lanes, key: &Key) -> Result<Vec<Subject<'a>>, Box<dyn Error>> {
    let mut subjects = vec![rsa(lanes, key)?];
    subjects.extend((lanes.x25519_width() > 1).then(|| x25519(lanes)));
    subjects.extend((lanes.p256_width() > 1).then(|| p256(lanes)));
    subjects.extend((lanes.ml_kem_width() > 1).then(|| ml_kem(lanes)));
    Ok(subjects)
}

fn rsa<'a>(lanes: &'a Lanes, key: &Key) -> Result<Subject<'a>, Box<dyn Error>> {
    let prepared = PrivateKey::new(&key.components())?;
    // All powers of one are equal.
    let fixed = with_last(prepared.size().bytes(), 1);
    let mask = key.input().iter().map(|byte| if *byte == 0 { 0 } else { 0xff }).collect();
    let mut outputs = vec![vec![0; fixed.len()]; lanes.width()];
    let run = move |inputs: &[Vec<u8>]| {
        let pairs = inputs.iter().zip(&mut outputs);
        let mut batch: Vec<_> =
            pairs.map(|(input, output)| PrivateOperation::new(&prepared, input, output)).collect();
        lanes.private_operations(&mut batch);
    };
    Ok(Subject { name: "rsa2048", lanes: lanes.width(), fixed, mask, run: Box::new(run) })
}

fn x25519(lanes: &Lanes) -> Subject<'_> {
    let (point, mut secrets) = ([9; 32], vec![[0; 32]; lanes.x25519_width()]);
    let run = move |inputs: &[Vec<u8>]| {
        let inputs: Vec<_> = inputs.iter().filter_map(|input| input.first_chunk()).collect();
        let each = inputs.into_iter().zip(&mut secrets);
        let mut batch: Vec<_> = each.map(|(scalar, secret)| Agreement::new(scalar, &point, secret)).collect();
        lanes.agree(&mut batch);
    };
    let (fixed, mask) = (with_last(32, 1), vec![0xff; 32]);
    Subject { name: "x25519", lanes: lanes.x25519_width(), fixed, mask, run: Box::new(run) }
}

fn p256(lanes: &Lanes) -> Subject<'_> {
    let (mut point, mut secrets) = ([[0; P256_POINT_BYTES]], vec![[0; 32]; lanes.p256_width()]);
    lanes.p256_public_keys(&[[0x33; 32]], &mut point);
    let run = move |inputs: &[Vec<u8>]| {
        let inputs: Vec<_> = inputs.iter().filter_map(|input| input.first_chunk()).collect();
        let each = inputs.into_iter().zip(&mut secrets);
        let mut batch: Vec<_> =
            each.map(|(scalar, secret)| P256Agreement::new(scalar, &point[0], secret)).collect();
        lanes.agree_p256(&mut batch);
    };
    let mut mask = vec![0xff; 32];
    mask[0] = 0x7f;
    Subject { name: "p256", lanes: lanes.p256_width(), fixed: with_last(32, 1), mask, run: Box::new(run) }
}

/// The secret is the message, drawn from random numbers.
fn ml_kem(lanes: &Lanes) -> Subject<'_> {
    let key = [0; ML_KEM_PUBLIC_KEY_BYTES];
    let mut results = vec![([0; ML_KEM_CIPHERTEXT_BYTES], [0; 32]); lanes.ml_kem_width()];
    let run = move |inputs: &[Vec<u8>]| {
        let inputs: Vec<_> = inputs.iter().filter_map(|input| input.first_chunk()).collect();
        let each = inputs.into_iter().zip(&mut results);
        let mut batch: Vec<_> = each
            .map(|(message, (ciphertext, secret))| Encapsulation::new(&key, message, ciphertext, secret))
            .collect();
        lanes.encapsulate(&mut batch);
    };
    let (fixed, mask) = (with_last(32, 1), vec![0xff; 32]);
    Subject { name: "ml_kem_768", lanes: lanes.ml_kem_width(), fixed, mask, run: Box::new(run) }
}

/// Returns zeros, followed by one other byte.
fn with_last(len: usize, last: u8) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[len - 1] = last;
    bytes
}

/// Returns nanoseconds of the batches of both classes.
fn measure(subject: &mut Subject<'_>, batches: usize, control: bool) -> [Vec<f64>; 2] {
    let (mut times, mut random) = ([Vec::new(), Vec::new()], 0x9e37_79b9_7f4a_7c15u64);
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for _ in 0..batches {
        let class = (next() >> 40) as usize & 1;
        // Both classes do the same work before the clock starts.
        let inputs: Vec<Vec<u8>> = (0..subject.lanes)
            .map(|_| {
                let random: Vec<u8> = subject.mask.iter().map(|mask| next() as u8 & mask).collect();
                if class == 0 { subject.fixed.clone() } else { random }
            })
            .collect();
        let start = cpu_time();
        (subject.run)(&inputs);
        if control {
            inputs.iter().flatten().filter(|byte| **byte != 0).for_each(leak);
        }
        times[class].push((cpu_time() - start).as_nanos() as f64);
    }
    times
}

/// Takes some dozens of nanoseconds.
fn leak(byte: &u8) {
    (0..128).for_each(|i| _ = black_box(*byte ^ i));
}

/// Drops, in both classes, times above the 90th percentile of all: interrupts and neighbours.
fn crop(times: [Vec<f64>; 2]) -> [Vec<f64>; 2] {
    let mut all: Vec<f64> = times.concat();
    all.sort_by(f64::total_cmp);
    let limit = all[all.len() * 9 / 10];
    times.map(|times| times.into_iter().filter(|&time| time <= limit).collect())
}

/// Returns Welch's t: the difference of the means in units of its standard deviation.
fn welch([a, b]: &[Vec<f64>; 2]) -> f64 {
    let moments = |times: &[f64]| {
        let n = times.len() as f64;
        let mean = times.iter().sum::<f64>() / n;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, variance / n)
    };
    let ((mean_a, error_a), (mean_b, error_b)) = (moments(a), moments(b));
    (mean_a - mean_b) / (error_a + error_b).sqrt()
}
