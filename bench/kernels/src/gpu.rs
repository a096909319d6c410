//! The GPU, compared with all cores with lanes: in wall-clock time, since it uses hardly any CPU time.

use std::{error::Error, fmt::Write as _, fs, path::Path, time::Duration};

use quadrille_profile::gpu::{self, KeySize, Rates};

/// Numbers of streams and batch sizes, measured in every combination.
const STREAMS: [usize; 3] = [1, 2, 4];
const BATCHES: [usize; 6] = [1, 256, 1024, 4096, 16_384, 65_536];
/// Maximum time per combination, since there are many.
const LONGEST_TURN: Duration = Duration::from_secs(1);

/// Prints the table and writes the JSON next to the other file; or prints the reason that there is no GPU.
pub(crate) fn run(sizes: &[usize], turn: Duration, out: &Path) -> Result<(), Box<dyn Error>> {
    let opened = match gpu::open() {
        Ok(opened) => opened,
        Err(reason) => {
            println!("\nGPU: not measured, {reason}");
            return Ok(());
        }
    };
    let sizes: Vec<KeySize> = sizes.iter().filter_map(|&bits| KeySize::from_bits(bits)).collect();
    let rates = gpu::measure(&opened, &sizes, turn)?;
    println!(
        "\nGPU {}, compared with all cores of the CPU in the same run.\n\n{}",
        opened.name(),
        table(&rates)
    );
    let out = out.with_file_name("kernels-gpu.json");
    fs::write(&out, serde_json::to_string_pretty(&rates)? + "\n")?;
    println!("written to {}", out.display());
    Ok(())
}

/// Measures operations per second of the lanes on all cores of this process.
pub(crate) fn cores(sizes: &[usize], turn: Duration) -> Result<(), Box<dyn Error>> {
    for size in sizes.iter().filter_map(|&bits| KeySize::from_bits(bits)) {
        let (per_second, by) = gpu::on_all_cores(size, turn)?;
        println!("RSA-{}: {per_second:.0} operations per second, {by}", size.bits());
    }
    Ok(())
}

/// Measures the GPU alone: random operations compared with the lanes, the table, and rate and latency by batch size
/// and streams. Fails without a GPU.
pub(crate) fn run_alone(
    sizes: &[usize],
    turn: Duration,
    operations: usize,
    out: &Path,
) -> Result<(), Box<dyn Error>> {
    let opened = gpu::open()?;
    let sizes: Vec<KeySize> = sizes.iter().filter_map(|&bits| KeySize::from_bits(bits)).collect();
    let agreed = gpu::agree(&opened, &sizes, operations)?;
    println!("{agreed} random operations on {} agree with the lanes.", opened.name());
    drop(opened);
    let bits: Vec<usize> = sizes.iter().map(|size| size.bits()).collect();
    run(&bits, turn, out)?;
    println!("\n{:12} {:>8} {:>8} {:>10} {:>12}", "operation", "streams", "batch", "ops/s", "ms, alone");
    let mut points = Vec::new();
    for size in sizes {
        for point in gpu::sweep(size, &STREAMS, &BATCHES, turn.min(LONGEST_TURN))? {
            let gpu::Point { algorithm, streams, batch, per_second, milliseconds_alone } = &point;
            println!("{algorithm:12} {streams:>8} {batch:>8} {per_second:>10.0} {milliseconds_alone:>12.2}");
            points.push(point);
        }
    }
    let out = out.with_file_name("kernels-gpu-batches.json");
    fs::write(&out, serde_json::to_string_pretty(&points)? + "\n")?;
    println!("written to {}", out.display());
    Ok(())
}

fn table(rates: &[Rates]) -> String {
    let mut text = format!(
        "{:15} {:>10} {:>10} {:>7} {:>12} {:>10} {:>8} {:>10} {:>10} {:>8}\n",
        "operation",
        "ops/s",
        "unchecked",
        "batch",
        "of mul bound",
        "median ms",
        "p99 ms",
        "all cores",
        "by",
        "x cores"
    );
    for rate in rates {
        let written = writeln!(
            text,
            "{:15} {:>10.0} {:>10.0} {:>7} {:>10.1} % {:>10.2} {:>8.2} {:>10.0} {:>10} {:>8.1}",
            rate.algorithm,
            rate.per_second,
            rate.per_second_unchecked,
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
