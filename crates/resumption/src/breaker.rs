//! When to stop asking somebody who does not answer.

use std::time::{Duration, Instant};

/// Opens after several failures in a row, then lets one question through now and then until one is answered. Time is an
/// argument.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    failures: u32,
    /// When the next question may be asked; `None` while it is closed.
    retry: Option<Instant>,
}

/// Failures in a row that open it.
const PATIENCE: u32 = 5;
/// The first pause, doubled by each failure after it up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

impl Breaker {
    /// Whether to ask now. While it is open, one question in each pause is let through.
    pub fn allows(&mut self, now: Instant) -> bool {
        match self.retry {
            None => true,
            Some(retry) if now < retry => false,
            Some(_) => {
                self.retry = Some(now + self.pause());
                true
            }
        }
    }

    /// Somebody answered: it closes. True if it was open.
    pub fn answered(&mut self) -> bool {
        let was_open = self.retry.is_some();
        *self = Self::default();
        was_open
    }

    /// Nobody answered. True if this opens it.
    pub fn failed(&mut self, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        if self.failures < PATIENCE {
            return false;
        }
        let opens = self.retry.is_none();
        self.retry = Some(now + self.pause());
        opens
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.retry.is_some()
    }

    fn pause(&self) -> Duration {
        let doublings = self.failures.saturating_sub(PATIENCE).min(8);
        (FIRST_PAUSE * 2u32.pow(doublings)).min(LONGEST_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(now: Instant) -> Breaker {
        let mut breaker = Breaker::default();
        for failure in 1..=PATIENCE {
            assert!(breaker.allows(now));
            assert_eq!(breaker.failed(now), failure == PATIENCE);
        }
        breaker
    }

    #[test]
    fn single_failures_do_not_open_it() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..100 {
            breaker.failed(now);
            breaker.answered();
        }
        assert!(breaker.allows(now) && !breaker.is_open());
    }

    #[test]
    fn an_open_one_asks_once_a_pause_and_closes_with_the_first_answer() {
        let start = Instant::now();
        let mut breaker = opened(start);
        assert!(!breaker.allows(start + FIRST_PAUSE / 2));
        assert!(breaker.allows(start + FIRST_PAUSE));
        assert!(!breaker.allows(start + FIRST_PAUSE), "one question only");
        assert!(breaker.answered());
        assert!(breaker.allows(start + FIRST_PAUSE) && breaker.allows(start + FIRST_PAUSE));
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        let start = Instant::now();
        let mut breaker = opened(start);
        let (mut now, mut questions) = (start, 0);
        while now < start + Duration::from_secs(60) {
            if breaker.allows(now) {
                questions += 1;
                breaker.failed(now);
            }
            now += Duration::from_millis(50);
        }
        assert!((14..25).contains(&questions), "{questions} questions in a minute");
        assert!(!breaker.allows(now));
        assert!(breaker.allows(now + LONGEST_PAUSE));
    }
}
