//! Schedule of orders. All functions are pure: they take the time as an argument.

use crate::UnixTime;

/// Validity period of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// First moment of validity.
    pub not_before: UnixTime,
    /// Last moment of validity.
    pub not_after: UnixTime,
}

/// Renewal window suggested by the authority (RFC 9773 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start of the window.
    pub start: UnixTime,
    /// End of the window.
    pub end: UnixTime,
}

/// Failures since the last certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    /// Number of failures in a row.
    pub(crate) count: u32,
    /// Time before which there is no retry.
    pub(crate) retry_at: UnixTime,
}

impl Validity {
    /// Returns the length of the period in seconds.
    pub fn life(self) -> i64 {
        (self.not_after - self.not_before).max(1)
    }

    /// Returns whether less than a third is left: by then it should have been renewed.
    pub fn is_late(self, now: UnixTime) -> bool {
        now > self.not_after - self.life() / 3
    }
}

/// Returns when the certificate should be ordered, given the state of the present one. `chance`, from 0 to 1, spreads
/// many certificates over the suitable time of each.
pub(crate) fn due(validity: Option<Validity>, window: Option<Window>, chance: f64) -> UnixTime {
    let Some(validity) = validity else { return UnixTime::MIN };
    let life = validity.life();
    // A window longer than the lifetime is meaningless.
    match window.filter(|window| (0..=life).contains(&(window.end - window.start))) {
        Some(window) => {
            let chosen = window.start + portion(window.end - window.start, chance);
            chosen.min(validity.not_after - life / 6)
        }
        None => validity.not_after - life / 3 - portion(life / 20, chance),
    }
}

/// Returns the earliest time of the next order after the one before it, so that limits hold regardless of clocks and
/// the authority.
pub(crate) fn soonest(ordered_at: UnixTime, validity: Option<Validity>) -> UnixTime {
    const DAY: i64 = 24 * 3600;
    ordered_at + validity.map_or(0, |validity| (validity.life() / 6).min(DAY))
}

/// Returns a stored time, or one far in the past if it is so far ahead that only a wrong clock can have written it:
/// no wait is that long. A machine that starts with a wrong clock would otherwise keep a whole fleet from renewing.
pub(crate) fn if_plausible(stored: UnixTime, now: UnixTime) -> UnixTime {
    // The longest wait of a day, plus the possible difference between the fleet's clocks.
    const FARTHEST: i64 = 30 * 3600;
    if stored - now > FARTHEST { 0 } else { stored }
}

/// Returns when to retry after one more failure. `counts` is whether it counts against the authority's limits,
/// `wanted` the authority's `Retry-After` in seconds.
pub(crate) fn after_failure(
    failures: Failures,
    counts: bool,
    wanted: Option<i64>,
    validity: Option<Validity>,
    chance: f64,
    now: UnixTime,
) -> Failures {
    // Let's Encrypt allows five failed validations per name and hour; these intervals give four.
    let (first, factor, longest) = if counts { (60, 4, 6 * 3600) } else { (10, 2, 1800) };
    let steps = failures.count.min(20);
    let mut wait = (0..steps).fold(first, |wait: i64, _| (wait * factor).min(longest));
    if let Some(validity) = validity {
        // For certificates valid for a few days, hours are too long.
        wait = wait.min((validity.life() / 24).max(5));
    }
    wait += portion(wait / 4, chance);
    let longest_wanted = 24 * 3600;
    let wait = wait.max(wanted.unwrap_or(0).clamp(0, longest_wanted));
    Failures { count: failures.count.saturating_add(1), retry_at: now + wait }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "a random point in time")]
fn portion(of: i64, chance: f64) -> i64 {
    (of as f64 * chance.clamp(0.0, 1.0)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600;
    const NINETY: Validity = Validity { not_before: 0, not_after: 90 * DAY };

    #[test]
    fn times_written_by_a_clock_far_ahead_are_ignored() {
        let now = 20_000 * DAY;
        assert_eq!(if_plausible(now + 200 * DAY, now), 0);
        let wanted = Failures { count: 20, retry_at: now };
        let longest = after_failure(wanted, true, Some(10 * DAY), Some(NINETY), 1.0, now).retry_at;
        for stored in [0, now - DAY, now + 3600, longest] {
            assert_eq!(if_plausible(stored, now), stored);
        }
    }

    #[test]
    fn without_a_word_from_the_authority_it_is_renewed_at_two_thirds_of_its_life() {
        assert_eq!(due(None, None, 0.5), UnixTime::MIN);
        assert_eq!(due(Some(NINETY), None, 0.0), 60 * DAY);
        let early = due(Some(NINETY), None, 1.0);
        assert!((55 * DAY..60 * DAY).contains(&early), "{early}");
        assert!(!NINETY.is_late(60 * DAY) && NINETY.is_late(60 * DAY + 1));
    }

    #[test]
    fn the_authority_chooses_the_time_if_it_makes_sense() {
        let window = |start, end| Some(Window { start, end });
        assert_eq!(due(Some(NINETY), window(50 * DAY, 52 * DAY), 0.5), 51 * DAY);
        assert_eq!(due(Some(NINETY), window(-2 * DAY, -DAY), 0.5), -3 * DAY / 2, "at once");
        assert_eq!(due(Some(NINETY), window(89 * DAY, 90 * DAY), 0.5), 75 * DAY, "never at the last moment");
        for nonsense in [window(0, 91 * DAY), window(2 * DAY, DAY)] {
            assert_eq!(due(Some(NINETY), nonsense, 0.0), 60 * DAY);
        }
    }

    #[test]
    fn a_clock_that_is_ahead_orders_no_certificate_after_another() {
        let short = Validity { not_before: 0, not_after: 120 };
        let ordered_at = 3600;
        assert!(due(Some(short), None, 0.0) < ordered_at, "it appears to be expired");
        assert_eq!(soonest(ordered_at, Some(short)), ordered_at + 20);
        assert_eq!(soonest(ordered_at, Some(NINETY)), ordered_at + DAY);
    }

    /// Let's Encrypt allows five failed validations per name and hour.
    #[test]
    fn failures_stay_within_the_limits() {
        let tries = |counts, validity, chance| {
            let (mut failures, mut now, mut tries) = (Failures::default(), 0, Vec::new());
            while now < 7 * DAY {
                tries.push(now);
                failures = after_failure(failures, counts, None, validity, chance, now);
                assert!(failures.retry_at > now);
                now = failures.retry_at;
            }
            tries
        };
        for chance in [0.0, 0.5, 1.0] {
            let counted = tries(true, Some(NINETY), chance);
            let busiest = counted
                .iter()
                .map(|at| counted.iter().filter(|other| (*at..at + 3600).contains(other)).count());
            assert!(busiest.max() <= Some(5), "{counted:?}");
            assert!(tries(false, None, chance).len() > counted.len());
        }
    }

    #[test]
    fn the_authority_is_left_alone_for_as_long_as_it_says_within_a_day() {
        let again = |wanted| after_failure(Failures::default(), true, Some(wanted), None, 0.0, 100).retry_at;
        assert_eq!((again(7), again(5000), again(i64::MAX)), (160, 5100, 100 + DAY));
    }
}
