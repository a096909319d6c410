//! Runs the comparison, usually called by `bench/compare.sh`.

mod args;
mod experiments;

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
// Replaces the allocator of the C library, whose locks are held by threads that do not run.
use libmimalloc_sys as _;
use quadrille_bench_handshakes::{
    certificate::CertificateFiles,
    machine::Machine,
    pin::pin_to,
    report::{
        curve_page, curves,
        markdown::{self, Findings},
        picture,
    },
    scenario::KeyKind,
};

use crate::{args::Args, experiments::Laboratory};

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    if let Some(directory) = &args.certificates {
        return certificates(directory);
    }
    let machine = Machine::this();
    println!("{machine}; servers on core {}, client on core {}\n", args.server_core, args.client_core);
    pin_to(args.client_core)?;
    let mut laboratory = Laboratory::new(args)?;
    match &args.report {
        Some(file) => everything(args, &mut laboratory, machine, file),
        None if args.curve.is_some() => curve(args, &mut laboratory, &machine),
        None if args.requests => laboratory.requests().map(drop),
        None if args.bulk => laboratory.downloads().map(drop),
        None if args.http3 => laboratory.http3(),
        None if args.one_queue => laboratory.one_queue(),
        None if args.provider => laboratory.provider().map(drop),
        None if args.post_quantum => laboratory.post_quantum().map(drop),
        None if args.cross_check => laboratory.cross_check().map(drop),
        None if args.fair.is_some() => laboratory.fair().map(drop),
        None if args.overload.is_some() => laboratory.overload().map(drop),
        None if args.idle_connections.is_some() => laboratory.idle().map(drop),
        None => laboratory.handshakes().map(drop),
    }
}

fn certificates(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)?;
    KeyKind::value_variants().iter().try_for_each(|kind| CertificateFiles::make(*kind, directory).map(drop))
}

/// Runs all experiments, and writes the page. Experiments that fail are left out, and the page lists them.
fn everything(args: &Args, laboratory: &mut Laboratory<'_>, machine: Machine, file: &Path) -> Result<()> {
    let handshakes = laboratory.handshakes()?;
    let left_out = |error: anyhow::Error| eprintln!("left out: {error:#}");
    let requests = laboratory.requests().map_err(|error| format!("{error:#}"));
    let provider = laboratory.provider().map_err(|error| format!("{error:#}"));
    let post_quantum = laboratory.post_quantum().map_err(|error| format!("{error:#}"));
    let cross_check = laboratory.cross_check().map_err(|error| format!("{error:#}"));
    let idle = laboratory.idle().map_err(left_out).unwrap_or_default();
    let picture = file.with_file_name("report.svg");
    let findings = Findings {
        machine,
        date: args.date.clone(),
        plan: args.plan(),
        contestants: laboratory.contestants().to_vec(),
        handshakes,
        requests,
        provider,
        post_quantum,
        idle,
        cross_check,
    };
    write(&picture, &picture::bars(&findings.handshakes))?;
    let name = picture.file_name().unwrap_or_default().to_string_lossy();
    write(file, &markdown::page(&findings, &name))?;
    println!("written: {} and {}", file.display(), picture.display());
    Ok(())
}

/// Measures at part load, and writes the page.
fn curve(args: &Args, laboratory: &mut Laboratory<'_>, machine: &Machine) -> Result<()> {
    let Some(file) = &args.curve else { return Ok(()) };
    let (measured, agreement) = laboratory.curve()?;
    let picture = file.with_extension("svg");
    let name = picture.file_name().unwrap_or_default().to_string_lossy();
    let contestants = laboratory.contestants();
    write(&picture, &curves(&measured))?;
    write(file, &curve_page(machine, &args.date, args.plan(), contestants, &measured, &agreement, &name))?;
    println!("written: {} and {}", file.display(), picture.display());
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
