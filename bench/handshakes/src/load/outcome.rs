//! What a load has seen.

use std::{collections::BTreeMap, fmt, time::Duration};

use hdrhistogram::Histogram;

use super::{Failure, Stage, connection::Connection};

/// Latencies are recorded from 1 us to one minute, to three significant digits.
const LONGEST_US: u64 = 60_000_000;
const DIGITS: u8 = 3;

/// Counts and latencies of a load, as the client saw them.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Connections that got all their responses.
    pub ok: u64,
    /// Of those, how many the server resumed; anything but 0 is a fault unless the client was asked to come back.
    pub resumed: u64,
    /// Sessions and tickets that the server handed out.
    pub tickets: u64,
    /// Failed connections by stage, with the first reason seen.
    pub failures: BTreeMap<Stage, (u64, String)>,
    /// From connect to the end of the handshake, in microseconds.
    pub handshake_us: Histogram<u64>,
    /// From connect to the last byte of the last response, in microseconds.
    pub exchange_us: Histogram<u64>,
    /// What client and server agreed on, and how often.
    pub negotiated: BTreeMap<Negotiated, u64>,
    /// How long the load took.
    pub elapsed: Duration,
}

/// What client and server agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Negotiated {
    /// Protocol version.
    pub version: &'static str,
    /// Cipher suite.
    pub cipher: &'static str,
    /// Key exchange group.
    pub group: &'static str,
    /// Scheme of the server's signature.
    pub signature: &'static str,
}

impl fmt::Display for Negotiated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, cipher, group, signature } = self;
        write!(f, "{version} {cipher} {group} {signature}")
    }
}

impl Default for Outcome {
    fn default() -> Self {
        Self {
            ok: 0,
            resumed: 0,
            tickets: 0,
            failures: BTreeMap::new(),
            handshake_us: histogram(),
            exchange_us: histogram(),
            negotiated: BTreeMap::new(),
            elapsed: Duration::ZERO,
        }
    }
}

impl Outcome {
    /// Failed connections.
    pub fn failed(&self) -> u64 {
        self.failures.values().map(|(count, _)| count).sum()
    }

    /// Successful connections a second.
    pub fn per_second(&self) -> f64 {
        self.ok as f64 / self.elapsed.as_secs_f64()
    }

    /// The first failure in words, with how many there were.
    pub fn failure(&self) -> Option<String> {
        let (stage, (_, reason)) = self.failures.first_key_value()?;
        Some(format!("{} failed, first in the {stage}: {reason}", self.failed()))
    }

    /// Adds what another load of the same kind has seen.
    pub fn merge(&mut self, other: &Self) {
        self.ok += other.ok;
        self.resumed += other.resumed;
        self.tickets += other.tickets;
        self.elapsed += other.elapsed;
        self.handshake_us += &other.handshake_us;
        self.exchange_us += &other.exchange_us;
        for (stage, (count, reason)) in &other.failures {
            self.failures.entry(*stage).or_insert_with(|| (0, reason.clone())).0 += count;
        }
        for (negotiated, count) in &other.negotiated {
            *self.negotiated.entry(*negotiated).or_default() += count;
        }
    }

    pub(super) fn succeed(&mut self, connection: &Connection) {
        self.ok += 1;
        self.resumed += u64::from(connection.resumed());
        record(&mut self.handshake_us, connection.handshake_time());
        record(&mut self.exchange_us, connection.exchange_time());
        *self.negotiated.entry(connection.negotiated()).or_default() += 1;
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.failures.entry(failure.stage).or_insert((0, failure.reason)).0 += 1;
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_US, DIGITS).expect("constant bounds that the histogram allows")
}

fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_micros()).unwrap_or(LONGEST_US));
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!((all.per_second() - 500.0).abs() < 1e-9);
        for (percentile, expected) in [(50.0, 500), (99.0, 990), (100.0, 1000)] {
            let value = all.handshake_us.value_at_percentile(percentile);
            assert!(value.abs_diff(expected) <= 1, "p{percentile} is {value}");
        }
    }

    #[test]
    fn failures_keep_their_number_and_their_first_reason() {
        let fail = |stage, reason: &str| Failure { stage, reason: reason.into() };
        let mut outcome = Outcome::default();
        assert_eq!(outcome.failure(), None);
        outcome.fail(fail(Stage::Response, "closed"));
        let mut other = Outcome::default();
        other.fail(fail(Stage::Handshake, "alert"));
        other.fail(fail(Stage::Handshake, "refused"));
        outcome.merge(&other);
        assert_eq!(outcome.failed(), 3);
        assert_eq!(outcome.failure().as_deref(), Some("3 failed, first in the handshake: alert"));
    }

    #[test]
    fn what_takes_longer_than_a_minute_counts_as_a_minute() {
        let outcome = seen([10 * LONGEST_US]);
        assert!(outcome.handshake_us.max() >= LONGEST_US);
    }
}
