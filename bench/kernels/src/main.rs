//! `make bench-kernels`: RSA private operations, X25519, ML-KEM-768, ML-DSA, ECDSA and ECDH on P-256, compared with
//! OpenSSL, BoringSSL and AWS-LC.
//!
//! Every contender takes its turn in every round, so that a noisy neighbour affects all alike; the figures are
//! medians over the rounds, and ratios are taken within a round. One process and one core measure a [`Pass`]; on a
//! CPU with AVX-512 there are two passes.

mod args;
mod clock;
mod contender;
mod gpu;
mod gpu_ml_dsa;
mod lanes;
mod leak;
mod machine;
mod masked;
mod ml_dsa;
mod ml_kem;
mod p256;
mod p256_exchange;
mod pass;
mod report;
mod rival;
mod rounds;
mod x25519;

use std::{error::Error, time::Duration};

use clap::Parser;
use quadrille_kernels::KeySize;

use args::Arguments;
use pass::Pass;
use report::Row;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    if arguments.all_cores {
        return gpu::cores(&arguments.sizes, Duration::from_secs(arguments.gpu_seconds));
    }
    machine::stay_on_this_core();
    if let Some(batches) = arguments.leak {
        return leak::run(&lanes::of_this_cpu(), batches);
    }
    let turn = Duration::from_secs(arguments.gpu_seconds);
    if let Some(thousands) = arguments.gpu_only {
        machine::leave_this_core();
        return gpu::run_alone(&arguments.sizes, turn, thousands * 1000, &arguments.out);
    }
    if arguments.gpu_ml_dsa {
        machine::leave_this_core();
        return gpu_ml_dsa::run(turn, &arguments.out);
    }
    // The parent prints the tables, of its own pass and of the other one, which a child measures.
    if arguments.masked_pass {
        return report::hand_over(&measure(Pass::Masked, &arguments)?);
    }
    println!("{}\n\n{}", machine::describe()?, report::LEGEND);
    let mut rows = Vec::new();
    for pass in Pass::of_this_cpu() {
        let measured = match pass {
            Pass::Native => measure(pass, &arguments)?,
            Pass::Masked => masked::in_a_child(&arguments)?,
        };
        println!("\n{}\n\n{}", pass.title(), report::table(&measured));
        rows.extend(measured);
    }
    report::write(&rows, &arguments.out)?;
    if arguments.one_operation() {
        return Ok(());
    }
    machine::leave_this_core();
    gpu::run(&arguments.sizes, turn, &arguments.out)
}

/// Measures all operations, sizes and contenders of one pass.
fn measure(pass: Pass, arguments: &Arguments) -> Result<Vec<Row>, Box<dyn Error>> {
    let rivals = rival::all(pass)?;
    let tiers = pass.tiers();
    let mut rows = Vec::new();
    let sizes = KeySize::ALL.into_iter().filter(|size| arguments.sizes.contains(&size.bits()));
    for size in sizes.filter(|_| !arguments.one_operation()) {
        let key = rival::Key::generate(size)?;
        let mut contenders = Vec::new();
        for rival in &rivals {
            contenders.push(rival.contender(&key)?);
        }
        for tier in &tiers {
            contenders.extend(lanes::contenders(tier, &key)?);
        }
        let name = format!("{pass}, RSA-{}", size.bits());
        let samples = rounds::measure(&name, &mut contenders, arguments.rounds, arguments.turn_ms);
        rows.extend(report::rows(&format!("rsa{}_private", size.bits()), &contenders, &samples));
    }
    let all = !arguments.one_operation();
    if all || arguments.x25519 {
        rows.extend(x25519::measure(pass, arguments)?);
    }
    // Only our lanes use AVX-512 here, so there is nothing to mask.
    if matches!(pass, Pass::Native) && (all || arguments.ml_kem) {
        rows.extend(ml_kem::measure(pass, arguments));
    }
    if all || arguments.ml_dsa {
        rows.extend(ml_dsa::measure(pass, arguments));
    }
    if all || arguments.p256 {
        rows.extend(p256::measure(pass, arguments)?);
        rows.extend(p256_exchange::measure(pass, arguments)?);
    }
    Ok(rows)
}
