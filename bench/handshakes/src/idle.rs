//! Memory of a server that holds many idle TLS connections.

use std::{fmt, thread, time::Duration};

use anyhow::{Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::{
    contestants::{Contestant, Stage},
    memory::Memory,
    scenario::Scenario,
};

/// Warm-up connections, so that one-time allocations of a server do not count.
const WARM_UP: u64 = 500;
/// Connections in flight while the idle ones are opened.
const IN_FLIGHT: usize = 32;
const OPENING_TIME: Duration = Duration::from_secs(120);
const SETTLING_TIME: Duration = Duration::from_secs(1);
/// Files that this process and the servers need in addition to the connections.
const SPARE_FILES: u64 = 2_500;

/// State in which a connection idles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// After the handshake alone.
    Handshake,
    /// After the handshake and one request, kept alive.
    Request,
}

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Handshake => "after the handshake",
            Self::Request => "after one request",
        })
    }
}

/// Measurement of one server.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Idle connections open when memory was read.
    pub open: usize,
    /// Growth of the proportional set size, KiB per connection.
    pub pss_kib: f64,
    /// Growth of the resident set size, KiB per connection.
    pub rss_kib: f64,
}

/// Raises the limit of open files of this process, and so of the servers it starts, as `connections` need it: if the
/// system allows, for servers that hold a second connection behind each. Returns the number of connections such a
/// server can hold.
pub fn allow_files(connections: u64) -> Result<usize> {
    let (one_side, both_sides) = (connections + SPARE_FILES, 2 * connections + SPARE_FILES);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let mut limit = soft;
    if soft < both_sides {
        limit = if setrlimit(Resource::RLIMIT_NOFILE, both_sides, hard.max(both_sides)).is_ok() {
            both_sides
        } else {
            setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
            hard
        };
    }
    ensure!(limit >= one_side, "{connections} connections need {one_side} open files; the limit is {limit}");
    Ok(usize::try_from(connections.min((limit - SPARE_FILES) / 2)).unwrap_or(usize::MAX))
}

/// Starts a server, opens the number of idle connections of `stage`, and returns the memory cost of each.
pub fn measure(contestant: &Contestant, stage: &Stage<'_>, scenario: &Scenario) -> Result<Held> {
    let connections = stage.connections;
    let scenario = Scenario { clients: IN_FLIGHT, ..scenario.clone() };
    let server = stage.start(contestant, &scenario)?;

    scenario.load(server.address, WARM_UP, OPENING_TIME).run()?;
    thread::sleep(SETTLING_TIME);
    let before = Memory::of_tree(server.pid())?;

    let (seen, mut held) = scenario.load(server.address, connections as u64, OPENING_TIME).hold()?;
    thread::sleep(SETTLING_TIME);
    let after = Memory::of_tree(server.pid())?;

    let open = held.still_open();
    let failure = || seen.failure().unwrap_or_else(|| "the server closed the others".into());
    ensure!(open * 100 >= connections * 99, "{open} of {connections} stayed open: {}", failure());
    let per_connection = |before: u64, after: u64| (after as f64 - before as f64) / open as f64;
    Ok(Held {
        open,
        pss_kib: per_connection(before.pss_kib, after.pss_kib),
        rss_kib: per_connection(before.rss_kib, after.rss_kib),
    })
}
