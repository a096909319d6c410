//! Single use of early data (0-RTT): tracks the tickets that have been used for it (RFC 8446 section 8.1).
//!
//! Gateways reject a replayed first flight once its ticket's age no longer fits; BoringSSL allows a minute of
//! deviation either way. A use therefore has to be remembered for two minutes, and two more for clocks that differ. A
//! memory that started later than that cannot tell whether a use is the first.

use std::{
    collections::HashSet,
    future::Future,
    pin::Pin,
    time::{Duration, Instant},
};

/// Identifies a use: a digest of the ticket.
pub type UseId = [u8; 32];

/// The result of a claim: whether a use is the first, immediate or pending. Also false if that cannot be determined.
pub enum Claim {
    /// The result is known.
    Now(bool),
    /// The claim is in progress elsewhere.
    Pending(Pin<Box<dyn Future<Output = bool> + Send>>),
}

/// Minimum time for which a use is remembered.
pub(super) const REMEMBERED: Duration = Duration::from_secs(240);

/// Uses seen by this process, in two generations. Time is an argument.
#[derive(Debug)]
pub(super) struct Uses {
    young: HashSet<UseId>,
    old: HashSet<UseId>,
    /// Start of the younger generation.
    since: Instant,
    /// Capacity of each generation.
    capacity: usize,
}

impl Uses {
    /// Remembers up to `capacity` uses in each [`REMEMBERED`]; uses above it are not accepted as the first.
    pub(super) fn new(capacity: usize, now: Instant) -> Self {
        Self { young: HashSet::new(), old: HashSet::new(), since: now, capacity }
    }

    /// Returns whether this is the first use.
    pub(super) fn claim(&mut self, id: &UseId, now: Instant) -> bool {
        self.age(now);
        self.young.len() < self.capacity && !self.old.contains(id) && self.young.insert(*id)
    }

    /// Returns whether this use is known, and remembers it if there is room.
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
    fn a_memory_beside_another_store_detects_repeats_only() {
        let now = Instant::now();
        let mut uses = Uses::new(2, now);
        assert!(!uses.repeats(&[1; 32], now) && uses.repeats(&[1; 32], now));
        assert!(!uses.repeats(&[2; 32], now) && !uses.repeats(&[3; 32], now));
        assert!(!uses.repeats(&[3; 32], now), "it was not remembered");
        assert!(uses.repeats(&[1; 32], now + REMEMBERED));
    }

    #[test]
    fn a_full_memory_rejects_and_does_not_forget() {
        let now = Instant::now();
        let mut uses = Uses::new(2, now);
        assert!(uses.claim(&[1; 32], now) && uses.claim(&[2; 32], now));
        assert!(!uses.claim(&[3; 32], now));
        assert!(!uses.claim(&[1; 32], now + REMEMBERED), "still remembered");
        assert!(uses.claim(&[3; 32], now + REMEMBERED));
    }
}
