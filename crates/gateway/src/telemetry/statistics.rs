//! What has been counted, listener by listener and upstream by upstream: for front ends whose users know it by other
//! names than those of `/metrics`.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Everything that is counted, as it is now. Counts begin when what is counted appears in the configuration, and go on
/// over changes that keep it.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// In the configuration's order.
    pub listeners: Vec<ListenerStatistics>,
    /// By name.
    pub upstreams: Vec<UpstreamStatistics>,
    /// How many private-key operations went to the backend together: `batch_sizes[n]` batches of `n` operations; the
    /// last counts all that were larger.
    pub batch_sizes: Vec<u64>,
}

/// Of a listener.
#[derive(Clone, Debug, Default)]
pub struct ListenerStatistics {
    /// Its name in the configuration, or else its address.
    pub name: String,
    /// Where it listens, as configured.
    pub address: String,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that are open.
    pub active: u64,
    /// Connections closed because no chain accepts them.
    pub no_chain: u64,
    /// Connections closed because too many handshakes were in flight.
    pub overflow: u64,
    /// Connections that came to nothing before it was known which chain they belong to, others than these.
    pub broken: u64,
    /// In the configuration's order, the one for the others last.
    pub chains: Vec<ChainStatistics>,
}

/// Of a chain.
#[derive(Clone, Debug, Default)]
pub struct ChainStatistics {
    /// Its name in the configuration; may be empty.
    pub name: String,
    /// Connections that have begun to be served.
    pub connections: u64,
    /// TLS handshakes that succeeded.
    pub handshakes: u64,
    /// Those of them that resumed a session.
    pub resumed: u64,
    /// Handshakes that failed, all reasons together.
    pub failures: u64,
    /// Those of them in which the client took too long.
    pub timeouts: u64,
    /// Those in which the client left.
    pub closed: u64,
    /// Those in which the private-key operation failed or was refused.
    pub key_failures: u64,
    /// Those in which a client certificate was missing.
    pub no_certificate: u64,
    /// Those in which a client certificate leads to no CA, has expired or is revoked.
    pub bad_certificate: u64,
    /// Those in which a client certificate carries none of the names.
    pub bad_name: u64,
    /// Those in which a client certificate is none of those that are pinned.
    pub bad_pin: u64,
    /// HTTP requests answered, by class of status: `[0]` without an answer, `[2]` 200 to 299.
    pub requests: [u64; 6],
}

/// Of an upstream.
#[derive(Clone, Debug, Default)]
pub struct UpstreamStatistics {
    /// Its name.
    pub name: String,
    /// Servers.
    pub servers: usize,
    /// Healthy servers, as far as is known.
    pub healthy: usize,
    /// Requests, or connections in TCP mode.
    pub requests: u64,
    /// Requests under way, or connections that are open in TCP mode.
    pub active: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Connections that could not be made.
    pub connect_failures: u64,
    /// Attempts that took too long.
    pub timeouts: u64,
    /// Requests for which no server was healthy.
    pub no_server: u64,
    /// Requests, or connections in TCP mode, beyond the upstream's limits.
    pub overflow: u64,
    /// How often a server was left out for what became of its requests.
    pub ejections: u64,
    /// Servers that are left out.
    pub left_out: usize,
    /// Answers by class of status; `[0]` counts requests without one.
    pub responses: [u64; 6],
}

/// A count.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts by class of status.
#[derive(Debug, Default)]
pub(crate) struct Classes([Count; 6]);

impl Classes {
    pub(crate) fn add(&self, status: u16) {
        self.0[usize::from(status / 100).min(5)].add();
    }

    pub(crate) fn get(&self) -> [u64; 6] {
        std::array::from_fn(|class| self.0[class].get())
    }
}

#[derive(Debug, Default)]
pub(crate) struct ListenerCounters {
    pub(crate) accepted: Count,
    pub(crate) active: Count,
    pub(crate) no_chain: Count,
    pub(crate) overflow: Count,
    pub(crate) broken: Count,
}

#[derive(Debug, Default)]
pub(crate) struct ChainCounters {
    pub(crate) connections: Count,
    pub(crate) handshakes: Count,
    pub(crate) resumed: Count,
    pub(crate) failures: Count,
    pub(crate) timeouts: Count,
    pub(crate) closed: Count,
    pub(crate) key_failures: Count,
    pub(crate) no_certificate: Count,
    pub(crate) bad_certificate: Count,
    pub(crate) bad_name: Count,
    pub(crate) bad_pin: Count,
    pub(crate) requests: Classes,
}

impl ChainCounters {
    pub(crate) fn read(&self, name: &str) -> ChainStatistics {
        ChainStatistics {
            name: name.to_owned(),
            connections: self.connections.get(),
            handshakes: self.handshakes.get(),
            resumed: self.resumed.get(),
            failures: self.failures.get(),
            timeouts: self.timeouts.get(),
            closed: self.closed.get(),
            key_failures: self.key_failures.get(),
            no_certificate: self.no_certificate.get(),
            bad_certificate: self.bad_certificate.get(),
            bad_name: self.bad_name.get(),
            bad_pin: self.bad_pin.get(),
            requests: self.requests.get(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct UpstreamCounters {
    pub(crate) requests: Count,
    pub(crate) active: Count,
    pub(crate) retries: Count,
    pub(crate) connect_failures: Count,
    pub(crate) timeouts: Count,
    pub(crate) no_server: Count,
    pub(crate) overflow: Count,
    pub(crate) ejections: Count,
    pub(crate) responses: Classes,
}

/// Larger batches count as the last.
const BATCHES: usize = 129;

static BATCH_SIZES: [AtomicU64; BATCHES] = [const { AtomicU64::new(0) }; BATCHES];

/// A batch went to the backend.
pub(crate) fn batch(operations: usize) {
    BATCH_SIZES[operations.min(BATCHES - 1)].fetch_add(1, Ordering::Relaxed);
}

/// By size.
pub(crate) fn batch_sizes() -> Vec<u64> {
    BATCH_SIZES.iter().map(|count| count.load(Ordering::Relaxed)).collect()
}

/// Private-key operations of this process, and the CPU that went into them.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyWork {
    /// Operations computed.
    pub operations: u64,
    /// CPU spent on them.
    pub cpu: Duration,
    /// CPU saved by computing some of them together: what those would have cost one at a time, less what they took.
    pub saved: Duration,
}

static OPERATIONS: AtomicU64 = AtomicU64::new(0);
static CPU: AtomicU64 = AtomicU64::new(0);
static SAVED: AtomicU64 = AtomicU64::new(0);

/// So many operations have cost this, in nanoseconds of CPU, and saved that.
pub(crate) fn key_work_done(operations: usize, cpu: u64, saved: u64) {
    for (sum, done) in [(&OPERATIONS, operations as u64), (&CPU, cpu), (&SAVED, saved)] {
        sum.fetch_add(done, Ordering::Relaxed);
    }
}

/// What has been computed since the process began.
pub fn key_work() -> KeyWork {
    let time = |sum: &AtomicU64| Duration::from_nanos(sum.load(Ordering::Relaxed));
    KeyWork { operations: OPERATIONS.load(Ordering::Relaxed), cpu: time(&CPU), saved: time(&SAVED) }
}
