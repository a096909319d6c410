//! How much a client may ask for, and its share of the engine: pure decisions, time is an argument.

use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

/// Operations a second: a bucket that holds one second's worth.
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

    /// True if one more operation is within the rate.
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

/// Divides the engine among the clients that want something of it: each may have so many operations there at a time,
/// and what it asks beyond waits in its own connections. So a client that floods stands in nobody's way.
#[derive(Debug)]
pub(super) struct Shares {
    /// Operations in the engine at the same time, of all together.
    window: usize,
    active: AtomicUsize,
}

/// One client's connections that want something.
#[derive(Debug, Default)]
pub(super) struct BusyConnections(AtomicUsize);

impl Shares {
    pub(super) fn new(window: usize) -> Self {
        Self { window, active: AtomicUsize::new(0) }
    }

    /// A connection of this client has something to do.
    pub(super) fn begin(&self, client: &BusyConnections) {
        if client.0.fetch_add(1, Ordering::Relaxed) == 0 {
            self.active.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// It has nothing any more.
    pub(super) fn end(&self, client: &BusyConnections) {
        if client.0.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.active.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// How many operations one connection of this client may have in the engine; at least one, so that every connection
    /// comes on by its own results.
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
        assert_eq!(taken(60_000), 10, "no more than a second is saved");
        assert_eq!(taken(1_000), 0, "time that runs back gives nothing");
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
