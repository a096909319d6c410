//! The GPU, beside all cores with lanes: by the clock on the wall, since it needs hardly any of the CPU's.

use std::{error::Error, fmt::Write as _, fs, path::Path, time::Duration};

use quadrille_profile::gpu::{self, KeySize, Rates};

/// The table, and the JSON in a file beside the other; or why there is none.
pub(crate) fn run(sizes: &[usize], turn: Duration, out: &Path) -> Result<(), Box<dyn Error>> {
    let opened = match gpu::open() {
        Ok(opened) => opened,
        Err(reason) => {
            println!("\nON A GPU: not measured, {reason}");
            return Ok(());
        }
    };
    let sizes: Vec<KeySize> = sizes.iter().filter_map(|&bits| KeySize::from_bits(bits)).collect();
    let rates = gpu::measure(&opened, &sizes, turn)?;
    println!(
        "\nON THE GPU {}, beside all cores of the CPU in the same run.\n\n{}",
        opened.name(),
        table(&rates)
    );
    let out = out.with_file_name("kernels-gpu.json");
    fs::write(&out, serde_json::to_string_pretty(&rates)? + "\n")?;
    println!("written to {}", out.display());
    Ok(())
}

fn table(rates: &[Rates]) -> String {
    let mut text = format!(
        "{:15} {:>10} {:>7} {:>12} {:>10} {:>8} {:>10} {:>10} {:>8}\n",
        "operation", "ops/s", "batch", "of mul bound", "median ms", "p99 ms", "all cores", "by", "x cores"
    );
    for rate in rates {
        let written = writeln!(
            text,
            "{:15} {:>10.0} {:>7} {:>10.1} % {:>10.2} {:>8.2} {:>10.0} {:>10} {:>8.1}",
            rate.algorithm,
            rate.per_second,
            rate.batch,
            rate.part_of_multiply_bound * 100.0,
            rate.milliseconds_median,
            rate.milliseconds_p99,
            rate.cpu_per_second,
            rate.cpu_by,
            rate.per_second / rate.cpu_per_second,
        );
        written.expect("writing to a String cannot fail");
    }
    text
}
