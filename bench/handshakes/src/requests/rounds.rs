//! CPU time and latency of requests, in interleaved rounds.

use std::{fs::File, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;

use super::workload::{Protocol, Workload};
use crate::{
    h2load::{self, H2load},
    rival::Rival,
    rounds::Plan,
    server::Server,
};

/// Requests of the first round, which warms up and determines the number that a server serves in a round.
const FIRST_REQUESTS: u64 = 4_000;
/// Maximum total length of bodies in the first round.
const FIRST_BYTES: u64 = 256 << 20;

/// Results of one server in all rounds of a workload, one value per round.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// CPU time of the server, microseconds.
    pub cpu_us_per_request: Vec<Option<f64>>,
    /// Requests a second.
    pub requests_per_second: Vec<Option<f64>>,
    /// Fraction of its core that the server used.
    pub server_busy: Vec<Option<f64>>,
    /// Median time from the start of a request to the end of its response, microseconds.
    pub p50_us: Vec<Option<f64>>,
    /// 99th percentile of that time.
    pub p99_us: Vec<Option<f64>>,
    /// Reason that the server left before the last round.
    pub gave_up: Option<String>,
}

/// One server's round.
struct Visit {
    /// CPU time of the server for `counted` requests, without the handshakes of their connections.
    cpu: Duration,
    counted: u64,
    per_second: f64,
    latency_us: Histogram<u64>,
}

/// One call of h2load.
#[derive(Default)]
struct Run {
    cpu: Duration,
    requests: u64,
    per_second: f64,
}

/// Warms up and measures `servers` in turn. Results are in the order of `servers`; h2load writes its log into
/// `directory`.
pub fn measure(
    h2load: &H2load,
    workload: Workload,
    plan: Plan,
    servers: &[(Rival, Server)],
    directory: &Path,
    mut progress: impl FnMut(&str),
) -> Vec<Served> {
    let mut results = vec![Served::default(); servers.len()];
    let mut counts = vec![first_count(workload, plan.round_time); servers.len()];
    let mut order: Vec<usize> = (0..servers.len()).collect();
    for round in 0..=plan.rounds {
        let mut line = format!("  round {round}/{}", plan.rounds);
        for &index in &order {
            let (rival, server) = &servers[index];
            let result = &mut results[index];
            if result.gave_up.is_some() {
                continue;
            }
            match visit(h2load, workload, server, counts[index], directory) {
                Ok(visit) => {
                    line += &format!("  {rival} {:.1} us", visit.cpu_us());
                    counts[index] = count(workload, visit.per_second, plan.round_time);
                    if round > 0 {
                        result.add(&visit);
                    }
                }
                Err(error) => result.gave_up = Some(format!("{error:#}")),
            }
        }
        progress(&line);
        order.rotate_left(1.min(servers.len()));
    }
    results
}

fn visit(
    h2load: &H2load,
    workload: Workload,
    server: &Server,
    requests: u64,
    directory: &Path,
) -> Result<Visit> {
    let seen = run(h2load, workload, server, requests, None)?;
    // The first request of each connection is measured alone, and subtracted with the handshake.
    let unpaced = Workload { per_second: None, ..workload };
    let opening = match workload.is_download() {
        true => Run::default(),
        false => run(h2load, unpaced, server, workload.connections as u64, None)?,
    };
    // The log comes from a separate run: h2load writes it request by request, and a server that waits for a slower
    // client spends more CPU on each request.
    let log = directory.join("h2load.log");
    // h2load would append to it.
    File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let logged = run(h2load, workload, server, whole(workload, requests / 2), Some(&log))?;
    let latency_us = h2load::latencies(&log)?;
    ensure!(latency_us.len() == logged.requests, "h2load logs {} requests", latency_us.len());
    Ok(Visit {
        cpu: seen.cpu.saturating_sub(opening.cpu),
        counted: seen.requests - opening.requests,
        per_second: seen.per_second,
        latency_us,
    })
}

