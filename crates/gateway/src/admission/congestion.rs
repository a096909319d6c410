//! Detection of a standing queue, whose delay has not fallen below the target for a whole interval (RFC 8289, CoDel).
//! A burst that is worked off within the interval is not congestion.

use std::time::Duration;

/// Time after which congestion ends if no delay was above the target and no request was rejected.
const CALM: Duration = Duration::from_secs(1);

/// State of one queue. Times are relative to an arbitrary epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    /// Delay up to which the queue is not congested.
    pub(super) target: Duration,
    /// Time for which the delay has to stay above the target.
    interval: Duration,
    seen: Duration,
    above_since: Option<Duration>,
    /// Time of the last sign of congestion; `None` without congestion.
    pressed: Option<Duration>,
}

impl Congestion {
    pub(super) fn new(target: Duration, interval: Duration) -> Self {
        Self { target, interval, seen: Duration::ZERO, above_since: None, pressed: None }
    }

    /// Records a delay.
    pub(super) fn observe(&mut self, delay: Duration, now: Duration) {
        let silent = now.saturating_sub(self.seen) > self.interval;
        self.seen = now;
        if delay <= self.target {
            self.above_since = None;
        } else {
            // A queue that was not observed for long may have been empty in between.
            let known = self.above_since.filter(|_| !silent);
            let since = *self.above_since.insert(known.unwrap_or(now));
            if now.saturating_sub(since) >= self.interval {
                self.pressed = Some(now);
            }
        }
    }

    /// Records a rejection caused by this queue.
    pub(super) fn press(&mut self, now: Duration) {
        if self.is_on(now) {
            self.pressed = Some(now);
        }
    }

    /// Returns whether the queue is a standing queue.
    pub(super) fn is_on(&self, now: Duration) -> bool {
        self.pressed.is_some_and(|pressed| now.saturating_sub(pressed) < CALM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Duration = Duration::from_millis(10);
    const INTERVAL: Duration = Duration::from_millis(100);

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_burst_is_not_congestion() {
        let mut queue = Congestion::new(TARGET, INTERVAL);
        for tick in 0..1000 {
            // The delay is above the target for 90 of 100 ms.
            queue.observe(if tick % 10 == 0 { at(1) } else { at(50) }, at(tick * 10));
            assert!(!queue.is_on(at(tick * 10)), "{tick}");
        }
    }

    #[test]
    fn a_standing_queue_is_and_ends_when_all_is_calm() {
        let mut queue = Congestion::new(TARGET, INTERVAL);
        for tick in 0..=10 {
            assert!(!queue.is_on(at(tick * 10)));
            queue.observe(at(11), at(tick * 10));
        }
        assert!(queue.is_on(at(100)));
        queue.observe(at(1), at(200));
        assert!(queue.is_on(at(900)), "congestion would resume at once if it ended at once");
        queue.press(at(900));
        assert!(queue.is_on(at(1800)));
        assert!(!queue.is_on(at(1901)));
    }

    #[test]
    fn silence_is_not_delay() {
        let mut queue = Congestion::new(TARGET, INTERVAL);
        queue.observe(at(20), at(0));
        queue.observe(at(20), at(5000));
        assert!(!queue.is_on(at(5000)));
    }
}
