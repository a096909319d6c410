//! Fair shares: the latency of a well-behaved client beside misbehaving ones, and the memory that these make a server
//! hold.
//!
//! ```text
//!  well_behaved: 200 requests a second, 8 connections ──┐            ┌── HTTP/1.1 or HTTP/2 ──> origin
//!                                                       ├──> server ─┤
//!  misbehaviour: one kind at a time, from one network ──┘            └── with filters ──> authorization, mirror
//! ```
//!
//! Each pair of a server and a misbehaviour starts with a fresh process. The clients and the origin share the clients'
//! core; the well-behaved client and its part of the origin run at a higher priority.

mod misbehaviour;
mod origin;
mod priority;
mod row;
mod tls;
mod well_behaved;

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, ensure};
use nix::unistd::Pid;

use self::{
    misbehaviour::{Attack, Counts},
    well_behaved::{Amount, WellBehaved},
};
pub use self::{
    misbehaviour::{Misbehaviour, all as all_kinds},
    origin::Origin,
    row::{Latency, Row, Table},
};
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
/// Time within which a misbehaving connection must open where requests are counted, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures one server beside one misbehaviour, for `time` each alone and beside it.
pub fn measure(
    contestant: &Contestant,
    stage: &Stage<'_>,
    scenario: &Scenario,
    misbehaviour: Misbehaviour,
    time: Duration,
) -> Result<Row> {
    contestant.version.clone().map_err(|reason| anyhow!(reason))?;
    let server = stage.start(contestant, scenario)?;
    let mut client = WellBehaved::open(server.address)?;
    // The first requests open connections to the origin.
    client.run(Amount::Time(time / 4))?;
    let alone = client.run(Amount::Time(time))?;
    let before = resident(server.pid())?;
    let (stop, counts) = (AtomicBool::new(false), Counts::default());
    let (beside, peak) = thread::scope(|scope| {
        let attack = Attack::start(scope, misbehaviour, server.address, &stop, &counts);
        let watched = scope.spawn(|| peak(server.pid(), &stop));
        thread::sleep(BUILD_UP);
        let beside = client.run(Amount::Time(time));
        stop.store(true, Ordering::Relaxed);
        let peak = watched.join().map_err(|_| anyhow!("the memory's thread has panicked"))?;
        attack.join();
        Ok::<_, anyhow::Error>((beside?, peak))
    })?;
    thread::sleep(RECOVERY);
    Ok(Row {
        server: contestant.rival.to_string(),
        misbehaviour: misbehaviour.name,
        origin: stage.behind.origin,
        filters: stage.behind.filters.is_some(),
        alone: Latency::of(&alone),
        beside: Latency::of(&beside),
        opened: counts.opened(),
        ended: counts.ended(),
        memory_kib: [before, peak.max(before), resident(server.pid())?],
    })
}

/// Makes `requests` requests on each connection of the well-behaved client beside a misbehaviour, one after another
/// and without a limit of time that a slow machine could exceed. Returns how many of them failed.
///
/// # Errors
///
/// When the well-behaved client cannot connect, or no misbehaving client can.
pub fn failures_beside(server: SocketAddr, misbehaviour: Misbehaviour, requests: u32) -> Result<u64> {
    let mut client = WellBehaved::open(server)?;
    let (stop, counts) = (AtomicBool::new(false), Counts::default());
    let beside = thread::scope(|scope| {
        let attack = Attack::start(scope, misbehaviour, server, &stop, &counts);
        let outcome = wait_for_connections(&counts).and_then(|()| client.run(Amount::Requests(requests)));
        stop.store(true, Ordering::Relaxed);
        attack.join();
        outcome
    })?;
    Ok(beside.failed)
}

/// Waits until a misbehaving connection is open.
fn wait_for_connections(counts: &Counts) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while counts.opened() == 0 {
        ensure!(Instant::now() < deadline, "no misbehaving client could connect");
        thread::sleep(SAMPLING);
    }
    Ok(())
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
