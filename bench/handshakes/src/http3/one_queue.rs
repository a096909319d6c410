//! Whether the private-key operations of TCP and QUIC are computed together: the mean batch of clients of one kind beside
//! that of as many clients, half of whom are of the other.

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

/// Clients of either half.
const HALF: usize = 16;
const TIMEOUT: Duration = Duration::from_secs(5);

/// Operations in a batch, on average, in all rounds.
#[derive(Clone, Debug, Serialize)]
pub struct OneQueue {
    /// All clients by TCP.
    pub by_tcp: Spread,
    /// Half of them by QUIC.
    pub by_both: Spread,
    /// The second as a part of the first, in the same round.
    pub ratio: Spread,
}

/// What has been computed until a moment.
#[derive(Clone, Copy)]
struct Batches {
    operations: f64,
    batches: f64,
}

/// Interleaved rounds of both crowds.
pub fn measure(
    plan: Plan,
    server: &Server,
    scenario: &Scenario,
    mut progress: impl FnMut(&str),
) -> Result<OneQueue> {
    let mut crowd = Crowd { plan, server, scenario, quic_connections: HALF * 8 };
    let (mut by_tcp, mut by_both) = (Vec::new(), Vec::new());
    for round in 0..=plan.rounds {
        let tcp = crowd.mean_batch(|crowd| crowd.by_tcp())?;
        let both = crowd.mean_batch(Crowd::by_quic)?;
        progress(&format!("  round {round}/{}  TCP {tcp:.2}  TCP and QUIC {both:.2}", plan.rounds));
        if round > 0 {
            by_tcp.push(Some(tcp));
            by_both.push(Some(both));
        }
    }
    let spread = |values: &[Option<f64>]| Spread::of_values(values.iter().copied().flatten());
    let found = spread(&by_tcp).zip(spread(&by_both)).zip(Spread::of_ratios(&by_both, &by_tcp));
    let ((by_tcp, by_both), ratio) = found.context("there were no rounds")?;
    Ok(OneQueue { by_tcp, by_both, ratio })
}

struct Crowd<'a> {
    plan: Plan,
    server: &'a Server,
    scenario: &'a Scenario,
    /// What takes about a round's time.
    quic_connections: usize,
}

impl Crowd<'_> {
    /// Half of the clients come by TCP, and again and again; so does the other half, by what is asked for.
    fn mean_batch(&mut self, other_half: impl FnOnce(&mut Self) -> Result<()> + Send) -> Result<f64> {
        let before = batches(self.server.beside)?;
        let first_half = Crowd { ..*self };
        thread::scope(|scope| {
            let first_half = scope.spawn(move || first_half.by_tcp());
            other_half(self)?;
            first_half.join().map_err(|_| anyhow!("a client has panicked"))?
        })?;
        let after = batches(self.server.beside)?;
        let (operations, batches) = (after.operations - before.operations, after.batches - before.batches);
        ensure!(batches > 0.0, "nothing was computed in batches");
        Ok(operations / batches)
    }

    fn by_tcp(&self) -> Result<()> {
        let scenario = Scenario { clients: HALF, ..self.scenario.clone() };
        let load = scenario.load(self.server.address, u64::MAX, Duration::from_secs(60));
        let seen = tcp::Load { begin_within: Some(self.plan.round_time), ..load }.run()?;
        ensure!(seen.failed() == 0, "handshakes have failed: {:?}", seen.failure());
        Ok(())
    }

    fn by_quic(&mut self) -> Result<()> {
        let load = Load {
            target: self.server.address,
            clients: HALF,
            connections: self.quic_connections,
            requests: 1,
            streams: 1,
            path: "/".to_owned(),
            body: 2,
            groups: self.scenario.groups.clone(),
        };
        let times = self.plan.round_time.as_secs_f64() / load.run()?.time.as_secs_f64().max(1e-3);
        self.quic_connections = ((self.quic_connections as f64 * times) as usize).max(HALF);
        Ok(())
    }
}

/// What the gateway has computed, in all its batches of any kind.
fn batches(admin: SocketAddr) -> Result<Batches> {
    let text = metrics(admin).context("cannot ask the gateway for its metrics")?;
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
