//! How fast, and at what price, one large body goes through a server: the same one from the same upstream for all.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use quadrille_profile::load::{Load, Outcome};

use crate::{
    rival::Rival,
    scenario::Scenario,
    server::Server,
    upstream::{BULK_BYTES, BULK_PATH},
};

/// Downloads at the same time.
const CONNECTIONS: usize = 4;
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// What one server did.
#[derive(Clone, Debug, Default)]
pub struct Transfer {
    /// Gigabytes (10^9) of body a second, one value a round.
    pub gb_per_second: Vec<Option<f64>>,
    /// CPU seconds of the server for each gigabyte, one value a round.
    pub cpu_seconds_per_gb: Vec<Option<f64>>,
    /// How much of its core the server used, one value a round.
    pub server_busy: Vec<Option<f64>>,
    /// All rounds together.
    pub seen: Outcome,
    /// Why the server left before the last round.
    pub gave_up: Option<String>,
}

/// Interleaved rounds of `downloads` bodies each, after one to warm up.
pub fn measure(
    scenario: &Scenario,
    servers: &[(Rival, Server)],
    rounds: usize,
    downloads: u64,
    mut progress: impl FnMut(&str),
) -> Vec<Transfer> {
    let mut results = vec![Transfer::default(); servers.len()];
    let mut order: Vec<usize> = (0..servers.len()).collect();
    for round in 0..=rounds {
        let mut line = format!("  round {round}/{rounds}");
        for &index in &order {
            let (rival, server) = &servers[index];
            let result = &mut results[index];
            if result.gave_up.is_some() {
                continue;
            }
            match one_round(scenario, server, downloads) {
                Ok((cpu, seen)) if round > 0 => {
                    result.add(cpu, &seen);
                    let last = result.gb_per_second.last().copied().flatten().unwrap_or_default();
                    line += &format!("  {rival} {last:.2} GB/s");
                }
                Ok(_) => {}
                Err(error) => result.gave_up = Some(format!("{error:#}")),
            }
        }
        progress(&line);
        order.rotate_left(1.min(servers.len()));
    }
    results
}

fn one_round(scenario: &Scenario, server: &Server, downloads: u64) -> Result<(Duration, Outcome)> {
    let load = Load {
        connections: CONNECTIONS,
        path: BULK_PATH.to_owned(),
        connection_timeout: TIME_LIMIT,
        ..scenario.load(server.address, downloads, TIME_LIMIT)
    };
    let clock = server.cpu_clock()?;
    let before = clock.settled()?;
    let seen = load.run()?;
    let used = clock.settled().context("the server has ended")?.saturating_sub(before);
    ensure!(seen.ok == downloads, "{}", seen.failure().unwrap_or_else(|| "too slow".to_owned()));
    ensure!(seen.received >= downloads * BULK_BYTES, "the bodies were too short");
    Ok((used, seen))
}

impl Transfer {
    fn add(&mut self, cpu: Duration, seen: &Outcome) {
        let gigabytes = (seen.ok * BULK_BYTES) as f64 / 1e9;
        let seconds = seen.elapsed.as_secs_f64();
        self.gb_per_second.push(Some(gigabytes / seconds));
        self.cpu_seconds_per_gb.push(Some(cpu.as_secs_f64() / gigabytes));
        self.server_busy.push(Some(cpu.as_secs_f64() / seconds));
        self.seen.merge(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn price_and_speed_of_a_transfer() {
        let mut transfer = Transfer::default();
        let seen = Outcome { ok: 8, elapsed: Duration::from_secs(1), ..Outcome::default() };
        transfer.add(Duration::from_millis(500), &seen);
        let gigabytes = (8 * BULK_BYTES) as f64 / 1e9;
        assert!((transfer.gb_per_second[0].unwrap() - gigabytes).abs() < 1e-9);
        assert!((transfer.cpu_seconds_per_gb[0].unwrap() - 0.5 / gigabytes).abs() < 1e-9);
    }
}
