//! Warnings about certificates, CA certificates and revocation lists that expire while they are in use.

use quadrille_ocsp::unix_now;
use std::time::{Duration, Instant};

/// Longest time, in seconds, after which the clock is read again: it may have been set.
const LONGEST: i64 = 60;

/// Expiry times to come, the first one last, each with its warning.
#[derive(Default)]
pub(crate) struct Expiries {
    pending: Vec<(i64, String)>,
    next: Option<Instant>,
}

impl Expiries {
    /// Replaces all expiry times. Those in the past are ignored.
    pub(crate) fn follow(&mut self, all: impl Iterator<Item = (i64, String)>) {
        self.replace(all, unix_now());
    }

    /// Returns the time at which [`Self::warn`] is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Logs the warnings that are due.
    pub(crate) fn warn(&mut self) {
        for warning in self.expired(unix_now()) {
            tracing::warn!("{warning}");
        }
    }

    fn replace(&mut self, all: impl Iterator<Item = (i64, String)>, now: i64) {
        self.pending = all.filter(|(not_after, _)| *not_after >= now).collect();
        self.pending.sort_unstable_by(|one, other| other.cmp(one));
        self.pending.dedup();
        self.schedule(now);
    }

    fn expired(&mut self, now: i64) -> Vec<String> {
        let kept = self.pending.partition_point(|(not_after, _)| *not_after >= now);
        let expired = self.pending.split_off(kept);
        self.schedule(now);
        expired.into_iter().map(|(_, warning)| warning).collect()
    }

    fn schedule(&mut self, now: i64) {
        let wait = self.pending.last().map(|(not_after, _)| (not_after - now + 1).clamp(1, LONGEST));
        let wait = wait.and_then(|wait| u64::try_from(wait).ok()).map(Duration::from_secs);
        self.next = wait.and_then(|wait| Instant::now().checked_add(wait));
    }
}

#[cfg(test)]
mod tests {
    use super::Expiries;

    #[test]
    fn each_expiry_has_one_warning() {
        let mut expiries = Expiries::default();
        let all = [(30, "c"), (9, "past"), (10, "a"), (20, "b"), (20, "b")];
        expiries.replace(all.map(|(at, text)| (at, text.to_owned())).into_iter(), 10);
        assert!(expiries.next().is_some());
        assert_eq!(expiries.expired(10), [""; 0]);
        assert_eq!(expiries.expired(21), ["b", "a"]);
        assert_eq!(expiries.expired(31), ["c"]);
        assert!(expiries.next().is_none() && expiries.expired(99).is_empty());
    }
}
