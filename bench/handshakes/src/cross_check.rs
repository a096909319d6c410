//! The same handshakes made by a generator that is not ours, h2load.
//!
//! Both ask for the same version, group, cipher suite and request, close each connection after it, and have 32
//! connections in flight. h2load spends more on a handshake than most servers do, so that a server with a whole core
//! waits for it; and a server that waits does other work than a busy one: it is woken for each handshake, and has fewer
//! private-key operations at hand at a time. Therefore the server gets, under both generators, only so much of its core
//! that even h2load can keep it busy ([`Throttle`]). Then both the server's CPU per handshake and its handshakes a
//! second must agree.

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
/// Requests of h2load in the first round, which finds out how many it makes.
const FIRST_REQUESTS: u64 = 200;
/// Rounds that do not count, after the first.
const WARM_UP: usize = 1;
/// The server gets this part of the time that h2load could keep it busy: less than all, or it would wait now and then.
const WITHIN_REACH: f64 = 0.5;
/// A server that uses so much of its core under h2load is its own limit.
const BUSY: f64 = 0.93;

/// Whom to visit.
struct Target<'a> {
    scenario: &'a Scenario,
    server: &'a Server,
    ration: Ration,
}

/// One generator's round with one server.
struct Visit {
    /// What the server used.
    cpu: Duration,
    handshakes: u64,
    elapsed: Duration,
    /// Part of its core's time that it got.
    share: f64,
}

/// What one generator saw, one value a round.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// CPU of the server, microseconds per handshake.
    pub cpu_us_per_handshake: Vec<Option<f64>>,
    /// Handshakes a second.
    pub handshakes_per_second: Vec<Option<f64>>,
    /// How much of its core, or of the part that it was given, the server used.
    pub server_busy: Vec<Option<f64>>,
}

/// Both generators against one server.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Our generator.
    pub ours: Side,
    /// h2load.
    pub theirs: Side,
    /// Part of its core's time that the server got, 0 to 1.
    pub share: f64,
    /// Why the server left before the last round.
    pub gave_up: Option<String>,
}

impl H2load {
    /// Rounds with both generators in turn against each server, which runs on `core`.
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

    /// The part of its core with which the server is slower than h2load.
    fn within_reach(&self, target: &Target<'_>) -> Result<f64> {
        let seen = self.theirs(target, FIRST_REQUESTS)?;
        let busy = seen.server_busy();
        Ok(if busy < BUSY { WITHIN_REACH * busy } else { 1.0 })
    }

    /// What ours saw and what h2load saw, in either order; `requests` becomes what h2load makes in `time`.
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

    /// Interleaved rounds of DHE_RSA with TLS 1.2 against each server; and why it left before the last one.
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

    /// Plain HTTP in the same way: a new connection for each request to `upstream`, which runs on the servers' core.
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
        // The same version and cipher suite as ours.
        command.arg(match scenario.version {
            TlsVersion::V1_2 => "--ciphers=ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
            TlsVersion::V1_3 => "--tls13-ciphers=TLS_AES_128_GCM_SHA256",
        });
        command.arg(format!("https://{}/", server.address));
        counted(server.pid(), &server.cpu_clock()?, ration, &mut command, count)
    }

    /// A new connection for each request, `clients` of them at once.
    fn connections(&self, clients: usize, requests: u64) -> Command {
        let mut command = self.command(clients, requests);
        command.args(["--h1", "--header", "connection: close"]);
        command
    }
}

/// Runs h2load and counts what the server spent meanwhile.
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
        "not comparable: it hands out sessions with resumption off too, and h2load comes back with them"
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
    /// Of the server, per handshake.
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
