//! Timeouts for inactive peers.

use super::Alarm;
use std::{
    task::{Context, Poll},
    time::{Duration, Instant},
};

/// Timeout of a peer that has to make progress from time to time.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// Start of the inactivity; `None` while no task waits.
    since: Option<Instant>,
    alarm: Alarm,
}

impl Patience {
    /// Records progress of the peer.
    pub(crate) fn renew(&mut self) {
        self.since = None;
    }

    /// Becomes ready once the peer has made no progress for the limit.
    pub(crate) fn poll_exhausted(&mut self, context: &mut Context<'_>, limit: Duration) -> Poll<()> {
        self.poll_exhausted_by(context, limit, None)
    }

    /// Becomes ready at the limit, or once `due` has passed.
    pub(crate) fn poll_exhausted_by(
        &mut self,
        context: &mut Context<'_>,
        limit: Duration,
        due: Option<Instant>,
    ) -> Poll<()> {
        let exhausted = *self.since.get_or_insert_with(Instant::now) + limit;
        self.alarm.poll_due(context, due.map_or(exhausted, |due| due.min(exhausted)))
    }
}
