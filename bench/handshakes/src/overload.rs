//! Behaviour of a server at four times its capacity, with half of the load from one network.
//!
//! All clients want full handshakes, and give up after three seconds. Returning clients were served before, each from
//! one of a few networks. Strangers come from thousands of networks, attackers from one. A server that does not
//! distinguish clients serves all groups alike.

use std::{fmt, net::Ipv4Addr, thread, time::Duration};

use anyhow::{Context, Result, anyhow};
use quadrille_profile::load::{Load, Outcome, Pace};
use serde::Serialize;

use crate::{
    contestants::{Contestant, Stage},
    memory::Memory,
    scenario::Scenario,
    server::Server,
};

/// Maximum number of connections of all clients: those of four times the capacity until clients give up.
pub const MOST_CONNECTIONS: usize = 12_000;

/// Time after which clients give up.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time after the overload within which service should be as before.
const RECOVERY: Duration = Duration::from_secs(2);
/// Load as a multiple of the capacity: returning clients, strangers, attackers.
const LOADS: [f64; 3] = [0.5, 1.5, 2.0];
/// Number of connections used to measure the capacity.
const BUSY: usize = 64;

/// Results of one server.
#[derive(Clone, Debug, Serialize)]
pub struct Overloaded {
    /// Name of the server.
    pub server: String,
    /// The scenario's short name.
    pub scenario: String,
    /// Handshakes per second in a closed loop.
    pub capacity: f64,
    /// Returning clients at half the capacity, without other load.
    pub before: Clients,
    /// Returning clients under overload.
    pub returning: Clients,
    /// Strangers under overload.
    pub strangers: Clients,
    /// Attackers under overload.
    pub attackers: Clients,
    /// Returning clients at half the capacity, from two seconds after the overload on.
    pub after: Clients,
    /// Resident memory before and after, in KiB.
    pub memory: [u64; 2],
}

/// Results of one group of clients.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Clients {
    /// Fraction of the due connections that the load started, 0 to 1. If it could not keep up, the load was lower
    /// than stated, and the latencies of groups that are not prioritised include its delay.
    pub offered: f64,
    /// Successful handshakes per second.
    pub per_second: f64,
    /// Fraction of all connections that succeeded, 0 to 1.
    pub served: f64,
    /// Fraction of the connections not refused at once that succeeded, 0 to 1.
    pub kept: f64,
    /// Median time in milliseconds from when the connection was due to the end of its handshake.
    pub p50_ms: f64,
    /// 99th percentile of that time.
    pub p99_ms: f64,
}

/// Measures one server.
pub fn measure(
    contestant: &Contestant,
    stage: &Stage<'_>,
    scenario: &Scenario,
    time: Duration,
) -> Result<Overloaded> {
    contestant.version.clone().map_err(|reason| anyhow!(reason))?;
    let server = stage.start(contestant, scenario)?;
    let crowd = Crowd { server: &server, scenario };
    let calm = (time / 6).max(Duration::from_secs(2));
    let capacity = crowd.capacity(calm)?;
    let memory = || Memory::of_tree(server.pid()).map(|memory| memory.rss_kib);
    let rates = LOADS.map(|load| load * capacity);
    let before = crowd.clients(&RETURNING.sources(), rates[0], calm)?;
    let memory_before = memory()?;
    let under = thread::scope(|scope| {
        let crowd = &crowd;
        let start = |network: Networks, rate| {
            scope.spawn(move || {
                if network.is_heeded {
                    come_first();
                }
                crowd.clients(&network.sources(), rate, time)
            })
        };
        let kinds = [(RETURNING, rates[0]), (STRANGERS, rates[1]), (ATTACKERS, rates[2])];
        let running = kinds.map(|(network, rate)| start(network, rate));
        let seen = running.map(|thread| thread.join().map_err(|_| anyhow!("a client has panicked"))?);
        let [returning, strangers, attackers] = seen;
        Ok::<_, anyhow::Error>([returning?, strangers?, attackers?])
    });
    let [returning, strangers, attackers] = under?;
    thread::sleep(RECOVERY);
    let after = crowd.clients(&RETURNING.sources(), rates[0], calm)?;
    Ok(Overloaded {
        server: contestant.rival.to_string(),
        scenario: scenario.id(),
        capacity,
        before,
        returning,
        strangers,
        attackers,
        after,
        memory: [memory_before, memory()?],
    })
}

/// Networks of one group of clients, all of them loopback.
#[derive(Clone, Copy)]
struct Networks {
    second: u8,
    count: u16,
    hosts: u8,
    /// Whether the group's latency is reported.
    is_heeded: bool,
}

