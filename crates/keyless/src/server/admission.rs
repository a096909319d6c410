//! Rate limits, and each client's share of the engine: pure decisions, time is an argument.

use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

/// Token bucket of operations, which holds one second's worth.
#[derive(Debug)]
pub(super) struct Bucket {
    rate: f64,
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    pub(super) fn new(now: Instant, rate: NonZeroUsize) -> Self {
        let rate = rate.get() as f64;
        Self { rate, tokens: rate, filled: now }
    }

    /// Takes a token. Returns whether one more operation is within the rate.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * self.rate).min(self.rate);
        self.filled = now;
        let enough = self.tokens >= 1.0;
        if enough {
            self.tokens -= 1.0;
        }
        enough
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }
}

/// Divides the engine among the active clients: each may have a number of operations there at a time, and further
/// requests wait in its own connections. A client that floods therefore does not obstruct others.
#[derive(Debug)]
pub(super) struct Shares {
    /// Maximum number of operations in the engine, of all clients together.
    window: usize,
    active: AtomicUsize,
}

/// Number of active connections of one client.
#[derive(Debug, Default)]
pub(super) struct BusyConnections(AtomicUsize);

impl Shares {
    pub(super) fn new(window: usize) -> Self {
        Self { window, active: AtomicUsize::new(0) }
    }

    /// Records that a connection of this client has become active.
    pub(super) fn begin(&self, client: &BusyConnections) {
        if client.0.fetch_add(1, Ordering::Relaxed) == 0 {
            self.active.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records that the connection has become idle.
    pub(super) fn end(&self, client: &BusyConnections) {
        if client.0.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.active.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Number of operations that one connection of this client may have in the engine; at least one, so that every
    /// connection makes progress by its own results.
    pub(super) fn per_connection(&self, client: &BusyConnections) -> usize {
        let clients = self.active.load(Ordering::Relaxed).max(1);
        let connections = client.0.load(Ordering::Relaxed).max(1);
        (self.window / clients / connections).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bucket, BusyConnections, Shares};
    use std::{
        num::NonZeroUsize,
        time::{Duration, Instant},
    };

    #[test]
    fn a_rate_is_kept_and_a_second_may_be_saved() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start, NonZeroUsize::new(10).unwrap());
        let mut taken = |ms| (0..100).filter(|_| bucket.take(start + Duration::from_millis(ms))).count();
        assert_eq!(taken(0), 10, "a full bucket");
        assert_eq!(taken(0), 0);
        assert_eq!(taken(300), 3);
        assert_eq!(taken(60_000), 10, "no more than one second's worth is saved");
        assert_eq!(taken(1_000), 0, "time that runs backwards adds no tokens");
    }

    #[test]
    fn a_flood_of_connections_gets_one_clients_share() {
        let shares = Shares::new(64);
        let (flood, other) = (BusyConnections::default(), BusyConnections::default());
        shares.begin(&other);
        assert_eq!(shares.per_connection(&other), 64, "alone");
        for _ in 0..4 {
            shares.begin(&flood);
        }
        assert_eq!((shares.per_connection(&other), shares.per_connection(&flood)), (32, 8));
        for _ in 0..1000 {
            shares.begin(&flood);
        }
        assert_eq!((shares.per_connection(&other), shares.per_connection(&flood)), (32, 1));
        for _ in 0..1004 {
            shares.end(&flood);
        }
        assert_eq!(shares.per_connection(&other), 64);
    }
}
