//! `make bench-kernels`: RSA private operations, ours beside OpenSSL, BoringSSL and AWS-LC.
//!
//! One process, one core. Every contender takes its turn in every round, so that a noisy neighbour harms all
//! alike; the figures are medians over the rounds. The lanes' figures include the fault check, the rivals'
//! their blinding and their own check of the result.

mod clock;
mod lanes;
mod leak;
mod report;
mod rival;

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use quadrille_kernels::KeySize;

/// Measures RSA private operations.
#[derive(Parser)]
struct Arguments {
    /// Turns of every contender.
    #[arg(long, default_value_t = 25)]
    rounds: usize,
    /// Milliseconds of one turn, at least.
    #[arg(long, default_value_t = 3)]
    turn_ms: u64,
    /// Key sizes in bits.
    #[arg(long, value_delimiter = ',', default_values_t = [2048, 3072, 4096])]
    sizes: Vec<usize>,
    /// Instead of speed, look for a dependence of time on inputs, with this many batches a tier.
    #[arg(long, value_name = "BATCHES")]
    leak: Option<usize>,
    /// Where the JSON goes.
    #[arg(long, default_value = "bench/out/kernels.json")]
    out: PathBuf,
}

/// Something that computes `fill` private operations at a time.
struct Contender<'a> {
    name: &'static str,
    fill: usize,
    run: Box<dyn FnMut() + 'a>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let tiers = lanes::tiers();
    if let Some(batches) = arguments.leak {
        return leak::run(&tiers, batches);
    }
    let rivals = rival::all()?;
    let mut rows = Vec::new();
    for size in KeySize::ALL.into_iter().filter(|size| arguments.sizes.contains(&size.bits())) {
        let key = rival::Key::generate(size)?;
        let mut contenders = Vec::new();
        for rival in &rivals {
            contenders.push(rival.contender(&key)?);
        }
        for tier in &tiers {
            contenders.extend(lanes::contenders(tier, &key)?);
        }
        let samples = measure(&mut contenders, arguments.rounds, arguments.turn_ms);
        rows.extend(report::rows(size, &contenders, &samples));
    }
    report::print(&rows);
    report::write(&rows, &arguments.out)
}

/// Samples of every contender, in rounds.
fn measure(contenders: &mut [Contender<'_>], rounds: usize, turn_ms: u64) -> Vec<Vec<clock::Sample>> {
    let mut samples = vec![Vec::new(); contenders.len()];
    for contender in contenders.iter_mut() {
        (contender.run)(); // warms caches, and whatever a key prepares at its first use
    }
    for _ in 0..rounds {
        for (contender, samples) in contenders.iter_mut().zip(&mut samples) {
            samples.push(clock::sample(&mut contender.run, turn_ms));
        }
    }
    samples
}
