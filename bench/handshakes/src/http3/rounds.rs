//! CPU time of HTTP/3, in interleaved rounds.

use std::{fmt, time::Duration};

use anyhow::{Context, Result};

use super::{client::Done, load::Load};
use crate::{rival::Rival, rounds::Plan, scenario::KeyKind, server::Server, upstream::Body};

/// HTTP/3 workloads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// Full handshakes with one request each, served by the server itself.
    Handshakes(KeyKind),
    /// Requests on open connections, served by an upstream.
    Requests,
    /// Requests with long bodies, served by an upstream.
    Downloads,
}

impl Workload {
    /// All workloads.
    pub const ALL: [Self; 4] = [
        Self::Handshakes(KeyKind::Rsa2048),
        Self::Handshakes(KeyKind::P256),
        Self::Requests,
        Self::Downloads,
    ];

    /// Returns the type of the server's key.
    pub fn key(self) -> KeyKind {
        match self {
            Self::Handshakes(key) => key,
            Self::Requests | Self::Downloads => KeyKind::P256,
        }
    }

    /// Returns whether an upstream serves the requests.
    pub fn is_passed_on(self) -> bool {
        !matches!(self, Self::Handshakes(_))
    }

    fn load(self, server: &Server, groups: &str) -> Load {
        let load = Load {
            target: server.address,
            clients: 32,
            connections: 32,
            begin_within: None,
            requests: 1,
            streams: 8,
            path: "/".to_owned(),
            body: 2,
            groups: groups.to_owned(),
        };
        let of_body = |body: Body| Load { path: body.path.to_owned(), body: body.bytes, ..load.clone() };
        match self {
            Self::Handshakes(_) => Load { connections: 64, streams: 1, ..load },
            Self::Requests => Load { requests: 64, ..of_body(Body::SMALL) },
            Self::Downloads => Load { clients: 4, connections: 4, streams: 1, ..of_body(Body::LARGE) },
        }
    }

    /// Returns a load that takes `time` at the rate of `seen`.
    fn load_of(self, first: Load, seen: Done, time: Duration) -> Load {
        let times = (time.as_secs_f64() / seen.time.as_secs_f64()).max(1.0);
        match self {
            Self::Handshakes(_) => Load { connections: (first.connections as f64 * times) as usize, ..first },
            Self::Requests | Self::Downloads => {
                Load { requests: (first.requests as f64 * times) as u64, ..first }
            }
        }
    }

    /// Returns the number of units done.
    fn count(self, done: Done) -> f64 {
        match self {
            Self::Handshakes(_) => done.handshakes as f64,
            Self::Requests => done.requests as f64,
            Self::Downloads => (done.requests * Body::LARGE.bytes) as f64 / f64::from(1 << 20),
        }
    }

    /// Returns the unit.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Handshakes(_) => "handshake",
            Self::Requests => "request",
            Self::Downloads => "MiB",
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handshakes(key) => write!(f, "HTTP/3, full handshake and a request, {key}, 32 clients"),
            Self::Requests => write!(f, "HTTP/3, requests, {}, 32 connections of 8 streams", Body::SMALL),
            Self::Downloads => write!(f, "HTTP/3, downloads, {}, 4 connections", Body::LARGE),
        }
    }
}

/// Results of one server, one value per round.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// CPU time of the server, microseconds per handshake, request or MiB.
    pub cpu_us: Vec<Option<f64>>,
    /// Handshakes, requests or MiB per second.
    pub per_second: Vec<Option<f64>>,
    /// Reason that the server left before the last round.
    pub gave_up: Option<String>,
}

/// Warms up and measures `servers` in turn.
pub fn measure(
    workload: Workload,
    groups: &str,
    plan: Plan,
    servers: &[(Rival, Server)],
    mut progress: impl FnMut(&str),
) -> Vec<Served> {
    let mut results = vec![Served::default(); servers.len()];
    let mut loads: Vec<_> = servers.iter().map(|(_, server)| workload.load(server, groups)).collect();
    let mut order: Vec<usize> = (0..servers.len()).collect();
    for round in 0..=plan.rounds {
        let mut line = format!("  round {round}/{}", plan.rounds);
        for &index in &order {
            let ((rival, server), result) = (&servers[index], &mut results[index]);
            if result.gave_up.is_some() {
                continue;
            }
            match visit(server, &loads[index]) {
                Ok((done, _)) if round == 0 => {
                    loads[index] = workload.load_of(loads[index].clone(), done, plan.round_time);
                }
                Ok((done, cpu)) => {
                    let each = cpu.as_secs_f64() * 1e6 / workload.count(done);
                    line += &format!("  {rival} {each:.1} us");
                    result.cpu_us.push(Some(each));
                    result.per_second.push(Some(workload.count(done) / done.time.as_secs_f64()));
                }
                Err(error) => result.gave_up = Some(format!("{error:#}")),
            }
        }
        progress(&line);
        order.rotate_left(1.min(servers.len()));
    }
    results
}

fn visit(server: &Server, load: &Load) -> Result<(Done, Duration)> {
    let clock = server.cpu_clock()?;
    let before = clock.settled()?;
    let done = load.run()?;
    let cpu = clock.settled().context("the server has ended")?.saturating_sub(before);
    Ok((done, cpu))
}
