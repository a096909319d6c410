//! Schedule of renewals. All functions are pure: time is an argument.

use crate::UnixTime;

/// Validity period of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Time at which the status was known to be correct.
    pub this_update: UnixTime,
    /// Time at which newer information is available.
    pub next_update: UnixTime,
}

/// Maximum time until a newer response is requested, even if the current one is valid for longer.
const LONGEST: i64 = 4 * 24 * 3600;
/// Minimum and maximum pause after failures.
const FIRST_PAUSE: i64 = 5;
const LONGEST_PAUSE: i64 = 3600;

/// Returns when to request a newer response: at half of the validity of the one that was `fetched_at` this time.
/// `chance`, from 0 to 1, spreads requests. A response that was old when received, as from a cache, is not requested
/// again at once.
pub(crate) fn renewal(validity: Validity, fetched_at: UnixTime, chance: f64) -> UnixTime {
    let Validity { this_update, next_update } = validity;
    let life = next_update.saturating_sub(this_update);
    let half = this_update.saturating_add(life / 2).saturating_sub(portion(life / 10, chance));
    let left = next_update.saturating_sub(fetched_at);
    let soonest = fetched_at.saturating_add((left / 4).clamp(FIRST_PAUSE, LONGEST));
    half.clamp(soonest, soonest.max(fetched_at.saturating_add(LONGEST)))
}

/// Returns the pause after this number of consecutive failures.
pub(crate) fn pause(failures: u32, chance: f64) -> i64 {
    let pause = FIRST_PAUSE << failures.saturating_sub(1).min(16);
    let pause = pause.min(LONGEST_PAUSE);
    pause + portion(pause / 4, chance)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a randomly chosen point in time"
)]
fn portion(of: i64, chance: f64) -> i64 {
    (of as f64 * chance.clamp(0.0, 1.0)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600;
    const WEEK: Validity = Validity { this_update: 0, next_update: 7 * DAY };

    #[test]
    fn a_response_is_renewed_at_half_of_its_validity_at_the_latest() {
        assert_eq!(renewal(WEEK, 60, 0.0), 7 * DAY / 2);
        let early = renewal(WEEK, 60, 1.0);
        assert!((5 * DAY / 2..3 * DAY).contains(&early), "{early}");
    }

    #[test]
    fn an_old_response_is_not_asked_for_again_and_again() {
        let (mut now, mut times) = (6 * DAY, 0);
        while now < WEEK.next_update - 60 {
            now = renewal(WEEK, now, 0.5);
            times += 1;
        }
        assert!(now < WEEK.next_update && times < 30, "{times} times until {now}");
    }

    #[test]
    fn odd_validity_periods_are_renewed_within_days_and_not_at_once() {
        let odd = [
            Validity { this_update: 0, next_update: i64::MAX },
            Validity { this_update: i64::MIN, next_update: i64::MAX },
            Validity { this_update: 99, next_update: 101 },
        ];
        for validity in odd {
            let next = renewal(validity, 100, 0.5);
            assert!((105..=100 + LONGEST).contains(&next), "{validity:?}: {next}");
        }
    }

    #[test]
    fn pauses_grow_to_an_hour() {
        let pauses: Vec<_> =
            [1, 2, 3, 10, 11, u32::MAX].into_iter().map(|failures| pause(failures, 0.0)).collect();
        assert_eq!(pauses, [5, 10, 20, 2560, 3600, 3600]);
        assert_eq!(pause(u32::MAX, 1.0), 4500);
    }
}
