//! How long somebody is waited for who does nothing.

use super::Alarm;
use std::{
    task::{Context, Poll},
    time::{Duration, Instant},
};

/// A peer that must move from time to time.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// Since when it has not; `None` while nobody waits.
    since: Option<Instant>,
    alarm: Alarm,
}

impl Patience {
    /// The peer has moved.
    pub(crate) fn renew(&mut self) {
        self.since = None;
    }

    /// The peer has not moved: ready once that has lasted for the limit.
    pub(crate) fn poll_exhausted(&mut self, context: &mut Context<'_>, limit: Duration) -> Poll<()> {
        self.poll_exhausted_by(context, limit, None)
    }

    /// The same, or once `due` has passed.
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
