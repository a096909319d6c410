//! The table and the JSON output.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};

use crate::args::Arguments;
use crate::clock::{Sample, median, quantile};
use crate::contender::Contender;
use crate::pass::Pass;
use crate::rounds;

/// Legend of the table.
pub(crate) const LEGEND: &str = "\
Contenders alternate on one core; medians over the rounds, thread CPU time, ratios within a round.
  fill       operations submitted together; a library takes one       cycles/op  of the core, from a chain of known latency
  batch us   from submitting a batch to its last result               x best     operations per second, relative to the best library
  x openssl  the same relative to OpenSSL                             latency    a batch's time, in scalar operations of BoringSSL";

/// Figures of one contender.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// `rsa2048_private` and so on, `x25519_secret`, `x25519_public`, `ml_kem_768_encapsulate`, `ml_dsa_44_sign`,
    /// `ml_dsa_44_verify` and so on, `ecdsa_p256_sign`, `ecdh_p256_secret`, `ecdh_p256_key_pair`.
    operation: String,
    /// A library (`openssl`, `boringssl`, `aws-lc`; `openssl-avx2` and so on with AVX-512 masked) or one of our tiers
    /// (`portable`, `avx2`, `ifma`).
    implementation: String,
    /// Operations per batch.
    fill: usize,
    ops_per_second: f64,
    cycles_per_op: f64,
    /// Cycles in the least disturbed tenth of the rounds.
    cycles_per_op_undisturbed: f64,
    /// CPU time from the batch's start to its end.
    batch_microseconds: f64,
    is_rival: bool,
    /// The best rival in the same rounds, and operations per second relative to it and to OpenSSL.
    best_rival: String,
    ratio_to_best_rival: f64,
    #[serde(deserialize_with = "number_or_nan")]
    ratio_to_openssl: f64,
    /// A batch's time relative to one operation of BoringSSL, whose code is scalar on every CPU.
    latency_in_scalar_operations: f64,
}

/// Reads a number that JSON has as null if it is not one: there is no OpenSSL to compare with.
fn number_or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Measures an operation of these contenders in one pass.
pub(crate) fn measured(
    pass: Pass,
    operation: &str,
    mut contenders: Vec<Contender<'_>>,
    arguments: &Arguments,
) -> Vec<Row> {
    let name = format!("{pass}, {operation}");
    let samples = rounds::measure(&name, &mut contenders, arguments.rounds, arguments.turn_ms);
    rows(operation, &contenders, &samples)
}

