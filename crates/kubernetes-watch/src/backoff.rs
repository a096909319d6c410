//! Pauses after errors of a watch.

use kube::runtime::utils::Backoff;
use std::time::{Duration, Instant};

/// Pauses that grow from 0.2 s to 5 s, with a random part, so that gateways do not return all at once.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    errors: u32,
    last: Option<Instant>,
}

impl Pauses {
    fn after_error(&mut self, now: Instant) -> Duration {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) > FORGETTING) {
            self.errors = 0;
        }
        self.last = Some(now);
        let pause = SHORTEST.saturating_mul(1 << self.errors.min(5)).min(LONGEST);
        self.errors += 1;
        pause.mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.after_error(Instant::now()))
    }
}

impl Backoff for Pauses {
    /// Does nothing: the beginning of a list that then fails is a success, too.
    fn reset(&mut self) {}
}

const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(5);
/// Time without an error after which pauses are short again.
const FORGETTING: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        let mut pauses = Pauses::default();
        let begin = Instant::now();
        let first = pauses.after_error(begin);
        assert!(first <= SHORTEST && first >= SHORTEST / 2, "{first:?}");
        pauses.reset();
        let later: Vec<Duration> = (0..50).map(|_| pauses.after_error(begin)).collect();
        assert!(later[0] > SHORTEST / 2, "{later:?}");
        assert!(later.iter().skip(6).all(|pause| *pause >= LONGEST / 2 && *pause <= LONGEST), "{later:?}");
        assert!(pauses.after_error(begin + FORGETTING * 2) <= SHORTEST);
    }
}
