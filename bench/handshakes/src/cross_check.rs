//! The same handshakes made by a generator that is not ours: h2load, of nghttp2, on OpenSSL.
//!
//! Both ask for the same version, group, cipher suite and request, close each connection after it, and have 32 connections in
//! flight. h2load spends more on a handshake than most servers do, so that the server waits for it; and a server that waits
//! spends more on each handshake, for it is woken for each one. Therefore ours wastes as much time on each connection as it takes to
//! be as slow as h2load: then the server's CPU per handshake must agree.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use nix::unistd::Pid;
use quadrille_profile::load::{Load, TlsVersion};

use crate::{cpu::CpuClock, rival::Rival, scenario::Scenario, server::Server, upstream::Upstream};

const TIME_LIMIT: Duration = Duration::from_secs(60);
/// Requests of h2load in the first round, which finds out how many it makes.
const FIRST_REQUESTS: u64 = 200;
/// Rounds that do not count, after the first.
const WARM_UP: usize = 1;
/// Ours wastes no more on a connection, in seconds.
const MOST_WORK: f64 = 0.01;

/// How fast h2load is, for the next round.
#[derive(Clone, Copy)]
struct Speed {
    /// Requests that it makes in the time of a round.
    requests: u64,
    /// What ours wastes on each connection to be as slow, in seconds.
    client_work: f64,
}

/// What one generator saw, one value a round.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// CPU of the server, microseconds per handshake.
    pub cpu_us_per_handshake: Vec<Option<f64>>,
    /// Handshakes a second.
    pub handshakes_per_second: Vec<Option<f64>>,
    /// How much of its core the server used.
    pub server_busy: Vec<Option<f64>>,
}

/// Both generators against one server.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Our generator.
    pub ours: Side,
    /// h2load.
    pub theirs: Side,
    /// Why the server left before the last round.
    pub gave_up: Option<String>,
}

/// h2load, and its version.
#[derive(Clone, Debug)]
pub struct H2load {
    program: PathBuf,
    /// As it says itself.
    pub version: String,
}

impl H2load {
    /// Looks for it.
    pub fn find(program: &Path) -> Result<Self> {
        let output = Command::new(program)
            .arg("--version")
            .output()
            .with_context(|| format!("{} does not run (package nghttp2-client)", program.display()))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        ensure!(version.starts_with("h2load"), "{} is not h2load", program.display());
        Ok(Self { program: program.into(), version })
    }

    /// Rounds with both generators in turn against each server.
    pub fn check(
        &self,
        scenario: &Scenario,
        servers: &[(Rival, Server)],
        rounds: usize,
        round_time: Duration,
        mut progress: impl FnMut(&str),
    ) -> Vec<Checked> {
        let mut results = vec![Checked::default(); servers.len()];
        let mut speeds = vec![Speed { requests: FIRST_REQUESTS, client_work: 0.0 }; servers.len()];
        for round in 0..=rounds + WARM_UP {
            let mut line = format!("  round {}/{rounds}", round.saturating_sub(WARM_UP));
            for (((rival, server), result), speed) in servers.iter().zip(&mut results).zip(&mut speeds) {
                if result.gave_up.is_some() {
                    continue;
                }
                // The first rounds warm up, and find out how slow h2load is.
                let mut discarded = Checked::default();
                let place = if round <= WARM_UP { &mut discarded } else { &mut *result };
                match self.round(scenario, server, round_time, speed, round % 2 == 0, place) {
                    Ok(()) => line += &format!("  {rival}"),
                    Err(error) => result.gave_up = Some(format!("{error:#}")),
                }
            }
            progress(&line);
        }
        results
    }

    /// Both generators, in either order, and what it says about their speed.
    fn round(
        &self,
        scenario: &Scenario,
        server: &Server,
        time: Duration,
        speed: &mut Speed,
        ours_first: bool,
        checked: &mut Checked,
    ) -> Result<()> {
        if ours_first {
            ours(scenario, server, time, speed.client_work, &mut checked.ours)?;
        }
        self.theirs(scenario, server, speed.requests, &mut checked.theirs)?;
        if !ours_first {
            ours(scenario, server, time, speed.client_work, &mut checked.ours)?;
        }
        let rate = |side: &Side| side.handshakes_per_second.last().copied().flatten();
        if let (Some(ours), Some(theirs)) = (rate(&checked.ours), rate(&checked.theirs)) {
            speed.requests = count(theirs, time);
            speed.client_work = (speed.client_work + 1.0 / theirs - 1.0 / ours).clamp(0.0, MOST_WORK);
        }
        Ok(())
    }

