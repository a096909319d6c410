//! Statistics by listener and upstream, for front ends that publish them under names other than those of `/metrics`.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// All current counts. A count starts when its object is added to the configuration, and continues across changes
/// that keep the object.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Listeners in the configuration's order.
    pub listeners: Vec<ListenerStatistics>,
    /// Upstreams by name.
    pub upstreams: Vec<UpstreamStatistics>,
    /// Number of batches of private-key operations by size: `batch_sizes[n]` batches of `n` operations; the last
    /// entry counts all larger ones.
    pub batch_sizes: Vec<u64>,
}

/// Statistics of a listener.
#[derive(Clone, Debug, Default)]
pub struct ListenerStatistics {
    /// Name in the configuration, or else its address.
    pub name: String,
    /// Address as configured.
    pub address: String,
    /// Connections accepted.
    pub accepted: u64,
    /// Open connections.
    pub active: u64,
    /// Connections closed because no chain matches.
    pub no_chain: u64,
    /// Connections closed because too many handshakes were in flight.
    pub overflow: u64,
    /// Connections that failed for other reasons before their chain was determined.
    pub broken: u64,
    /// Chains in the configuration's order, the default chain last.
    pub chains: Vec<ChainStatistics>,
}

/// Statistics of a filter chain.
#[derive(Clone, Debug, Default)]
pub struct ChainStatistics {
    /// Name in the configuration; may be empty.
    pub name: String,
    /// Connections that the chain has started to serve.
    pub connections: u64,
    /// TLS handshakes that succeeded.
    pub handshakes: u64,
    /// Successful handshakes that resumed a session.
    pub resumed: u64,
    /// Failed handshakes, for all reasons.
    pub failures: u64,
    /// Failed handshakes in which the client was too slow.
    pub timeouts: u64,
    /// Failed handshakes in which the client disconnected.
    pub closed: u64,
    /// Failed handshakes in which the private-key operation failed or was rejected.
    pub key_failures: u64,
    /// Failed handshakes in which a client certificate was missing.
    pub no_certificate: u64,
    /// Failed handshakes in which a client certificate was not issued by a trusted CA, or has expired or is revoked.
    pub bad_certificate: u64,
    /// Failed handshakes in which no name of the client certificate is accepted.
    pub bad_name: u64,
    /// Failed handshakes in which the client certificate does not match a pin.
    pub bad_pin: u64,
    /// HTTP requests by status class: `[0]` without a response, `[2]` 200 to 299.
    pub requests: [u64; 6],
}

/// Statistics of an upstream.
#[derive(Clone, Debug, Default)]
pub struct UpstreamStatistics {
    /// Name of the upstream.
    pub name: String,
    /// Number of endpoints.
    pub servers: usize,
    /// Number of healthy endpoints, as far as known.
    pub healthy: usize,
    /// Requests, or connections in TCP mode.
    pub requests: u64,
    /// Requests in progress, or open connections in TCP mode.
    pub active: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Connections that could not be established.
    pub connect_failures: u64,
    /// Attempts that timed out.
    pub timeouts: u64,
    /// Requests without a healthy endpoint.
    pub no_server: u64,
    /// Requests, or connections in TCP mode, that exceeded the upstream's limits.
    pub overflow: u64,
    /// Ejections of endpoints by outlier detection.
    pub ejections: u64,
    /// Endpoints that are ejected.
    pub left_out: usize,
    /// Responses by status class; `[0]` counts requests without a response.
    pub responses: [u64; 6],
}

/// A counter.
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

/// Counters by status class.
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

/// Number of batch sizes; larger batches count as the last.
const BATCHES: usize = 129;

static BATCH_SIZES: [AtomicU64; BATCHES] = [const { AtomicU64::new(0) }; BATCHES];

/// Counts a batch.
pub(crate) fn batch(operations: usize) {
    BATCH_SIZES[operations.min(BATCHES - 1)].fetch_add(1, Ordering::Relaxed);
}

/// Returns the number of batches by size.
pub(crate) fn batch_sizes() -> Vec<u64> {
    BATCH_SIZES.iter().map(|count| count.load(Ordering::Relaxed)).collect()
}

/// Private-key operations of this process, and their CPU time.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyWork {
    /// Computed operations.
    pub operations: u64,
    /// CPU time spent on them.
    pub cpu: Duration,
    /// CPU time saved by batching: the cost of separate operations, less the actual cost.
    pub saved: Duration,
}

static OPERATIONS: AtomicU64 = AtomicU64::new(0);
static CPU: AtomicU64 = AtomicU64::new(0);
static SAVED: AtomicU64 = AtomicU64::new(0);

/// Adds operations with their CPU time and the saved CPU time, in nanoseconds.
pub(crate) fn key_work_done(operations: usize, cpu: u64, saved: u64) {
    for (sum, done) in [(&OPERATIONS, operations as u64), (&CPU, cpu), (&SAVED, saved)] {
        sum.fetch_add(done, Ordering::Relaxed);
    }
}

/// Returns the totals since the process started.
pub fn key_work() -> KeyWork {
    let time = |sum: &AtomicU64| Duration::from_nanos(sum.load(Ordering::Relaxed));
    KeyWork { operations: OPERATIONS.load(Ordering::Relaxed), cpu: time(&CPU), saved: time(&SAVED) }
}
