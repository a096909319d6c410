//! Results of a load.

use super::{connection::Connection, failure::Failure, negotiated::Negotiated};
use hdrhistogram::Histogram;
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Latencies are recorded from 1 us to one minute, to three significant digits.
const LONGEST_US: u64 = 60_000_000;
const DIGITS: u8 = 3;
/// Maximum number of distinct failures.
const KINDS: usize = 64;

/// Counts and latencies of a load, as seen by the client.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Connections that got all their responses.
    pub ok: u64,
    /// Number of these that the server resumed.
    pub resumed: u64,
    /// Connections that offered a session, resumed or not.
    pub offered: u64,
    /// Sessions and tickets issued by the server.
    pub tickets: u64,
    /// Failed connections by kind.
    pub failures: BTreeMap<Failure, u64>,
    /// Time from connect to the end of the handshake, in microseconds; in an open loop, from when the connection was
    /// due.
    pub handshake_us: Histogram<u64>,
    /// Time from the same start to the last byte of the last response.
    pub exchange_us: Histogram<u64>,
    /// Number of connections by negotiated parameters.
    pub negotiated: BTreeMap<Negotiated, u64>,
    /// TCP bytes received from the server.
    pub received: u64,
    /// TCP bytes sent to the server.
    pub sent: u64,
    /// Duration of the load.
    pub elapsed: Duration,
}

/// Counters that can be read while a load runs.
#[derive(Debug, Default)]
pub struct Live {
    /// Connections that got all their responses.
    pub ok: AtomicU64,
    /// Number of these that were resumed.
    pub resumed: AtomicU64,
    /// Connections that failed.
    pub failed: AtomicU64,
}

impl Default for Outcome {
    fn default() -> Self {
        Self {
            ok: 0,
            resumed: 0,
            offered: 0,
            tickets: 0,
            failures: BTreeMap::new(),
            handshake_us: histogram(),
            exchange_us: histogram(),
            negotiated: BTreeMap::new(),
            received: 0,
            sent: 0,
            elapsed: Duration::ZERO,
        }
    }
}

impl Outcome {
    /// Returns the number of successful connections with a full handshake.
    pub fn full(&self) -> u64 {
        self.ok - self.resumed
    }

    /// Returns the number of failed connections.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Returns successful connections per second.
    pub fn per_second(&self) -> f64 {
        if self.elapsed.is_zero() { 0.0 } else { self.ok as f64 / self.elapsed.as_secs_f64() }
    }

    /// Describes the most frequent failure, with the total number of failures.
    pub fn failure(&self) -> Option<String> {
        let (Failure { stage, reason }, _) = self.failures.iter().max_by_key(|(_, count)| **count)?;
        Some(format!("{} failed, most in {stage}: {reason}", self.failed()))
    }

    /// Adds the results of another load of the same kind that ran after this one.
    pub fn merge(&mut self, other: &Self) {
        let elapsed = self.elapsed + other.elapsed;
        self.join(other);
        self.elapsed = elapsed;
    }

    /// Adds the results of another thread of the same load, which ran concurrently.
    pub fn join(&mut self, other: &Self) {
        self.ok += other.ok;
        self.resumed += other.resumed;
        self.offered += other.offered;
        self.tickets += other.tickets;
        self.received += other.received;
        self.sent += other.sent;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.handshake_us += &other.handshake_us;
        self.exchange_us += &other.exchange_us;
        for (failure, count) in &other.failures {
            *self.failures.entry(failure.clone()).or_default() += count;
        }
        for (negotiated, count) in &other.negotiated {
            *self.negotiated.entry(*negotiated).or_default() += count;
        }
    }

    pub(super) fn succeed(&mut self, connection: &Connection, live: &Live) {
        let resumed = u64::from(connection.resumed());
        let (received, sent) = connection.bytes();
        self.ok += 1;
        self.resumed += resumed;
        self.received += received;
        self.sent += sent;
        record(&mut self.handshake_us, connection.handshake_time());
        record(&mut self.exchange_us, connection.exchange_time());
        *self.negotiated.entry(connection.negotiated()).or_default() += 1;
        live.ok.fetch_add(1, Ordering::Relaxed);
        live.resumed.fetch_add(resumed, Ordering::Relaxed);
    }

    pub(super) fn fail(&mut self, failure: Failure, live: &Live) {
        let known = self.failures.contains_key(&failure) || self.failures.len() < KINDS;
        let failure = if known { failure } else { Failure { reason: "other".into(), ..failure } };
        *self.failures.entry(failure).or_default() += 1;
        live.failed.fetch_add(1, Ordering::Relaxed);
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_US, DIGITS).expect("constant bounds are valid")
}

fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_micros()).unwrap_or(LONGEST_US));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Stage;

    fn seen(latencies_us: impl IntoIterator<Item = u64>) -> Outcome {
        let mut outcome = Outcome { elapsed: Duration::from_secs(1), ..Outcome::default() };
        for us in latencies_us {
            outcome.ok += 1;
            record(&mut outcome.handshake_us, Duration::from_micros(us));
        }
        outcome
    }

    #[test]
    fn merged_percentiles_are_those_of_all_values() {
        let mut all = seen(1..=500);
        all.merge(&seen(501..=1000));
        assert_eq!(all.ok, 1000);
        assert!((all.per_second() - 500.0).abs() < 1e-9, "one after the other");
        for (percentile, expected) in [(50.0, 500), (99.0, 990), (100.0, 1000)] {
            let value = all.handshake_us.value_at_percentile(percentile);
            assert!(value.abs_diff(expected) <= 1, "p{percentile} is {value}");
        }
        let mut threads = seen(1..=500);
        threads.join(&seen(501..=1000));
        assert!((threads.per_second() - 1000.0).abs() < 1e-9, "at the same time");
    }

    #[test]
    fn failures_are_counted_by_kind() {
        let fail = |stage, reason: &str| Failure { stage, reason: reason.into() };
        let (mut outcome, live) = (Outcome::default(), Live::default());
        assert_eq!(outcome.failure(), None);
        outcome.fail(fail(Stage::Response, "closed"), &live);
        let mut other = Outcome::default();
        for _ in 0..2 {
            other.fail(fail(Stage::Handshake, "alert"), &live);
        }
        outcome.merge(&other);
        assert_eq!((outcome.failed(), live.failed.load(Ordering::Relaxed)), (3, 3));
        assert_eq!(outcome.failure().as_deref(), Some("3 failed, most in the handshake: alert"));
    }

    #[test]
    fn kinds_without_number_do_not_fill_the_memory() {
        let mut outcome = Outcome::default();
        for number in 0..1000 {
            let failure = Failure { stage: Stage::Response, reason: format!("status {number}") };
            outcome.fail(failure, &Live::default());
        }
        assert_eq!((outcome.failed(), outcome.failures.len()), (1000, KINDS + 1));
    }

    #[test]
    fn what_takes_longer_than_a_minute_counts_as_a_minute() {
        let outcome = seen([10 * LONGEST_US]);
        assert!(outcome.handshake_us.max() >= LONGEST_US);
    }
}
