//! Cross-check: the same handshakes made by an independent generator, h2load.
//!
//! Both offer the same version, group, cipher suite and request, close each connection after it, and have 32
//! connections in flight. h2load spends more CPU on a handshake than most servers do, so a server with a whole core
//! waits for it. A waiting server does different work than a busy one: it is woken for each handshake, and has fewer
//! private-key operations pending at a time. Therefore the server gets, under both generators, only the fraction of
//! its core with which even h2load can keep it busy ([`Throttle`]). Then both the server's CPU per handshake and its
//! handshakes per second must agree.

use std::{fmt::Display, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};
use nix::unistd::Pid;
use quadrille_profile::load::{Load, TlsVersion};

use crate::{
    cpu::CpuClock,
    h2load::{self, H2load},
    rival::Rival,
    rounds::Plan,
    scenario::Scenario,
    server::Server,
    throttle::{Ration, Throttle},
    upstream::Upstream,
};

const TIME_LIMIT: Duration = Duration::from_secs(60);
/// Requests of h2load in the first round, which determines its rate.
const FIRST_REQUESTS: u64 = 200;
/// Number of warm-up rounds after the first.
const WARM_UP: usize = 1;
/// Fraction of the share with which h2load could keep the server busy: below 1, or the server would wait at times.
const WITHIN_REACH: f64 = 0.5;
/// CPU use under h2load from which on a server is itself the limit.
const BUSY: f64 = 0.93;

/// The server to measure.
struct Target<'a> {
    scenario: &'a Scenario,
    server: &'a Server,
    ration: Ration,
}

/// One generator's round with one server.
struct Visit {
    /// CPU time used by the server.
    cpu: Duration,
    handshakes: u64,
    elapsed: Duration,
    /// Fraction of its core's time that the server got.
    share: f64,
}

/// Measurements of one generator, one value per round.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// CPU of the server, microseconds per handshake.
    pub cpu_us_per_handshake: Vec<Option<f64>>,
    /// Handshakes per second.
    pub handshakes_per_second: Vec<Option<f64>>,
    /// Fraction of its core, or of its share of it, that the server used.
    pub server_busy: Vec<Option<f64>>,
}

/// Measurements of one server by both generators.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Our generator.
    pub ours: Side,
    /// h2load.
    pub theirs: Side,
    /// Fraction of its core's time that the server got, 0 to 1.
    pub share: f64,
    /// Reason that the server left before the last round.
    pub gave_up: Option<String>,
}

impl H2load {
    /// Runs rounds with both generators alternating against each server, which runs on `core`.
    pub fn check(
        &self,
        scenario: &Scenario,
        servers: &[(Rival, Server)],
        core: usize,
        plan: Plan,
        mut progress: impl FnMut(&str),
    ) -> Vec<Checked> {
        let mut results = vec![Checked { share: 1.0, ..Checked::default() }; servers.len()];
        let mut requests = vec![FIRST_REQUESTS; servers.len()];
        for round in 0..=plan.rounds + WARM_UP {
            let mut line = format!("  round {}/{}", round.saturating_sub(WARM_UP), plan.rounds);
            for (((rival, server), result), requests) in servers.iter().zip(&mut results).zip(&mut requests) {
                if result.gave_up.is_some() {
                    continue;
                }
                let ration = Ration { share: result.share, core };
                let target = Target { scenario, server, ration };
                let seen = match round {
                    0 => self.within_reach(&target).map(|share| {
                        result.share = share;
                        None
                    }),
                    _ => self.round(&target, plan.round_time, requests, round % 2 == 0).map(Some),
                };
                match seen {
                    Ok(Some([ours, theirs])) if round > WARM_UP => {
                        result.ours.add(&ours);
                        result.theirs.add(&theirs);
                    }
                    Ok(_) => {}
                    Err(error) => {
                        result.gave_up = Some(format!("{error:#}"));
                        continue;
                    }
                }
                line += &format!("  {rival}");
            }
            progress(&line);
        }
        results
    }

    /// Determines the fraction of its core with which the server is slower than h2load.
    fn within_reach(&self, target: &Target<'_>) -> Result<f64> {
        let seen = self.theirs(target, FIRST_REQUESTS)?;
        let busy = seen.server_busy();
        Ok(if busy < BUSY { WITHIN_REACH * busy } else { 1.0 })
    }

    /// Measures with our generator and with h2load, in either order; `requests` becomes the number that h2load makes
    /// in `time`.
    fn round(
        &self,
        target: &Target<'_>,
        time: Duration,
        requests: &mut u64,
        ours_first: bool,
    ) -> Result<[Visit; 2]> {
        let early = ours_first.then(|| ours(target, time)).transpose()?;
        let theirs = self.theirs(target, *requests)?;
        *requests = count(theirs.per_second(), time);
        Ok([early.map_or_else(|| ours(target, time), Ok)?, theirs])
    }

