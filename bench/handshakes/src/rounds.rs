//! CPU time per handshake, in interleaved rounds: A B C D, B C D A, ... so that disturbances of the machine affect
//! all servers alike.

use quadrille_profile::load::{Client, Outcome};
use std::{fmt::Display, time::Duration};

use anyhow::{Context, Result, ensure};

use crate::{
    scenario::{Resumption, Scenario},
    server::Server,
};

/// Amount of measurement.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Interleaved rounds.
    pub rounds: usize,
    /// Maximum number of handshakes of each server in each round.
    pub handshakes: u64,
    /// Maximum time of each server in each round; handshakes in progress are finished.
    pub round_time: Duration,
}

/// Time limit of a round, even if the server hangs.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// Minimum fraction of offered sessions that must be resumed; below it the server did different work than requested.
const LEAST_RESUMED: f64 = 0.99;

/// Results of one server in all rounds of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// One value per round; `None` where no handshake succeeded.
    pub cpu_us_per_handshake: Vec<Option<f64>>,
    /// One value per round; `None` where no handshake succeeded.
    pub handshakes_per_second: Vec<Option<f64>>,
    /// Fraction of its core that the server used, one value per round.
    pub server_busy: Vec<Option<f64>>,
    /// Median time from connect to the end of the handshake, microseconds, one value per round.
    pub p50_us: Vec<Option<f64>>,
    /// 99th percentile of that time.
    pub p99_us: Vec<Option<f64>>,
    /// All rounds together, as seen by the client.
    pub seen: Outcome,
    /// Reason that the server left before the last round.
    pub gave_up: Option<String>,
}

impl Plan {
    /// Returns the same rounds, shorter, for a single client that waits for each handshake.
    pub fn shortened(self) -> Self {
        Self { handshakes: (self.handshakes / 4).max(1), round_time: self.round_time / 2, ..self }
    }

    /// Returns twice the time in the same number of rounds, for workloads that open their connections anew in each:
    /// that then weighs less.
    pub fn longer(self) -> Self {
        Self { round_time: self.round_time * 2, ..self }
    }

    /// Returns the same total time in twice as many rounds, for two that are compared in each: the less time between
    /// their turns, the rarer the machine changes its speed in between.
    pub fn finer(self) -> Self {
        Self { rounds: self.rounds * 2, round_time: self.round_time / 2, ..self }
    }

    /// Returns rounds of at least this number of seconds.
    pub fn lasting(self, seconds: f64) -> Self {
        Self { round_time: self.round_time.max(Duration::from_secs_f64(seconds)), ..self }
    }

    /// Warms up and measures `servers` in turn; `progress` gets a line about each round. Results are in the order of
    /// `servers`.
    pub fn measure(
        self,
        scenario: &Scenario,
        servers: &[(impl Display, Server)],
        mut progress: impl FnMut(&str),
    ) -> Result<Vec<Measured>> {
        let mut results = vec![Measured::default(); servers.len()];
        let clients = self.clients(scenario, servers)?;
        let mut order: Vec<usize> = (0..servers.len()).collect();
        for round in 0..=self.rounds {
            let mut line = match round {
                0 => "  warm-up  ".to_owned(),
                _ => format!("  round {round}/{}", self.rounds),
            };
            for &index in &order {
                let (name, server) = &servers[index];
                let result = &mut results[index];
                if result.gave_up.is_some() {
                    continue;
                }
                match self.round(scenario, server, &clients[index], round == 0) {
                    Ok((cpu, seen)) => {
                        let us = cpu_us_per_handshake(cpu, &seen);
                        line +=
                            &us.map_or_else(|| format!("  {name} -"), |us| format!("  {name} {us:.0} us"));
                        if round > 0 {
                            result.add(cpu, &seen);
                        }
                    }
                    Err(error) => result.gave_up = Some(format!("{error:#}")),
                }
            }
            progress(&line);
            order.rotate_left(1.min(servers.len()));
        }
        Ok(results)
    }

    /// Creates one client per server, which keeps that server's sessions from round to round.
    fn clients<Name>(self, scenario: &Scenario, servers: &[(Name, Server)]) -> Result<Vec<Client>> {
        let client = |(_, server): &(Name, Server)| {
            Ok(scenario.load(server.address, self.handshakes, TIME_LIMIT).client()?)
        };
        servers.iter().map(client).collect()
    }

    fn round(
        self,
        scenario: &Scenario,
        server: &Server,
        client: &Client,
        warm_up: bool,
    ) -> Result<(Duration, Outcome)> {
        let mut load = scenario.load(server.address, self.handshakes, TIME_LIMIT);
        // Enough to fill caches, and to give every connection a session.
        load.begin_within = Some(if warm_up { self.round_time / 3 } else { self.round_time });
        let clock = server.cpu_clock()?;
        let before = clock.settled()?;
        let seen = load.run_as(client)?;
        let used = clock.settled().context("the server has ended")?.saturating_sub(before);
        if !warm_up {
            right_kind(scenario.resumption, &seen)?;
        }
        Ok((used, seen))
    }
}

/// Checks that the handshakes were of the requested kind, as seen by the client.
fn right_kind(asked: Resumption, seen: &Outcome) -> Result<()> {
    match asked {
        Resumption::Off => {
            ensure!(seen.resumed == 0, "{} handshakes were resumed: expected full handshakes", seen.resumed);
        }
        Resumption::On => {
            let enough = seen.resumed as f64 >= LEAST_RESUMED * seen.ok as f64;
            ensure!(enough, "only {} of {} handshakes were resumed", seen.resumed, seen.ok);
        }
    }
    Ok(())
}

impl Measured {
    fn add(&mut self, cpu: Duration, seen: &Outcome) {
        let when_any = |value: f64| (seen.ok > 0).then_some(value);
        self.cpu_us_per_handshake.push(cpu_us_per_handshake(cpu, seen));
        self.handshakes_per_second.push(when_any(seen.per_second()));
        self.server_busy.push(when_any(cpu.as_secs_f64() / seen.elapsed.as_secs_f64()));
        self.p50_us.push(when_any(seen.handshake_us.value_at_percentile(50.0) as f64));
        self.p99_us.push(when_any(seen.handshake_us.value_at_percentile(99.0) as f64));
        self.seen.merge(seen);
    }
}

fn cpu_us_per_handshake(cpu: Duration, seen: &Outcome) -> Option<f64> {
    (seen.ok > 0).then(|| cpu.as_secs_f64() * 1e6 / seen.ok as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_shared_out_over_the_handshakes_that_succeeded() {
        let seen = Outcome { ok: 2000, ..Outcome::default() };
        let us = cpu_us_per_handshake(Duration::from_millis(700), &seen).unwrap();
        assert!((us - 350.0).abs() < 1e-9);
        assert_eq!(cpu_us_per_handshake(Duration::from_millis(700), &Outcome::default()), None);
    }

    #[test]
    fn handshakes_of_the_wrong_kind_do_not_count() {
        let seen = |resumed| Outcome { ok: 1000, resumed, ..Outcome::default() };
        assert!(right_kind(Resumption::Off, &seen(0)).is_ok());
        assert!(right_kind(Resumption::Off, &seen(1)).is_err());
        assert!(right_kind(Resumption::On, &seen(990)).is_ok());
        assert!(right_kind(Resumption::On, &seen(900)).is_err());
    }
}
