//! Runs the comparison. `bench/compare.sh` is the usual way to call it.

mod args;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};
use quadrille_bench_handshakes::{
    certificate::CertificateFiles,
    idle::{self, Before},
    report::{self, HandshakeRow},
    rival::{Rival, Setup},
    rounds::{Contestant, Measured},
    scenario::Scenario,
    server::{Server, free_address},
};
use serde::Serialize;

use crate::args::Args;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.idle_connections {
        Some(connections) => compare_idle(&args, connections),
        None => compare_handshakes(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compare_handshakes(args: &Args) -> Result<()> {
    pin_to(args.client_core)?;
    let contestants = contestants(args);
    let directory = tempfile::tempdir()?;
    let plan = args.plan();
    println!("{}\n", machine(args));
    println!(
        "{} rounds of {} full handshakes (one client: {}), {} request each. CPU us: the server's processes, per \
         handshake; / nginx, / envoy: against theirs in the same round, median (least..greatest); core: how much of its core \
         the server used; p50, p99: connect to end of handshake.\n",
        plan.rounds,
        plan.handshakes,
        plan.quartered().handshakes,
        args.requests
    );

    let mut rows: Vec<HandshakeRow> = Vec::new();
    for key in &args.keys {
        let certificate = CertificateFiles::make(*key, directory.path())?;
        for version in &args.versions {
            let scenario = |clients| Scenario {
                version: *version,
                key: *key,
                groups: args.groups.clone(),
                clients,
                requests: args.requests,
            };
            let started = start_all(args, &contestants, &scenario(1), &certificate, directory.path());
            for clients in &args.clients {
                let scenario = scenario(*clients);
                eprintln!("{scenario}");
                let plan = if *clients == 1 { plan.quartered() } else { plan };
                let results = plan.measure(&scenario, &started.servers, |line| eprintln!("{line}"));
                let measured = started.with_the_missing(results);
                let fresh = report::handshake_rows(&scenario, &contestants, &measured);
                println!("{}", report::handshake_table(&scenario, &fresh));
                rows.extend(fresh);
                write_json(&args.out, "handshakes.json", &rows)?;
            }
        }
    }
    ensure!(rows.iter().any(|row| row.full > 0), "no server could be measured");
    Ok(())
}

fn compare_idle(args: &Args, connections: usize) -> Result<()> {
    idle::allow_files(connections as u64)?;
    pin_to(args.client_core)?;
    let directory = tempfile::tempdir()?;
    let key = args.keys[0];
    let certificate = CertificateFiles::make(key, directory.path())?;
    println!("{}\n", machine(args));
    println!(
        "Memory of the server's processes for {connections} idle connections, kernel's socket buffers not counted\n"
    );

    let mut rows = Vec::new();
    for (before, requests) in [(Before::Handshake, 0), (Before::Request, 1)] {
        let scenario =
            Scenario { version: args.versions[0], key, groups: args.groups.clone(), clients: 1, requests };
        for contestant in contestants(args) {
            eprintln!("{connections} idle connections {before}: {}", contestant.rival);
            let held = contestant.version.clone().and_then(|_| {
                let cores = [args.server_core, args.client_core];
                idle::measure(&contestant, cores, &scenario, &certificate, connections, directory.path())
                    .map_err(|error| format!("{error:#}"))
            });
            rows.push(report::idle_row(before, &contestant, held));
            write_json(&args.out, "idle-connections.json", &rows)?;
        }
    }
    println!("{}", report::idle_table(&rows));
    ensure!(rows.iter().any(|row| row.connections.is_some()), "no server could be measured");
    Ok(())
}

/// The servers asked for, each with its version or with the reason why it cannot run.
fn contestants(args: &Args) -> Vec<Contestant> {
    let contestant = |rival: Rival| {
        let program = args.program(rival);
        let version = rival.version(&program).map_err(|error| format!("{error:#}"));
        Contestant { rival, program, version }
    };
    args.servers.iter().map(|rival| contestant(*rival)).collect()
}

/// The servers that run, and why the others do not; one or the other for each contestant, in their order.
struct Started {
    servers: Vec<(Rival, Server)>,
    missing: Vec<Option<String>>,
}

impl Started {
    /// Results in the order of the contestants, with the reasons of those that do not run in between.
    fn with_the_missing(&self, results: Vec<Measured>) -> Vec<Result<Measured, String>> {
        let mut results = results.into_iter();
        self.missing
            .iter()
            .filter_map(|missing| match missing {
                Some(reason) => Some(Err(reason.clone())),
                None => results.next().map(Ok),
            })
            .collect()
    }
}

fn start_all(
    args: &Args,
    contestants: &[Contestant],
    scenario: &Scenario,
    certificate: &CertificateFiles,
    directory: &Path,
) -> Started {
    let mut started = Started { servers: Vec::new(), missing: Vec::new() };
    let connections = args.clients.iter().copied().max().unwrap_or(1);
    for contestant in contestants {
        let start = || -> Result<Server> {
            let address = free_address()?;
            let setup = Setup { address, version: scenario.version, certificate, connections, directory };
            let cores = [args.server_core, args.client_core];
            Server::start(contestant.rival, &contestant.program, cores, scenario, &setup)
        };
        match contestant.version.clone().and_then(|_| start().map_err(|error| format!("{error:#}"))) {
            Ok(server) => {
                started.servers.push((contestant.rival, server));
                started.missing.push(None);
            }
            Err(reason) => {
                eprintln!("{} is left out: {reason}", contestant.rival);
                started.missing.push(Some(reason));
            }
        }
    }
    started
}

fn pin_to(core: usize) -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core)?;
    sched_setaffinity(Pid::from_raw(0), &cores).with_context(|| format!("this machine has no core {core}"))
}

/// One line about the machine.
fn machine(args: &Args) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    format!(
        "{model}, Linux {}, load average {} at the start; servers on core {} with one worker each, client on core {}",
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").split(' ').next().unwrap_or_default(),
        args.server_core,
        args.client_core
    )
}

fn write_json(directory: &PathBuf, name: &str, rows: &impl Serialize) -> Result<()> {
    fs::create_dir_all(directory)?;
    let path = directory.join(name);
    fs::write(&path, serde_json::to_string_pretty(rows)? + "\n")
        .with_context(|| format!("cannot write {}", path.display()))
}
