//! Detection of clients that open streams only to reset them: each costs an upstream request with its connection.

use crate::connection::Charges;
use std::time::Duration;

/// Lifetime below which a reset is premature. A stream that lived longer was wanted when it started.
const PREMATURE: Duration = Duration::from_secs(1);

/// Number of premature resets that are tolerated: leaving a page while it loads resets some tens of streams.
const TOLERATED: u32 = 100;

/// Statistics of the stream ends on a connection.
#[derive(Debug, Default)]
pub(crate) struct StreamResets {
    ended: u32,
    premature: u32,
}

/// End of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    Answered,
    /// Reset by the client after this time.
    Reset(Duration),
}

impl StreamResets {
    /// Counts the end of a stream, and adds a reset to the connection's work. Returns true if most streams of the client
    /// are reset early.
    pub(crate) fn count(&mut self, end: StreamEnd, charges: &Charges) -> bool {
        self.ended = self.ended.saturating_add(1);
        if matches!(end, StreamEnd::Reset(_)) {
            charges.reset();
        }
        if matches!(end, StreamEnd::Reset(lived) if lived < PREMATURE) {
            self.premature = self.premature.saturating_add(1);
        }
        self.premature > TOLERATED && self.premature > self.ended / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLY: StreamEnd = StreamEnd::Reset(Duration::from_millis(3));

    fn ends_after(mut ends: impl Iterator<Item = StreamEnd>) -> Option<usize> {
        let mut resets = StreamResets::default();
        ends.position(|end| resets.count(end, &Charges::default()))
    }

    #[test]
    fn clients_that_reset_most_streams_early_are_detected() {
        assert_eq!(ends_after(std::iter::repeat_n(EARLY, 1000)), Some(TOLERATED as usize));
        let every =
            |nth: usize| (0..10_000).map(move |at| if at % nth == 0 { EARLY } else { StreamEnd::Answered });
        assert_eq!(ends_after(every(3)), None);
        let watches = std::iter::repeat_n(StreamEnd::Reset(Duration::from_secs(30)), 1000);
        assert_eq!(ends_after(watches), None, "streams that are open until they are reset");
    }
}
