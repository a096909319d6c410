//! Lines of the log that could come with every request.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// From one line to the next.
const PAUSE: Duration = Duration::from_secs(1);

static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Lets one line a second pass, for all threads together.
#[derive(Default)]
pub(crate) struct Paced {
    /// When the next one may come, in milliseconds since the epoch.
    due: AtomicU64,
}

impl Paced {
    /// Whether a line may be written now. The caller writes it.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due_after(EPOCH.elapsed())
    }

    fn is_due_after(&self, elapsed: Duration) -> bool {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (now, next) = (millis(elapsed), millis(elapsed + PAUSE));
        let due = self.due.load(Ordering::Relaxed);
        // Whoever comes second at the same moment has nothing to say.
        due <= now && self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second() {
        let paced = Paced::default();
        let at = |milliseconds| paced.is_due_after(Duration::from_millis(milliseconds));
        assert_eq!([0, 10, 999, 1000, 1001, 5000].map(at), [true, false, false, true, false, true]);
    }
}
