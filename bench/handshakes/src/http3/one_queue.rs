//! Checks whether private-key operations of TCP and QUIC are computed together: compares the mean batch of clients of
//! one kind with that of an equal number of clients of both kinds.
//!
//! The batch size is bounded by the number of clients that wait for a key operation. By Little's law that number is a
//! half's handshake rate times the wait, which is equal for all clients of one queue. A QUIC client does more work
//! between two of its operations than a TCP client, so half of the clients are less than half of those that wait.
//! Therefore a third crowd has enough QUIC clients for both halves to reach the same rate.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};
use quadrille_profile::load as tcp;
use serde::Serialize;

use super::load::Load;
use crate::{rounds::Plan, scenario::Scenario, server::Server, statistics::Spread};

/// Number of clients in either half.
const HALF: usize = 16;
const TIMEOUT: Duration = Duration::from_secs(5);

/// Mean number of operations per batch, over all rounds.
#[derive(Clone, Debug, Serialize)]
pub struct OneQueue {
    /// All clients use TCP.
    pub by_tcp: Spread,
    /// Half of the clients use QUIC.
    pub by_both: Spread,
    /// Fraction of QUIC handshakes in the second crowd.
    pub quic_share: Spread,
    /// Ratio of the second to the first, in the same round.
    pub ratio: Spread,
    /// Half of the handshakes use QUIC.
    pub by_even: Spread,
    /// Number of QUIC clients needed for that.
    pub even_clients: Spread,
    /// Ratio of the third to the first, in the same round.
    pub even_ratio: Spread,
}

/// Counters of computed operations and batches.
#[derive(Clone, Copy)]
struct Batches {
    operations: f64,
    batches: f64,
}

/// Measurement of one crowd.
struct Seen {
    mean_batch: f64,
    first_half: u64,
    other_half: u64,
}

/// Measurements of all rounds, one value per round.
#[derive(Default)]
struct Values {
    by_tcp: Vec<Option<f64>>,
    by_both: Vec<Option<f64>>,
    quic_share: Vec<Option<f64>>,
    by_even: Vec<Option<f64>>,
    even_clients: Vec<Option<f64>>,
}

/// Measures all crowds in interleaved rounds.
pub fn measure(
    plan: Plan,
    server: &Server,
    scenario: &Scenario,
    mut progress: impl FnMut(&str),
) -> Result<OneQueue> {
    let crowd = Crowd { plan, server, scenario };
    let mut values = Values::default();
    let mut even_clients = HALF;
    for round in 0..=plan.rounds {
        let tcp = crowd.seen(|| crowd.by_tcp())?;
        let both = crowd.seen(|| crowd.by_quic(HALF))?;
        let even = crowd.seen(|| crowd.by_quic(even_clients))?;
        let share = both.other_half as f64 / (both.first_half + both.other_half).max(1) as f64;
        progress(&format!(
            "  round {round}/{}  TCP {:.2}  TCP and QUIC {:.2} ({:.0} % by QUIC)  {even_clients} by QUIC {:.2}",
            plan.rounds,
            tcp.mean_batch,
            both.mean_batch,
            share * 100.0,
            even.mean_batch
        ));
        if round > 0 {
            values.by_tcp.push(Some(tcp.mean_batch));
            values.by_both.push(Some(both.mean_batch));
            values.quic_share.push(Some(share));
            values.by_even.push(Some(even.mean_batch));
            values.even_clients.push(Some(even_clients as f64));
        }
        let wanted = even_clients as f64 * even.first_half as f64 / even.other_half.max(1) as f64;
        even_clients = (wanted.round() as usize).clamp(HALF, 4 * HALF);
    }
    values.spread().context("there were no rounds")
}

impl Values {
    fn spread(&self) -> Option<OneQueue> {
        let spread = |values: &[Option<f64>]| Spread::of_values(values.iter().copied().flatten());
        Some(OneQueue {
            by_tcp: spread(&self.by_tcp)?,
            by_both: spread(&self.by_both)?,
            quic_share: spread(&self.quic_share)?,
            ratio: Spread::of_ratios(&self.by_both, &self.by_tcp)?,
            by_even: spread(&self.by_even)?,
            even_clients: spread(&self.even_clients)?,
            even_ratio: Spread::of_ratios(&self.by_even, &self.by_tcp)?,
        })
    }
}

struct Crowd<'a> {
    plan: Plan,
    server: &'a Server,
    scenario: &'a Scenario,
}

impl Crowd<'_> {
    /// Runs TCP clients in a closed loop, and the other half as given. Both halves run for the same time: a half that
    /// continued alone would have small batches.
    fn seen(&self, other_half: impl FnOnce() -> Result<u64>) -> Result<Seen> {
        let before = batches(self.server.beside)?;
        let (first_half, other_half) = thread::scope(|scope| {
            let first_half = scope.spawn(|| self.by_tcp());
            let other_half = other_half()?;
            let first_half = first_half.join().map_err(|_| anyhow!("a client has panicked"))??;
            anyhow::Ok((first_half, other_half))
        })?;
        let after = batches(self.server.beside)?;
        let (operations, batches) = (after.operations - before.operations, after.batches - before.batches);
        ensure!(batches > 0.0, "no batches were computed");
        Ok(Seen { mean_batch: operations / batches, first_half, other_half })
    }

    fn by_tcp(&self) -> Result<u64> {
        let scenario = Scenario { clients: HALF, ..self.scenario.clone() };
        let load = scenario.load(self.server.address, u64::MAX, Duration::from_secs(60));
        let seen = tcp::Load { begin_within: Some(self.plan.round_time), ..load }.run()?;
        ensure!(seen.failed() == 0, "handshakes failed: {:?}", seen.failure());
        Ok(seen.ok)
    }

    fn by_quic(&self, clients: usize) -> Result<u64> {
        let load = Load {
            target: self.server.address,
            clients,
            connections: usize::MAX,
            begin_within: Some(self.plan.round_time),
            requests: 1,
            streams: 1,
            path: "/".to_owned(),
            body: 2,
            groups: self.scenario.groups.clone(),
        };
        Ok(load.run()?.handshakes)
    }
}

/// Returns the gateway's counters over all kinds of batches.
fn batches(admin: SocketAddr) -> Result<Batches> {
    let text = metrics(admin).context("cannot read the gateway's metrics")?;
    let sum = |name: &str| -> f64 {
        let lines = text.lines().filter_map(|line| line.strip_prefix(name));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    };
    Ok(Batches {
        operations: sum("quadrille_key_batch_size_sum"),
        batches: sum("quadrille_key_batch_size_count"),
    })
}

fn metrics(admin: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&admin, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
