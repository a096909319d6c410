//! Clients that begin streams only to reset them: each costs a request to a server, and its connection there.

use std::time::Duration;

/// A stream that lived for longer was wanted when it began.
const PREMATURE: Duration = Duration::from_secs(1);

/// People who leave a page before it is there reset some tens of streams.
const TOLERATED: u32 = 100;

/// How the streams of one connection have ended.
#[derive(Debug, Default)]
pub(super) struct StreamResets {
    ended: u32,
    premature: u32,
}

/// How a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    Answered,
    /// By the client, after so long.
    Reset(Duration),
}

impl StreamResets {
    /// One more has ended. True if the client does little else than resetting streams.
    pub(super) fn count(&mut self, end: StreamEnd) -> bool {
        self.ended = self.ended.saturating_add(1);
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
        ends.position(|end| resets.count(end))
    }

    #[test]
    fn whoever_resets_most_streams_at_once_is_found_out() {
        assert_eq!(ends_after(std::iter::repeat_n(EARLY, 1000)), Some(TOLERATED as usize));
        let every =
            |nth: usize| (0..10_000).map(move |at| if at % nth == 0 { EARLY } else { StreamEnd::Answered });
        assert_eq!(ends_after(every(3)), None);
        let watches = std::iter::repeat_n(StreamEnd::Reset(Duration::from_secs(30)), 1000);
        assert_eq!(ends_after(watches), None, "streams that are open until they are reset");
    }
}
