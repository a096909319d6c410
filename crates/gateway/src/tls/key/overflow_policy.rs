//! Decision whether a queued private-key operation goes to key servers: if it will probably complete sooner there.
//! Pure: takes events with their times.

use std::time::Duration;

/// Minimum queueing delay of an operation that is sent, however fast the key servers are.
const SHORT_WAIT: Duration = Duration::from_millis(10);
/// Response time per operation at the key servers before any measurement.
const FIRST_GUESS: Duration = Duration::from_millis(5);

/// Timeout of a response, as a multiple of the expected time.
const TIMES_AS_EXPECTED: u32 = 8;
const LEAST_PATIENCE: Duration = Duration::from_millis(100);
const LONGEST_PATIENCE: Duration = Duration::from_secs(1);

/// Pause after a failure of the key servers; doubled by each further failure.
const FIRST_REST: Duration = Duration::from_millis(500);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// State of the key servers of one key. Times are relative to an arbitrary epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spill {
    /// Response time per operation in flight.
    each: Duration,
    measured: Duration,
    in_flight: u32,
    rest: Duration,
    rests_until: Duration,
    /// Whether a single operation was sent after a pause, whose response decides about the others.
    trying: bool,
}

/// An operation sent to the key servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    at: Duration,
    /// Operations in flight, including this one.
    in_flight: u32,
    /// Timeout of the response.
    pub(crate) patience: Duration,
}

impl Default for Spill {
    fn default() -> Self {
        Self {
            each: FIRST_GUESS,
            measured: Duration::ZERO,
            in_flight: 0,
            rest: FIRST_REST,
            rests_until: Duration::ZERO,
            trying: false,
        }
    }
}

impl Spill {
    /// Decides whether an operation with this queueing delay is sent to the key servers. If it is, it has to end in
    /// [`answered`](Self::answered), [`failed`](Self::failed) or [`withdrawn`](Self::withdrawn).
    pub(crate) fn send(&mut self, wait: Duration, now: Duration) -> Option<Sent> {
        let expected = self.each(now) * (self.in_flight + 1);
        if wait <= expected.max(SHORT_WAIT) || now < self.rests_until || self.trying {
            return None;
        }
        self.trying = self.rest > FIRST_REST;
        self.in_flight += 1;
        let patience = (expected * TIMES_AS_EXPECTED).clamp(LEAST_PATIENCE, LONGEST_PATIENCE);
        Some(Sent { at: now, in_flight: self.in_flight, patience })
    }

    /// Records a response of the key servers.
    pub(crate) fn answered(&mut self, sent: &Sent, now: Duration) {
        let each = now.saturating_sub(sent.at) / sent.in_flight;
        (self.each, self.measured) = ((self.each(now) * 7 + each) / 8, now);
        self.rest = FIRST_REST;
        self.withdrawn();
    }

    /// Records a failure or timeout of the key servers.
    pub(crate) fn failed(&mut self, sent: &Sent, now: Duration) {
        self.withdrawn();
        // Operations that were in flight when the first one failed give no new information.
        if sent.at >= self.rests_until {
            self.rests_until = now + self.rest;
            self.rest = (self.rest * 2).min(LONGEST_REST);
        }
    }

    /// Records that an operation was canceled.
    pub(crate) fn withdrawn(&mut self) {
        self.in_flight -= 1;
        self.trying = false;
    }

    /// Returns the response time per operation. Each second without responses halves it down to the first guess, so
    /// that slow key servers are tried again.
    fn each(&self, now: Duration) -> Duration {
        let silent = now.saturating_sub(self.measured).as_secs().min(31);
        let kept = self.each.min(FIRST_GUESS);
        kept + (self.each - kept) / (1 << silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn only_what_would_wait_longer_here_goes() {
        let mut spill = Spill::default();
        assert_eq!(spill.send(at(10), at(0)), None, "too short a wait");
        let first = spill.send(at(11), at(0)).expect("the wait is longer here");
        assert_eq!(first.patience, LEAST_PATIENCE);
        let more = (0..100).filter_map(|_| spill.send(at(100), at(0))).count();
        assert_eq!(more, 18, "with 19 in flight, the next would not complete sooner there");
    }

    #[test]
    fn fast_key_servers_get_more_and_slow_ones_less_until_they_are_tried_again() {
        let mut spill = Spill::default();
        let mut now = at(0);
        // The key servers are two milliseconds away and perform two operations per millisecond.
        for _ in 0..20 {
            let sent: Vec<_> = std::iter::from_fn(|| spill.send(at(100), now)).collect();
            now += at(2);
            for sent in &sent {
                now += at(1) / 2;
                spill.answered(sent, now);
            }
        }
        let many = std::iter::from_fn(|| spill.send(at(100), now)).count();
        assert!((150..=200).contains(&many), "{many} of the 200 that they can compute meanwhile");
        (0..many).for_each(|_| spill.withdrawn());
        for _ in 0..100 {
            let sent = Sent { at: now, in_flight: 1, patience: LONGEST_PATIENCE };
            spill.in_flight += 1;
            spill.answered(&sent, now + at(400));
        }
        now += at(400);
        assert_eq!(spill.send(at(150), now), None, "they are slow");
        assert!(spill.send(at(450), now).is_some());
        assert_eq!(spill.send(at(150), now + at(999)), None);
        assert!(spill.send(at(250), now + at(3000)).is_some(), "they may have become fast again");
    }

    #[test]
    fn after_failures_they_rest_and_one_operation_finds_out() {
        let mut spill = Spill::default();
        let sent: Vec<_> = std::iter::from_fn(|| spill.send(at(200), at(0))).collect();
        assert!(sent.len() > 10);
        sent.iter().for_each(|sent| spill.failed(sent, at(100)));
        assert_eq!(spill.send(at(50), at(599)), None);
        let trial = spill.send(at(50), at(600)).expect("the pause is over");
        assert_eq!(spill.send(at(50), at(600)), None, "one");
        spill.failed(&trial, at(700));
        assert_eq!(spill.send(at(50), at(1699)), None, "twice as long");
        let trial = spill.send(at(50), at(1700)).expect("another trial");
        spill.answered(&trial, at(1705));
        assert!((0..5).all(|_| spill.send(at(50), at(1800)).is_some()));
    }

    #[test]
    fn a_client_that_leaves_says_nothing_of_the_key_servers() {
        let mut spill = Spill::default();
        let sent = spill.send(at(50), at(0)).expect("the wait is longer here");
        spill.failed(&sent, at(0));
        assert!(spill.send(at(50), at(600)).is_some());
        assert_eq!(spill.send(at(50), at(600)), None);
        spill.withdrawn();
        assert!(spill.send(at(50), at(600)).is_some());
    }
}