/// Computes medians over the rounds. Ratios are medians too, of ratios taken within each round.
pub(crate) fn rows(operation: &str, contenders: &[Contender<'_>], samples: &[Vec<Sample>]) -> Vec<Row> {
    let nanoseconds = |i: usize| median(samples[i].iter().map(|sample| sample.nanoseconds));
    let rivals = || (0..contenders.len()).filter(|&i| contenders[i].is_rival);
    let named = |name: &str| rivals().find(|&i| contenders[i].name.starts_with(name));
    let best = rivals().min_by(|&a, &b| nanoseconds(a).total_cmp(&nanoseconds(b)));
    // Ratio of the time of contender i's batch to the rival's operation.
    let against = |i: usize, rival: Option<usize>| {
        let Some(rival) = rival else { return f64::NAN };
        let rounds = samples[i].iter().zip(&samples[rival]);
        median(rounds.map(|(ours, theirs)| ours.nanoseconds / theirs.nanoseconds))
    };
    let cycles = |i: usize| samples[i].iter().map(|sample| sample.cycles);
    let row = |(i, contender): (usize, &Contender<'_>)| {
        let fill = contender.fill as f64;
        Row {
            operation: operation.to_owned(),
            implementation: contender.name.clone(),
            fill: contender.fill,
            ops_per_second: (fill * 1e9 / nanoseconds(i)).round(),
            cycles_per_op: (median(cycles(i)) / fill).round(),
            cycles_per_op_undisturbed: (quantile(cycles(i), 0.1) / fill).round(),
            batch_microseconds: rounded(nanoseconds(i) / 1000.0, 10.0),
            is_rival: contender.is_rival,
            best_rival: best.map(|best| contenders[best].name.clone()).unwrap_or_default(),
            ratio_to_best_rival: rounded(fill / against(i, best), 1000.0),
            ratio_to_openssl: rounded(fill / against(i, named("openssl")), 1000.0),
            latency_in_scalar_operations: rounded(against(i, named("boringssl")), 1000.0),
        }
    };
    contenders.iter().enumerate().map(row).collect()
}

fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

/// Formats the table of one pass.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut out = format!(
        "{:15} {:14} {:>4} {:>8} {:>11} {:>9} {:>7} {:>9} {:>8}\n",
        "operation", "by", "fill", "ops/s", "cycles/op", "batch us", "x best", "x openssl", "latency"
    );
    let mut previous = "";
    for row in rows {
        if !previous.is_empty() && previous != row.operation {
            out.push('\n');
        }
        previous = &row.operation;
        let best = if row.is_rival && row.implementation == row.best_rival { "  best library" } else { "" };
        writeln!(
            out,
            "{:15} {:14} {:>4} {:>8.0} {:>11.0} {:>9.1} {:>7.2} {:>9.2} {:>8.2}{best}",
            row.operation,
            row.implementation,
            row.fill,
            row.ops_per_second,
            row.cycles_per_op,
            row.batch_microseconds,
            row.ratio_to_best_rival,
            row.ratio_to_openssl,
            row.latency_in_scalar_operations,
        )
        .expect("writing to a String cannot fail");
    }
    out
}

/// Writes the rows as JSON.
pub(crate) fn write(rows: &[Row], path: &Path) -> Result<(), Box<dyn Error>> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, serde_json::to_string_pretty(rows)? + "\n")?;
    println!("written to {}", path.display());
    Ok(())
}

/// Passes a child's rows to its parent, on stdout.
pub(crate) fn hand_over(rows: &[Row]) -> Result<(), Box<dyn Error>> {
    println!("{}", serde_json::to_string(rows)?);
    Ok(())
}

/// Parses the rows of [`hand_over`].
pub(crate) fn take_over(stdout: &[u8]) -> Result<Vec<Row>, Box<dyn Error>> {
    Ok(serde_json::from_slice(stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_a_round_and_against_the_best_library() {
        let contender = |name: &str, is_rival, fill| Contender {
            name: name.to_owned(),
            is_rival,
            fill,
            run: Box::new(|| {}),
        };
        let contenders = [
            contender("openssl-avx2", true, 1),
            contender("boringssl-avx2", true, 1),
            contender("avx2", false, 4),
        ];
        let samples = |micros: [f64; 3]| {
            micros.map(|us| Sample { nanoseconds: 1000.0 * us, cycles: 2000.0 * us }).to_vec()
        };
        // The second round is disturbed, for all alike.
        let samples = [
            samples([800.0, 1600.0, 880.0]),
            samples([700.0, 1400.0, 770.0]),
            samples([1400.0, 2800.0, 1540.0]),
        ];
        let rows = rows("rsa2048_private", &contenders, &samples);
        let ours = &rows[2];
        assert_eq!((ours.operation.as_str(), ours.fill), ("rsa2048_private", 4));
        assert_eq!(ours.best_rival, "boringssl-avx2");
        assert_eq!((ours.ratio_to_best_rival, ours.ratio_to_openssl), (2.0, 2.286));
        assert_eq!((ours.ops_per_second, ours.cycles_per_op), (2597.0, 770_000.0));
        assert_eq!(ours.latency_in_scalar_operations, 2.0);
        assert!(table(&rows).contains("best library"));
        let json = serde_json::to_vec(&rows).expect("rows are plain data");
        assert_eq!(take_over(&json).expect("a child's rows"), rows);
    }
}