    /// Runs interleaved rounds of DHE_RSA with TLS 1.2 against each server; returns the reason if it left before the
    /// last one.
    pub fn dhe(
        &self,
        scenario: &Scenario,
        servers: &[(impl Display, Server)],
        plan: Plan,
        mut progress: impl FnMut(&str),
    ) -> Vec<(Side, Option<String>)> {
        let mut results = vec![(Side::default(), None); servers.len()];
        let mut counts = vec![FIRST_REQUESTS; servers.len()];
        for round in 0..=plan.rounds {
            let mut line = format!("  round {round}/{}", plan.rounds);
            for (((name, server), (side, gave_up)), requests) in
                servers.iter().zip(&mut results).zip(&mut counts)
            {
                if gave_up.is_some() {
                    continue;
                }
                let mut command = self.connections(scenario.clients, *requests);
                command
                    .arg("--ciphers=DHE-RSA-AES128-GCM-SHA256")
                    .arg(format!("https://{}/", server.address));
                let visit = server
                    .cpu_clock()
                    .and_then(|clock| counted(server.pid(), &clock, Ration::WHOLE, &mut command, *requests));
                match visit {
                    Ok(visit) => {
                        *requests = count(visit.per_second(), plan.round_time);
                        line += &format!("  {name} {:.0} us", visit.cpu_us());
                        if round > 0 {
                            side.add(&visit);
                        }
                    }
                    Err(error) => *gave_up = Some(format!("{error:#}")),
                }
            }
            progress(&line);
        }
        results
    }

    /// Measures plain HTTP in the same way: a new connection for each request to `upstream`, which runs on the
    /// servers' core.
    pub fn plain_http(&self, upstream: &Upstream, clients: usize, plan: Plan) -> Result<Side> {
        let mut side = Side::default();
        let mut requests = 1000;
        for round in 0..=plan.rounds {
            let mut command = self.connections(clients, requests);
            command.args(["--no-tls-proto", "http/1.1"]).arg(format!("http://{}/", upstream.address));
            let clock = CpuClock::of_trees(&[upstream.pid()])?;
            let visit = counted(upstream.pid(), &clock, Ration::WHOLE, &mut command, requests)?;
            if round > 0 {
                side.add(&visit);
            }
            requests = count(visit.per_second(), plan.round_time);
        }
        Ok(side)
    }

    fn theirs(&self, target: &Target<'_>, count: u64) -> Result<Visit> {
        let Target { scenario, server, ration } = *target;
        let mut command = self.connections(scenario.clients, count);
        command.arg("--groups").arg(&scenario.groups);
        // The version and cipher suite of our generator.
        command.arg(match scenario.version {
            TlsVersion::V1_2 => "--ciphers=ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
            TlsVersion::V1_3 => "--tls13-ciphers=TLS_AES_128_GCM_SHA256",
        });
        command.arg(format!("https://{}/", server.address));
        counted(server.pid(), &server.cpu_clock()?, ration, &mut command, count)
    }

    /// Builds a command that uses a new connection for each request, `clients` of them in flight.
    fn connections(&self, clients: usize, requests: u64) -> Command {
        let mut command = self.command(clients, requests);
        command.args(["--h1", "--header", "connection: close"]);
        command
    }
}

/// Runs h2load and measures the server's CPU time meanwhile.
fn counted(
    server: Pid,
    clock: &CpuClock,
    ration: Ration,
    command: &mut Command,
    requests: u64,
) -> Result<Visit> {
    let before = clock.settled()?;
    let throttle = Throttle::start(server, ration)?;
    let seen = h2load::run(command, requests)?;
    drop(throttle);
    let used = clock.settled().context("the server has ended")?.saturating_sub(before);
    let elapsed = Duration::from_secs_f64(requests as f64 / seen.per_second.max(1e-9));
    Ok(Visit { cpu: used, handshakes: requests, elapsed, share: ration.share })
}

fn ours(target: &Target<'_>, time: Duration) -> Result<Visit> {
    let Target { scenario, server, ration } = *target;
    let load = Load {
        begin_within: Some(time),
        server_closes: true,
        ..scenario.load(server.address, u64::MAX, TIME_LIMIT)
    };
    let clock = server.cpu_clock()?;
    let before = clock.settled()?;
    let throttle = Throttle::start(server.pid(), ration)?;
    let seen = load.run()?;
    drop(throttle);
    let used = clock.settled().context("the server has ended")?.saturating_sub(before);
    ensure!(seen.ok > 0 && seen.failed() == 0, "{}", seen.failure().unwrap_or_else(|| "too slow".to_owned()));
    ensure!(
        seen.tickets == 0,
        "not comparable: it issues sessions with resumption off too, and h2load resumes them"
    );
    Ok(Visit { cpu: used, handshakes: seen.ok, elapsed: seen.elapsed, share: ration.share })
}

impl Side {
    fn add(&mut self, visit: &Visit) {
        self.cpu_us_per_handshake.push(Some(visit.cpu_us()));
        self.handshakes_per_second.push(Some(visit.per_second()));
        self.server_busy.push(Some(visit.server_busy()));
    }
}

impl Visit {
    /// Returns the server's CPU time per handshake.
    fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.handshakes as f64
    }

    fn per_second(&self) -> f64 {
        self.handshakes as f64 / self.elapsed.as_secs_f64()
    }

    fn server_busy(&self) -> f64 {
        self.cpu.as_secs_f64() / (self.elapsed.as_secs_f64() * self.share)
    }
}

fn count(per_second: f64, time: Duration) -> u64 {
    ((per_second * time.as_secs_f64()) as u64).max(64)
}