/// Opens the connections and makes `requests` requests on them.
fn run(
    h2load: &H2load,
    workload: Workload,
    server: &Server,
    requests: u64,
    log: Option<&Path>,
) -> Result<Run> {
    let mut command = h2load.command(workload.connections, requests);
    command.args(["--groups=X25519", "--tls13-ciphers=TLS_AES_128_GCM_SHA256"]);
    command.arg(format!("--max-concurrent-streams={}", workload.streams));
    if let Some(log) = log {
        command.arg("--log-file").arg(log);
    }
    if let Some(rate) = workload.per_second {
        command.arg(format!("--rps={}", rate / workload.connections as f64));
        // Each connection's clock starts with its handshake. Those of a server that computes handshakes together
        // would all tick at once, and their requests would arrive in bursts that no other server gets.
        command.args(["--rate=1", "--rate-period=7ms"]);
    }
    command.arg(match workload.protocol {
        Protocol::Http1 | Protocol::Tcp => "--h1",
        Protocol::Http2 => "--npn-list=h2",
    });
    command.arg(format!("https://{}{}", server.address, workload.body.path));

    let clock = server.cpu_clock()?;
    let before = clock.settled()?;
    let seen = h2load::run(&mut command, requests)?;
    let cpu = clock.settled().context("the server has ended")?.saturating_sub(before);
    ensure!(seen.body_bytes == requests * workload.body.bytes, "the bodies have an unexpected length");
    Ok(Run { cpu, requests, per_second: seen.per_second })
}

fn first_count(workload: Workload, time: Duration) -> u64 {
    match workload.per_second {
        Some(rate) => count(workload, rate, time),
        None => whole(workload, FIRST_REQUESTS.min(FIRST_BYTES / workload.body.bytes)),
    }
}

fn count(workload: Workload, per_second: f64, time: Duration) -> u64 {
    whole(workload, (workload.per_second.unwrap_or(per_second) * time.as_secs_f64()) as u64)
}

/// Rounds to equal numbers per connection and stream; more than the one request of each connection that is
/// subtracted.
fn whole(workload: Workload, requests: u64) -> u64 {
    let least = if workload.is_download() { 1 } else { workload.in_flight() + 1 };
    requests.max(least).next_multiple_of(workload.in_flight())
}

impl Visit {
    fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.counted as f64
    }
}

impl Served {
    fn add(&mut self, visit: &Visit) {
        let percentile = |percentile| Some(visit.latency_us.value_at_percentile(percentile) as f64);
        self.cpu_us_per_request.push(Some(visit.cpu_us()));
        self.requests_per_second.push(Some(visit.per_second));
        self.server_busy.push(Some(visit.cpu_us() * visit.per_second / 1e6));
        self.p50_us.push(percentile(50.0));
        self.p99_us.push(percentile(99.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_takes_its_time_and_every_connection_has_as_many_requests() {
        let [http1, .., http2, _] = Workload::REQUESTS;
        let time = Duration::from_millis(500);
        assert_eq!(count(http1, 20_000.0, time), 10_016);
        assert_eq!(count(http2, 20_000.0, time), 10_240);
        assert_eq!(count(http2.at(2000.0), 1.0, time), 1024, "the requested rate, not the measured one");
        assert_eq!(count(http1, 1.0, time), 64, "more than those that are taken off");
        assert_eq!(first_count(Workload::DOWNLOADS[0], time), 4);
    }

    #[test]
    fn values_of_a_round() {
        let mut latency_us = Histogram::new(3).unwrap();
        latency_us.record(250).unwrap();
        let mut served = Served::default();
        served.add(&Visit {
            cpu: Duration::from_millis(40),
            counted: 1000,
            per_second: 20_000.0,
            latency_us,
        });
        assert_eq!(served.cpu_us_per_request, [Some(40.0)]);
        assert_eq!(served.server_busy, [Some(0.8)]);
        assert_eq!((served.p50_us[0], served.p99_us[0]), (Some(250.0), Some(250.0)));
    }
}
