//! Audit log: a line for every rejected operation; above a rate, some lines and a count.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Lines a second for one client.
const MAX_LINES: u32 = 100;
const SECOND: Duration = Duration::from_secs(1);

/// Refusals of one client.
pub(super) struct Audit {
    client: String,
    second: Mutex<Option<Second>>,
}

struct Second {
    began: Instant,
    lines: u32,
    left_out: u64,
}

impl Audit {
    pub(super) fn new(client: String) -> Self {
        Self { client, second: Mutex::new(None) }
    }

    /// Logs a refused operation.
    pub(super) fn refused(&self, now: Instant, reason: &'static str, operation: &str, key: &str) {
        if self.may_write(now) {
            tracing::warn!(target: TARGET, client = self.client, operation, key, reason, "operation refused");
        }
    }

    /// Returns whether one more line may be written.
    pub(super) fn may_write(&self, now: Instant) -> bool {
        let (line, left_out) = self.count(now);
        if left_out > 0 {
            tracing::warn!(target: TARGET, client = self.client, left_out, "refusals omitted from the log");
        }
        line
    }

    /// Returns whether to write a line, and how many were omitted before.
    fn count(&self, now: Instant) -> (bool, u64) {
        let mut second = self.second.lock().unwrap_or_else(PoisonError::into_inner);
        let before = second.take();
        let goes_on = |second: &Second| now.saturating_duration_since(second.began) < SECOND;
        let left_out = before.as_ref().filter(|second| !goes_on(second)).map_or(0, |over| over.left_out);
        let new = Second { began: now, lines: 0, left_out: 0 };
        let current = second.insert(before.filter(goes_on).unwrap_or(new));
        current.lines += 1;
        let line = current.lines <= MAX_LINES;
        current.left_out += u64::from(!line);
        (line, left_out)
    }
}

/// Target of these lines in the log.
pub(super) const TARGET: &str = "audit";

#[cfg(test)]
mod tests {
    use super::{Audit, MAX_LINES};
    use std::time::{Duration, Instant};

    #[test]
    fn some_lines_a_second_and_then_a_number() {
        let (audit, start) = (Audit::new("client".into()), Instant::now());
        let lines = (0..1000).filter(|_| audit.count(start).0).count();
        assert_eq!(lines, MAX_LINES as usize);
        assert_eq!(audit.count(start + Duration::from_secs(2)), (true, 900));
        assert_eq!(audit.count(start + Duration::from_secs(2)), (true, 0));
    }
}
