//! CPU time per handshake and per request at part load: open loops at fractions of what the fastest server can do.
//!
//! A saturated server has private-key operations to batch, events to read together and warm caches. At part load most
//! of its turns have one connection. Every server gets the same rates, in the same rounds.

use std::{fmt::Display, path::Path, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};
use quadrille_profile::load::TlsVersion;

use crate::{
    h2load::{self, H2load},
    requests::{
        rounds::{self as request_rounds, Served},
        workload::Workload,
    },
    rival::Rival,
    rounds::{Measured, Plan},
    scenario::{KeyKind, Resumption, Scenario},
    server::Server,
};

/// Loads, as fractions of the throughput of the fastest server.
pub const LOADS: [f64; 8] = [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9];

/// Kinds of handshake: key, key exchange groups, full or resumed.
pub const KINDS: [(KeyKind, &str, Resumption); 4] = [
    (KeyKind::P256, "X25519MLKEM768", Resumption::Off),
    (KeyKind::Rsa2048, "X25519", Resumption::Off),
    (KeyKind::Rsa2048, "X25519MLKEM768", Resumption::Off),
    (KeyKind::P256, "X25519MLKEM768", Resumption::On),
];

/// Maximum number of connections in flight: a server that cannot keep up with a rate is measured in a closed loop.
pub const CLIENTS: usize = 64;

/// Minimum number of handshakes of each server in each round: a round at a low rate takes longer.
const LEAST_HANDSHAKES: f64 = 150.0;

/// Interval of connections for the comparison with h2load, which starts them every whole number of milliseconds.
const STEADY: Duration = Duration::from_millis(5);

/// Results of all servers at one load.
#[derive(Clone, Debug)]
pub struct Point<T> {
    /// Fraction of the throughput of the fastest server.
    pub load: f64,
    /// Handshakes or requests that were due per second.
    pub per_second: f64,
    /// One result for each server.
    pub results: Vec<T>,
}

/// Returns the scenario of one of [`KINDS`], in a closed loop.
pub fn scenario((key, groups, resumption): (KeyKind, &str, Resumption)) -> Scenario {
    Scenario {
        version: TlsVersion::V1_3,
        key,
        resumption,
        groups: groups.into(),
        clients: CLIENTS,
        requests: 1,
        per_second: None,
    }
}

/// Measures handshakes with one request at all loads. `progress` gets a line about each round.
pub fn handshakes(
    plan: Plan,
    scenario: &Scenario,
    servers: &[(impl Display, Server)],
    mut progress: impl FnMut(&str),
) -> Result<Vec<Point<Measured>>> {
    progress("throughput");
    let most = Plan { rounds: 1, ..plan }.measure(scenario, servers, &mut progress)?;
    let rates = most.iter().filter_map(|measured| *measured.handshakes_per_second.first()?);
    let most = rates.max_by(f64::total_cmp).context("no server could be measured")?;
    let mut points = Vec::new();
    for load in LOADS {
        let per_second = load * most;
        progress(&format!("{per_second:.0} per second, {:.0} %", load * 100.0));
        let scenario = Scenario { per_second: Some(per_second), ..scenario.clone() };
        let results =
            plan.lasting(LEAST_HANDSHAKES / per_second).measure(&scenario, servers, &mut progress)?;
        points.push(Point { load, per_second, results });
    }
    Ok(points)
}

/// Measures requests on open connections at all loads. h2load writes its log into `directory`.
pub fn requests(
    h2load: &H2load,
    workload: Workload,
    plan: Plan,
    servers: &[(Rival, Server)],
    directory: &Path,
    mut progress: impl FnMut(&str),
) -> Result<Vec<Point<Served>>> {
    let measure = |plan, workload, progress: &mut dyn FnMut(&str)| {
        request_rounds::measure(h2load, workload, plan, servers, directory, progress)
    };
    progress("throughput");
    let most = measure(Plan { rounds: 1, ..plan }, workload, &mut progress);
    let rates = most.iter().filter_map(|served| *served.requests_per_second.first()?);
    let most = rates.max_by(f64::total_cmp).context("no server could be measured")?;
    let at = |load: f64| {
        let per_second = load * most;
        progress(&format!("{per_second:.0} per second, {:.0} %", load * 100.0));
        Point { load, per_second, results: measure(plan, workload.at(per_second), &mut progress) }
    };
    Ok(LOADS.map(at).into())
}

/// Measurements of one server by both generators at 200 handshakes per second, one value per round.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    /// CPU time per handshake under our generator, microseconds.
    pub ours: Vec<f64>,
    /// CPU time per handshake under h2load.
    pub theirs: Vec<f64>,
}

/// Measures the same rate of full handshakes with our generator and with h2load, in turn.
pub fn agreement(h2load: &H2load, scenario: &Scenario, server: &Server, plan: Plan) -> Result<Agreement> {
    ensure!(scenario.resumption == Resumption::Off, "h2load resumes no session");
    let per_second = 1.0 / STEADY.as_secs_f64();
    let scenario = Scenario { per_second: Some(per_second), ..scenario.clone() };
    let plan = plan.lasting(LEAST_HANDSHAKES / per_second);
    let count = (plan.round_time.as_secs_f64() * per_second) as u64;
    let mut all = Agreement::default();
    for _ in 0..plan.rounds {
        let clock = server.cpu_clock()?;
        let cpu = |load: &mut dyn FnMut() -> Result<()>| {
            let before = clock.settled()?;
            load()?;
            let used = clock.settled().context("the server has ended")?.saturating_sub(before);
            Ok::<_, anyhow::Error>(used.as_secs_f64() * 1e6 / count as f64)
        };
        all.ours.push(cpu(&mut || {
            let seen = scenario.load(server.address, count, plan.round_time * 10).run()?;
            ensure!(seen.ok == count, "{}", seen.failure().unwrap_or_else(|| "too slow".to_owned()));
            Ok(())
        })?);
        all.theirs
            .push(cpu(&mut || h2load::run(&mut steady(h2load, &scenario, server, count), count).map(drop))?);
    }
    Ok(all)
}

/// Builds a command of h2load with a new connection for each request, one every [`STEADY`].
fn steady(h2load: &H2load, scenario: &Scenario, server: &Server, count: u64) -> Command {
    let mut command = h2load.command(count as usize, count);
    command
        .args(["--h1", "--header", "connection: close", "--rate=1"])
        .arg(format!("--rate-period={}ms", STEADY.as_millis()))
        .args(["--tls13-ciphers=TLS_AES_128_GCM_SHA256", "--groups"])
        .arg(&scenario.groups)
        .arg(format!("https://{}/", server.address));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_rise_and_are_below_the_throughput() {
        assert!(LOADS.is_sorted());
        assert!(LOADS.iter().all(|load| (0.0..1.0).contains(load)));
    }

    #[test]
    fn a_round_at_a_low_rate_takes_longer() {
        let plan = Plan { rounds: 5, handshakes: 2000, round_time: Duration::from_millis(700) };
        assert_eq!(plan.lasting(LEAST_HANDSHAKES / 50.0).round_time, Duration::from_secs(3));
        assert_eq!(plan.lasting(LEAST_HANDSHAKES / 5000.0).round_time, plan.round_time);
    }
}
