//! The table and the JSON.

use std::error::Error;
use std::fs;
use std::path::Path;

use quadrille_kernels::KeySize;
use serde::Serialize;

use crate::Contender;
use crate::clock::{Sample, median};

/// One contender's figures.
#[derive(Serialize)]
pub(crate) struct Row {
    /// `rsa2048_private` and so on.
    operation: String,
    /// `openssl`, `boringssl`, `aws-lc`, `avx2` or `ifma`.
    implementation: &'static str,
    /// Operations a batch.
    fill: usize,
    ops_per_second: f64,
    cycles_per_op: f64,
    /// Microseconds from the first operation's start to the last one's end.
    batch_microseconds: f64,
}

impl Row {
    fn is_rival(&self) -> bool {
        ["openssl", "boringssl", "aws-lc"].contains(&self.implementation)
    }
}

/// Medians over the rounds.
pub(crate) fn rows(size: KeySize, contenders: &[Contender<'_>], samples: &[Vec<Sample>]) -> Vec<Row> {
    let row = |(contender, samples): (&Contender<'_>, &Vec<Sample>)| {
        let nanoseconds = median(samples.iter().map(|sample| sample.nanoseconds));
        let cycles = median(samples.iter().map(|sample| sample.cycles));
        Row {
            operation: format!("rsa{}_private", size.bits()),
            implementation: contender.name,
            fill: contender.fill,
            ops_per_second: (contender.fill as f64 * 1e9 / nanoseconds).round(),
            cycles_per_op: (cycles / contender.fill as f64).round(),
            batch_microseconds: (nanoseconds / 100.0).round() / 10.0,
        }
    };
    contenders.iter().zip(samples).map(row).collect()
}

/// Prints the table; ratios are of operations per second within one key size.
pub(crate) fn print(rows: &[Row]) {
    println!(
        "{:16} {:10} {:>4} {:>10} {:>12} {:>12} {:>14} {:>12}",
        "operation", "by", "fill", "ops/s", "cycles/op", "batch us", "to best rival", "to openssl"
    );
    for row in rows {
        let same = || rows.iter().filter(|other| other.operation == row.operation && other.is_rival());
        let best = same().map(|rival| rival.ops_per_second).fold(0.0, f64::max);
        let openssl =
            same().filter(|rival| rival.implementation == "openssl").map(|rival| rival.ops_per_second);
        println!(
            "{:16} {:10} {:>4} {:>10.0} {:>12.0} {:>12.1} {:>13.2}x {:>11.2}x",
            row.operation,
            row.implementation,
            row.fill,
            row.ops_per_second,
            row.cycles_per_op,
            row.batch_microseconds,
            row.ops_per_second / best,
            row.ops_per_second / openssl.sum::<f64>(),
        );
    }
}

/// Writes the list as JSON.
pub(crate) fn write(rows: &[Row], path: &Path) -> Result<(), Box<dyn Error>> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, serde_json::to_string_pretty(rows)? + "\n")?;
    println!("written to {}", path.display());
    Ok(())
}