const RETURNING: Networks = Networks { second: 10, count: 64, hosts: 2, is_heeded: true };
const STRANGERS: Networks = Networks { second: 20, count: 4096, hosts: 1, is_heeded: false };
const ATTACKERS: Networks = Networks { second: 100, count: 1, hosts: 200, is_heeded: false };

impl Networks {
    /// Returns the source addresses, each in a different network than the previous one if there are several.
    fn sources(self) -> Vec<Ipv4Addr> {
        let address = |network: u16, host| {
            let [above, below] = network.to_be_bytes();
            Ipv4Addr::new(127, self.second + above, below, host)
        };
        (1..=self.hosts).flat_map(|host| (0..self.count).map(move |network| address(network, host))).collect()
    }
}

/// Raises the scheduling priority. In reality clients have machines of their own: a group whose latency is reported
/// must not wait here for others on the same core. Without the privilege it waits.
fn come_first() {
    const NICENESS: i32 = -15;
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        eprintln!("the latency of returning clients includes that of others: {error}");
    }
}

struct Crowd<'a> {
    server: &'a Server,
    scenario: &'a Scenario,
}

impl Crowd<'_> {
    /// Measures handshakes per second with clients always waiting.
    fn capacity(&self, time: Duration) -> Result<f64> {
        let scenario = Scenario { clients: BUSY, ..self.scenario.clone() };
        let load = Load { begin_within: Some(time), ..self.load(&scenario) };
        let seen = load.run().context("the capacity")?;
        Ok(seen.per_second())
    }

    /// Starts this many connections per second from these addresses, whether the server keeps up or not.
    fn clients(&self, sources: &[Ipv4Addr], per_second: f64, time: Duration) -> Result<Clients> {
        let load = Load {
            sources: sources.to_vec(),
            pace: Pace::Open { per_second },
            connections: ((per_second * PATIENCE.as_secs_f64() * 1.2) as usize).clamp(16, MOST_CONNECTIONS),
            begin_within: Some(time),
            ..self.load(self.scenario)
        };
        let seen = load.run()?;
        Ok(Clients::new(&seen, per_second * time.as_secs_f64()))
    }

    fn load(&self, scenario: &Scenario) -> Load {
        let load = scenario.load(self.server.address, u64::MAX, Duration::from_secs(3600));
        Load { connection_timeout: PATIENCE, ..load }
    }
}

impl Clients {
    /// Summarises the results of this many due connections.
    fn new(seen: &Outcome, due: f64) -> Self {
        let late = seen.failures.iter().filter(|(failure, _)| failure.reason == "timed out");
        let late: u64 = late.map(|(_, count)| count).sum();
        let share = |of: u64| if of > 0 { seen.ok as f64 / of as f64 } else { 0.0 };
        let at = |percentile| seen.handshake_us.value_at_percentile(percentile) as f64 / 1e3;
        Self {
            offered: (seen.ok + seen.failed()) as f64 / due,
            per_second: seen.per_second(),
            served: share(seen.ok + seen.failed()),
            kept: share(seen.ok + late),
            p50_ms: at(50.0),
            p99_ms: at(99.0),
        }
    }
}

impl fmt::Display for Overloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, capacity, memory: [memory_before, memory_after], .. } = self;
        let goodput = self.returning.per_second + self.strangers.per_second + self.attackers.per_second;
        writeln!(
            f,
            "{server}: {capacity:.0} handshakes/s; under overload {goodput:.0} ({:.0} %); memory {} -> {} MiB",
            goodput / capacity * 100.0,
            memory_before / 1024,
            memory_after / 1024
        )?;
        let lines = [
            ("  returning, alone", self.before),
            ("  returning", self.returning),
            ("  strangers", self.strangers),
            ("  attackers", self.attackers),
            ("  returning, 2 s later", self.after),
        ];
        for (label, clients) in lines {
            let Clients { offered, per_second, served, kept, p50_ms, p99_ms } = clients;
            writeln!(
                f,
                "{label:<24}{:>5.0} % offered {per_second:>8.0}/s {:>5.1} % served {:>5.1} % of those not refused, p50 {p50_ms:>8.1} ms, p99 {p99_ms:>8.1} ms",
                offered * 100.0,
                served * 100.0,
                kept * 100.0
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_kind_has_networks_of_its_own() {
        let networks = |kind: Networks| -> HashSet<[u8; 3]> {
            let network = |address: Ipv4Addr| [address.octets()[0], address.octets()[1], address.octets()[2]];
            kind.sources().into_iter().map(network).collect()
        };
        let kinds = [RETURNING, STRANGERS, ATTACKERS].map(networks);
        assert_eq!(kinds.each_ref().map(HashSet::len), [64, 4096, 1]);
        assert!(kinds[0].is_disjoint(&kinds[1]) && kinds[1].is_disjoint(&kinds[2]));
        assert!(kinds.iter().flatten().all(|network| network[0] == 127));
    }
}
