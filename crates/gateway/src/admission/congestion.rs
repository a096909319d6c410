//! Whether a queue stands: its delay has not fallen below the target for a whole interval (RFC 8289, CoDel). A burst
//! that is worked off in between is none.

use std::time::Duration;

/// Congestion is over once nothing has been above the target, and nobody was refused, for so long.
const CALM: Duration = Duration::from_secs(1);

/// What is known of one queue. Times are since some epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    /// A delay up to this is none of anybody's business.
    pub(super) target: Duration,
    /// How long the delay has to be above it.
    interval: Duration,
    seen: Duration,
    above_since: Option<Duration>,
    /// The last sign of it; `None` while there is no congestion.
    pressed: Option<Duration>,
}

impl Congestion {
    pub(super) fn new(target: Duration, interval: Duration) -> Self {
        Self { target, interval, seen: Duration::ZERO, above_since: None, pressed: None }
    }

    /// Takes a delay into account.
    pub(super) fn observe(&mut self, delay: Duration, now: Duration) {
        let silent = now.saturating_sub(self.seen) > self.interval;
        self.seen = now;
        if delay <= self.target {
            self.above_since = None;
        } else {
            // What has not been looked at for long may have been empty in between.
            let known = self.above_since.filter(|_| !silent);
            let since = *self.above_since.insert(known.unwrap_or(now));
            if now.saturating_sub(since) >= self.interval {
                self.pressed = Some(now);
            }
        }
    }

    /// Somebody was refused for its sake.
    pub(super) fn press(&mut self, now: Duration) {
        if self.is_on(now) {
            self.pressed = Some(now);
        }
    }

    /// Whether the queue stands.
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
    fn a_burst_is_none() {
        let mut queue = Congestion::new(TARGET, INTERVAL);
        for tick in 0..1000 {
            // Above the target for 90 of 100 ms.
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
        assert!(queue.is_on(at(900)), "it comes back at once if it ends at once");
        queue.press(at(900));
        assert!(queue.is_on(at(1800)));
        assert!(!queue.is_on(at(1901)));
    }

    #[test]
    fn silence_is_no_delay() {
        let mut queue = Congestion::new(TARGET, INTERVAL);
        queue.observe(at(20), at(0));
        queue.observe(at(20), at(5000));
        assert!(!queue.is_on(at(5000)));
    }
}
