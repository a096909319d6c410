//! Fair shares: the latency of a well-behaved client beside misbehaving ones, and the memory that these make a server
//! hold.
//!
//! ```text
//!  well_behaved: 200 requests a second, 8 connections ──┐
//!                                                       ├──TLS──> the server ──HTTP/1.1──> origin
//!  misbehaviour: one kind at a time, from one network ──┘
//! ```
//!
//! Each pair of a server and a misbehaviour starts with a fresh process. The clients and the origin share the clients'
//! core; the well-behaved client and its part of the origin run at a higher priority.

mod http2;
mod misbehaviour;
mod origin;
mod priority;
mod tls;
mod well_behaved;

use std::{
    fmt,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Result, anyhow};
use nix::unistd::Pid;
use serde::Serialize;

use self::{
    misbehaviour::Attack,
    well_behaved::{Seen, WellBehaved},
};
pub use self::{misbehaviour::Misbehaviour, origin::Origin};
use crate::{
    contestants::{Contestant, Stage},
    memory::Memory,
    scenario::Scenario,
};

/// Number of connections that each server must be able to hold.
pub const CONNECTIONS: usize = 4096;

/// Time for a misbehaviour to build up before the well-behaved client is measured.
const BUILD_UP: Duration = Duration::from_secs(1);
/// Time after the misbehaviour within which memory should be as before.
const RECOVERY: Duration = Duration::from_secs(3);
const SAMPLING: Duration = Duration::from_millis(50);
/// Resident memory of the server at which the misbehaviour ends, so that the machine goes on.
const MOST_MEMORY_KIB: u64 = 4 << 20;

/// Results of one server beside one misbehaviour.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the server.
    pub server: String,
    /// Name of the misbehaviour.
    pub misbehaviour: &'static str,
    /// The well-behaved client alone.
    pub alone: Latency,
    /// The well-behaved client beside the misbehaviour.
    pub beside: Latency,
    /// Number of times that the server ended a misbehaving connection.
    pub ended: u64,
    /// Resident memory of the server before, at its peak, and after the recovery, in KiB.
    pub memory_kib: [u64; 3],
}

/// Latency of the well-behaved client's requests, from when each was due.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Number of requests.
    pub requests: u64,
    /// Number of requests without a complete response with status 200.
    pub failed: u64,
    /// Median, in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile, in milliseconds.
    pub p99_ms: f64,
}

/// Measures one server beside one misbehaviour, for `time` each alone and beside it.
pub fn measure(
    contestant: &Contestant,
    stage: &Stage<'_>,
    scenario: &Scenario,
    misbehaviour: &Misbehaviour,
    time: Duration,
) -> Result<Row> {
    contestant.version.clone().map_err(|reason| anyhow!(reason))?;
    let server = stage.start(contestant, scenario)?;
    let mut client = WellBehaved::open(server.address)?;
    // The first requests open connections to the origin.
    client.run(time / 4)?;
    let alone = client.run(time)?;
    let before = resident(server.pid())?;
    let (stop, ended) = (AtomicBool::new(false), AtomicU64::new(0));
    let (beside, ended, peak) = thread::scope(|scope| {
        let attack = Attack::start(scope, misbehaviour, server.address, &stop, &ended);
        let watched = scope.spawn(|| peak(server.pid(), &stop));
        thread::sleep(BUILD_UP);
        let beside = client.run(time);
        stop.store(true, Ordering::Relaxed);
        let peak = watched.join().map_err(|_| anyhow!("the memory's thread has panicked"))?;
        Ok::<_, anyhow::Error>((beside?, attack.ended(), peak))
    })?;
    thread::sleep(RECOVERY);
    Ok(Row {
        server: contestant.rival.to_string(),
        misbehaviour: misbehaviour.name,
        alone: Latency::of(&alone),
        beside: Latency::of(&beside),
        ended,
        memory_kib: [before, peak.max(before), resident(server.pid())?],
    })
}

/// Returns the maximum of the resident memory until `stop`, which it sets at [`MOST_MEMORY_KIB`].
fn peak(server: Pid, stop: &AtomicBool) -> u64 {
    let mut most = 0;
    while !stop.load(Ordering::Relaxed) {
        most = most.max(resident(server).unwrap_or_default());
        if most >= MOST_MEMORY_KIB {
            stop.store(true, Ordering::Relaxed);
        }
        thread::sleep(SAMPLING);
    }
    most
}

fn resident(server: Pid) -> Result<u64> {
    Memory::of_tree(server).map(|memory| memory.rss_kib)
}

impl Latency {
    fn of(seen: &Seen) -> Self {
        let at = |percentile| seen.latency_us.value_at_percentile(percentile) as f64 / 1e3;
        let requests = seen.latency_us.len() + seen.failed;
        Self { requests, failed: seen.failed, p50_ms: at(50.0), p99_ms: at(99.0) }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}, {:.1}", self.p50_ms, self.p99_ms)
    }
}

impl Row {
    /// Head of the table whose lines are rows.
    pub const HEAD: &'static str = "| misbehaving clients | server | p50, p99 alone, ms | p50, p99 beside, ms | ratio of p99 | failed | memory MiB: before, peak, after | closed |\n|---|---|---|---|---|---|---|---|";
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, peak, after] = self.memory_kib.map(|kib| kib / 1024);
        write!(
            f,
            "| {} | {} | {} | {} | {:.1} | {} of {} | {before}, {peak}, {after} | {} |",
            self.misbehaviour,
            self.server,
            self.alone,
            self.beside,
            self.beside.p99_ms / self.alone.p99_ms,
            self.beside.failed,
            self.beside.requests,
            self.ended
        )
    }
}
