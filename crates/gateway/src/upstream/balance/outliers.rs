//! Outlier detection: temporary ejection of endpoints by the outcomes of their requests.
//!
//! Consecutive failures and growing ejection times are as in Envoy's outlier detection. An endpoint returns when its
//! ejection time is over.

use quadrille_config::model::OutlierDetection;
use std::{
    num::NonZeroUsize,
    sync::{
        LazyLock, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Outcome of a request at an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestOutcome {
    /// A response with this status.
    Status(u16),
    /// No connection, or no response.
    NoAnswer,
}

/// Outlier state of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    /// Numbers of consecutive failures, by kind.
    errors: AtomicUsize,
    gateway_errors: AtomicUsize,
    local_errors: AtomicUsize,
    /// Time until which it is ejected; 0 if it is not.
    out_until: AtomicU64,
    ejections: Mutex<Ejections>,
}

#[derive(Debug, Default)]
struct Ejections {
    /// Number of consecutive ejections, minus those that have decayed.
    count: u32,
    /// End of the last ejection.
    until: Option<Instant>,
}

impl Outcomes {
    /// Returns whether the endpoint is ejected; calls `now` only if it has been ejected before.
    pub(crate) fn is_out(&self, now: impl FnOnce() -> Instant) -> bool {
        let until = self.out_until.load(Ordering::Relaxed);
        until != 0 && moment(now()) < until
    }

    /// Returns the end of the last ejection, as [`moment`]; 0 before the first.
    pub(super) fn out_until(&self) -> u64 {
        self.out_until.load(Ordering::Relaxed)
    }

    /// Records an outcome; returns whether the endpoint has reached a limit of failures.
    pub(crate) fn observe(&self, outcome: RequestOutcome, settings: &OutlierDetection) -> bool {
        let (status, answered) = match outcome {
            RequestOutcome::Status(status) => (status, true),
            // Envoy counts a failed connection as 503.
            RequestOutcome::NoAnswer => (503, false),
        };
        let mut too_many = false;
        if answered || !settings.split {
            too_many |= is_reached(&self.errors, settings.errors, status >= 500);
            too_many |=
                is_reached(&self.gateway_errors, settings.gateway_errors, matches!(status, 502..=504));
        }
        if settings.split {
            too_many |= is_reached(&self.local_errors, settings.local_errors, !answered);
        }
        too_many
    }

    /// Ejects the endpoint; returns the ejection time, unless it is ejected already.
    pub(crate) fn eject(&self, settings: &OutlierDetection, now: Instant) -> Option<Duration> {
        let mut ejections = self.ejections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = ejections.until {
            let back = now.checked_duration_since(until)?;
            let forgiven = back.as_nanos() / settings.interval.as_nanos().max(1);
            ejections.count = ejections.count.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX));
        }
        ejections.count = ejections.count.saturating_add(1);
        let longest = settings.longest_ejection.max(settings.ejection);
        let time = settings.ejection.saturating_mul(ejections.count).min(longest);
        ejections.until = Some(now + time);
        self.out_until.store(moment(now + time), Ordering::Relaxed);
        Some(time)
    }
}

/// Counts consecutive failures; returns whether the limit is reached, which resets the count.
fn is_reached(count: &AtomicUsize, limit: Option<NonZeroUsize>, failed: bool) -> bool {
    let Some(limit) = limit else { return false };
    if !failed {
        // Most requests succeed, and an unmodified cache line is shared between cores.
        if count.load(Ordering::Relaxed) != 0 {
            count.store(0, Ordering::Relaxed);
        }
        return false;
    }
    let reached = count.fetch_add(1, Ordering::Relaxed) + 1 >= limit.get();
    if reached {
        count.store(0, Ordering::Relaxed);
    }
    reached
}

/// Returns whether another endpoint may be ejected while `out` of `servers` are.
pub(crate) fn may_eject(settings: &OutlierDetection, out: usize, servers: usize) -> bool {
    out * 100 < servers * usize::from(settings.most)
}

/// Returns milliseconds since the first call in the process, never 0.
pub(super) fn moment(instant: Instant) -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(instant.saturating_duration_since(*START).as_millis()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, NonZeroUsize, Outcomes, OutlierDetection, RequestOutcome, may_eject};
    use RequestOutcome::{NoAnswer, Status};

    fn two() -> OutlierDetection {
        OutlierDetection {
            errors: NonZeroUsize::new(2),
            ejection: Duration::from_secs(10),
            longest_ejection: Duration::from_secs(25),
            interval: Duration::from_secs(5),
            ..OutlierDetection::default()
        }
    }

    /// Returns whether the last of these outcomes reaches the limit.
    fn last(settings: &OutlierDetection, outcomes: &[RequestOutcome]) -> bool {
        let found = Outcomes::default();
        outcomes.iter().map(|outcome| found.observe(*outcome, settings)).last().expect("one")
    }

    #[test]
    fn failures_in_a_row_are_too_many() {
        for failure in [Status(500), Status(599), NoAnswer] {
            assert!(last(&two(), &[Status(503), failure]), "{failure:?}");
            assert!(!last(&two(), &[failure]) && !last(&two(), &[failure, Status(404), failure]));
            assert!(!last(&two(), &[failure, failure, failure]), "the count was reset");
        }
        assert!(!last(&two(), &[Status(499), Status(200)]));
    }

    #[test]
    fn gateway_errors_are_some_of_the_errors() {
        let gateway = OutlierDetection { errors: None, gateway_errors: NonZeroUsize::new(2), ..two() };
        assert!(last(&gateway, &[Status(502), Status(504)]) && last(&gateway, &[NoAnswer, Status(503)]));
        assert!(!last(&gateway, &[Status(500), Status(501)]) && !last(&gateway, &[Status(502), Status(500)]));
    }

    #[test]
    fn what_gets_no_answer_may_count_apart() {
        let split = OutlierDetection { split: true, local_errors: NonZeroUsize::new(3), ..two() };
        assert!(!last(&split, &[NoAnswer, NoAnswer]) && last(&split, &[NoAnswer, NoAnswer, NoAnswer]));
        assert!(last(&split, &[Status(500), NoAnswer, Status(500)]), "consecutive responses");
        assert!(!last(&split, &[NoAnswer, NoAnswer, Status(500), NoAnswer]));
    }

    #[test]
    fn ejections_grow_and_are_forgiven() {
        let (found, began) = (Outcomes::default(), Instant::now());
        let at = |seconds| began + Duration::from_secs(seconds);
        let out = |seconds| found.is_out(|| at(seconds));
        assert!(!out(0));
        let eject = |seconds| found.eject(&two(), at(seconds)).map(|time| time.as_secs());
        assert_eq!(eject(100), Some(10));
        assert!(out(109) && !out(111));
        assert_eq!(eject(105), None, "it is ejected already");
        assert_eq!((eject(111), eject(132), eject(160)), (Some(20), Some(25), Some(25)), "up to the maximum");
        assert_eq!(eject(196), Some(25), "two of five have decayed after ten seconds");
        assert_eq!(eject(1000), Some(10), "all have decayed");
    }

    #[test]
    fn so_many_may_be_out_and_the_first_always() {
        assert!(may_eject(&two(), 0, 1) && may_eject(&two(), 0, 3) && !may_eject(&two(), 1, 3));
        assert!(may_eject(&two(), 1, 20) && !may_eject(&two(), 2, 20));
        let all = OutlierDetection { most: 100, ..two() };
        assert!(may_eject(&all, 2, 3) && !may_eject(&all, 3, 3));
    }
}
