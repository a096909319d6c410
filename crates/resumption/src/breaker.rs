//! Circuit breaker for a session store that does not respond.

use std::time::{Duration, Instant};

/// A circuit breaker: opens after several failures in a row, then allows one request in each pause until one
/// succeeds. Time is an argument.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    failures: u32,
    /// Time of the next trial request; `None` while the breaker is closed.
    retry: Option<Instant>,
}

/// Consecutive failures that open the breaker.
const PATIENCE: u32 = 5;
/// The first pause, doubled by each failure after it up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

impl Breaker {
    /// Returns whether a request may be sent now. An open breaker allows one request in each pause.
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

    /// Records a success and closes the breaker. Returns whether it was open.
    pub fn answered(&mut self) -> bool {
        let was_open = self.retry.is_some();
        *self = Self::default();
        was_open
    }

    /// Records a failure. Returns whether this failure opens the breaker.
    pub fn failed(&mut self, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        if self.failures < PATIENCE {
            return false;
        }
        let opens = self.retry.is_none();
        self.retry = Some(now + self.pause());
        opens
    }

    /// Returns whether the breaker is open.
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
    fn an_open_breaker_allows_one_request_per_pause_and_closes_on_success() {
        let start = Instant::now();
        let mut breaker = opened(start);
        assert!(!breaker.allows(start + FIRST_PAUSE / 2));
        assert!(breaker.allows(start + FIRST_PAUSE));
        assert!(!breaker.allows(start + FIRST_PAUSE), "one request only");
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
        assert!((14..25).contains(&questions), "{questions} requests in a minute");
        assert!(!breaker.allows(now));
        assert!(breaker.allows(now + LONGEST_PAUSE));
    }
}
