//! Early data (0-RTT) counts once: which tickets have brought some (RFC 8446 section 8.1).
//!
//! A copied first flight is accepted by no gateway once its ticket's age no longer fits, which BoringSSL allows a
//! minute of deviation either way. So a use has to be remembered for two minutes, and two more for clocks that differ;
//! and a memory that began later than that knows too little to say that a use is the first.

use std::{
    collections::HashSet,
    future::Future,
    pin::Pin,
    time::{Duration, Instant},
};

/// What a use is known by: a digest of the ticket.
pub type UseId = [u8; 32];

/// Whether a use is the first one, now or later. False also if that cannot be found out.
pub enum Claim {
    /// Known at once.
    Now(bool),
    /// Somebody else has been asked.
    Pending(Pin<Box<dyn Future<Output = bool> + Send>>),
}

/// How long a use is remembered at least.
pub(super) const REMEMBERED: Duration = Duration::from_secs(240);

/// Uses of this process, in two generations. Time is an argument.
#[derive(Debug)]
pub(super) struct Uses {
    young: HashSet<UseId>,
    old: HashSet<UseId>,
    /// When the young ones began.
    since: Instant,
    /// Of each generation.
    capacity: usize,
}

impl Uses {
    /// Remembers up to `capacity` uses in each [`REMEMBERED`]; what comes on top is not believed to be the first.
    pub(super) fn new(capacity: usize, now: Instant) -> Self {
        Self { young: HashSet::new(), old: HashSet::new(), since: now, capacity }
    }

    /// Whether this is the first use.
    pub(super) fn claim(&mut self, id: &UseId, now: Instant) -> bool {
        self.age(now);
        self.young.len() < self.capacity && !self.old.contains(id) && self.young.insert(*id)
    }

    /// Whether this use is known; from now on it is, as long as there is room.
    pub(super) fn repeats(&mut self, id: &UseId, now: Instant) -> bool {
        self.age(now);
        let known = self.old.contains(id) || self.young.contains(id);
        if !known && self.young.len() < self.capacity {
            self.young.insert(*id);
        }
        known
    }

    fn age(&mut self, now: Instant) {
        if now.saturating_duration_since(self.since) >= REMEMBERED {
            let long_ago = now.saturating_duration_since(self.since) >= 2 * REMEMBERED;
            self.old = std::mem::take(&mut self.young);
            if long_ago {
                self.old.clear();
            }
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_counts_once_for_as_long_as_it_could_be_repeated() {
        let start = Instant::now();
        for offset in [0, 1, 100, 239] {
            let mut uses = Uses::new(100, start);
            let first = start + Duration::from_secs(offset);
            assert!(uses.claim(&[1; 32], first));
            for later in 0..240 {
                assert!(!uses.claim(&[1; 32], first + Duration::from_secs(later)), "{offset} + {later}");
            }
            assert!(uses.claim(&[2; 32], first + REMEMBERED));
            assert!(uses.claim(&[1; 32], first + 3 * REMEMBERED), "BoringSSL refuses it by then");
        }
    }

    #[test]
    fn who_asks_somebody_else_too_knows_repetitions_only() {
        let now = Instant::now();
        let mut uses = Uses::new(2, now);
        assert!(!uses.repeats(&[1; 32], now) && uses.repeats(&[1; 32], now));
        assert!(!uses.repeats(&[2; 32], now) && !uses.repeats(&[3; 32], now));
        assert!(!uses.repeats(&[3; 32], now), "it was not remembered");
        assert!(uses.repeats(&[1; 32], now + REMEMBERED));
    }

    #[test]
    fn full_means_no_and_not_forgotten() {
        let now = Instant::now();
        let mut uses = Uses::new(2, now);
        assert!(uses.claim(&[1; 32], now) && uses.claim(&[2; 32], now));
        assert!(!uses.claim(&[3; 32], now));
        assert!(!uses.claim(&[1; 32], now + REMEMBERED), "still remembered");
        assert!(uses.claim(&[3; 32], now + REMEMBERED));
    }
}
