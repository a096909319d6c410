//! Rate limit for log messages that every request might cause.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Minimum time between two messages.
const PAUSE: Duration = Duration::from_secs(1);

static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Allows one message a second, for all threads together.
#[derive(Default)]
pub(crate) struct Paced {
    /// Time from which the next message is allowed, in milliseconds since the epoch.
    due: AtomicU64,
    /// Number of messages since the last one that was logged.
    omitted: AtomicU64,
}

impl Paced {
    pub(crate) const fn new() -> Self {
        Self { due: AtomicU64::new(0), omitted: AtomicU64::new(0) }
    }

    /// Returns the number of messages omitted before, if one may be logged now. The caller logs it.
    pub(crate) fn is_due(&self) -> Option<u64> {
        self.is_due_after(EPOCH.elapsed())
    }

    fn is_due_after(&self, elapsed: Duration) -> Option<u64> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (now, next) = (millis(elapsed), millis(elapsed + PAUSE));
        let due = self.due.load(Ordering::Relaxed);
        // If two threads are due at the same moment, one succeeds.
        let is_due =
            due <= now && self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_due {
            return Some(self.omitted.swap(0, Ordering::Relaxed));
        }
        self.omitted.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second() {
        let paced = Paced::default();
        let at = |milliseconds| paced.is_due_after(Duration::from_millis(milliseconds));
        assert_eq!([0, 10, 999, 1000, 1001, 5000].map(at), [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