    /// Plain HTTP in the same way: a new connection for each request to `upstream`, which runs on the servers' core.
    pub fn plain_http(
        &self,
        upstream: &Upstream,
        clients: usize,
        rounds: usize,
        round_time: Duration,
    ) -> Result<Side> {
        let mut side = Side::default();
        let mut discarded = Side::default();
        let mut requests = 1000;
        for round in 0..=rounds {
            let mut command = self.command(clients, requests);
            command.args(["--no-tls-proto", "http/1.1"]).arg(format!("http://{}/", upstream.address));
            let place = if round == 0 { &mut discarded } else { &mut side };
            counted(upstream.pid(), &mut command, requests, place)?;
            let rate = place.handshakes_per_second.last().copied().flatten().unwrap_or(1000.0);
            requests = count(rate, round_time);
        }
        Ok(side)
    }

    fn theirs(&self, scenario: &Scenario, server: &Server, count: u64, side: &mut Side) -> Result<()> {
        let mut command = self.command(scenario.clients, count);
        command.arg("--groups").arg(&scenario.groups);
        // The same version and cipher suite as ours.
        command.arg(match scenario.version {
            TlsVersion::V1_2 => "--ciphers=ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
            TlsVersion::V1_3 => "--tls13-ciphers=TLS_AES_128_GCM_SHA256",
        });
        command.arg(format!("https://{}/", server.address));
        counted(server.pid(), &mut command, count, side)
    }

    /// A new connection for each request, `clients` of them at once.
    fn command(&self, clients: usize, requests: u64) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--h1", "--threads", "1", "--header", "connection: close"]);
        command.args(["--clients", &clients.to_string(), "--requests", &requests.to_string()]);
        command
    }
}

/// Runs h2load and counts what the server spent meanwhile.
fn counted(server: Pid, h2load: &mut Command, requests: u64, side: &mut Side) -> Result<()> {
    let clock = CpuClock::of_tree(server).context("the server has gone")?;
    let before = clock.settled()?;
    let output = h2load.output().context("h2load does not run")?;
    let used = clock.settled().context("the server has ended")?.saturating_sub(before);
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(seen) = parse(&text) else {
        bail!("h2load says: {}", text.lines().last().unwrap_or("nothing"));
    };
    ensure!(seen.succeeded == requests, "h2load: {} of {requests} requests succeeded", seen.succeeded);
    side.add(used, requests, Duration::from_secs_f64(requests as f64 / seen.per_second.max(1e-9)));
    Ok(())
}

fn ours(
    scenario: &Scenario,
    server: &Server,
    time: Duration,
    client_work: f64,
    side: &mut Side,
) -> Result<()> {
    let load = Load {
        begin_within: Some(time),
        server_closes: true,
        client_work: Duration::from_secs_f64(client_work),
        ..scenario.load(server.address, u64::MAX, TIME_LIMIT)
    };
    let clock = CpuClock::of_tree(server.pid()).context("the server has gone")?;
    let before = clock.settled()?;
    let seen = load.run()?;
    let used = clock.settled().context("the server has ended")?.saturating_sub(before);
    ensure!(seen.ok > 0 && seen.failed() == 0, "{}", seen.failure().unwrap_or_else(|| "too slow".to_owned()));
    ensure!(
        seen.tickets == 0,
        "not comparable: it hands out sessions with resumption off too, and h2load comes back with them"
    );
    side.add(used, seen.ok, seen.elapsed);
    Ok(())
}

impl Side {
    fn add(&mut self, cpu: Duration, handshakes: u64, elapsed: Duration) {
        self.cpu_us_per_handshake.push(Some(cpu.as_secs_f64() * 1e6 / handshakes as f64));
        self.handshakes_per_second.push(Some(handshakes as f64 / elapsed.as_secs_f64()));
        self.server_busy.push(Some(cpu.as_secs_f64() / elapsed.as_secs_f64()));
    }
}

fn count(per_second: f64, time: Duration) -> u64 {
    ((per_second * time.as_secs_f64()) as u64).max(64)
}

#[derive(Debug, PartialEq)]
struct Seen {
    per_second: f64,
    succeeded: u64,
}

/// What h2load prints at its end.
fn parse(text: &str) -> Option<Seen> {
    let finished = text.lines().find_map(|line| line.strip_prefix("finished in "))?;
    let per_second = finished.split(", ").nth(1)?.strip_suffix(" req/s")?.parse().ok()?;
    let requests = text.lines().find_map(|line| line.strip_prefix("requests: "))?;
    let succeeded = requests.split(", ").find_map(|part| part.strip_suffix(" succeeded"))?.parse().ok()?;
    Some(Seen { per_second, succeeded })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_h2load_prints() {
        let text = "starting benchmark...\nfinished in 6.07s, 329.68 req/s, 0B/s\n\
                    requests: 2000 total, 2000 started, 2000 done, 1999 succeeded, 1 failed, 0 errored, 0 timeout\n";
        assert_eq!(parse(text), Some(Seen { per_second: 329.68, succeeded: 1999 }));
        assert_eq!(parse("starting benchmark...\n"), None);
    }
}
