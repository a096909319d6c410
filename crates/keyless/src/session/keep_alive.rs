//! Detection of dead servers by their silence, which pings may interrupt.

use std::time::{Duration, Instant};

/// Condition for considering a server dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepAlive {
    /// Never: the deadline of each request suffices.
    Off,
    /// After this time without data while requests are open. The server is not pinged.
    Replies {
        /// Maximum silence.
        stall: Duration,
    },
    /// Like `Replies`, but the server is pinged halfway, which distinguishes a slow server from a dead one. It is
    /// pinged on an idle connection as well, and once at the beginning, to learn whether it accepts this client.
    Pings {
        /// Idle time of a connection before a ping.
        idle: Duration,
        /// Maximum silence; half of it is the time for the pong.
        stall: Duration,
    },
}

/// Silence of one server.
pub(super) struct SilenceTimer {
    keep_alive: KeepAlive,
    /// Time of the last received data, or of the first request after it.
    heard: Instant,
    /// Time of the ping to which nothing has been received yet.
    pinged: Option<Instant>,
}

/// Action required by the silence.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Wait,
    Ping,
    Dead,
}

impl SilenceTimer {
    /// Creates a timer. With [`KeepAlive::Pings`], the caller must send the first ping at once.
    pub(super) fn new(now: Instant, keep_alive: KeepAlive) -> Self {
        let pinged = matches!(keep_alive, KeepAlive::Pings { .. }).then_some(now);
        Self { keep_alive, heard: now, pinged }
    }

    pub(super) fn sends_pings(&self) -> bool {
        matches!(self.keep_alive, KeepAlive::Pings { .. })
    }

    pub(super) fn received(&mut self, now: Instant) {
        self.heard = now;
        self.pinged = None;
    }

    /// Records a request to an idle server.
    pub(super) fn first_request(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Time at which [`tick`](Self::tick) is due; `waiting` says whether requests are open.
    pub(super) fn due(&self, waiting: bool) -> Option<Instant> {
        match (self.keep_alive, self.pinged) {
            (KeepAlive::Off, _) => None,
            (KeepAlive::Replies { stall }, _) => waiting.then(|| self.heard + stall),
            (KeepAlive::Pings { stall, .. }, Some(pinged)) => Some(pinged + stall / 2),
            (KeepAlive::Pings { idle, stall }, None) => {
                Some(self.heard + if waiting { idle.min(stall / 2) } else { idle })
            }
        }
    }

    pub(super) fn tick(&mut self, now: Instant, waiting: bool) -> Verdict {
        if self.due(waiting).is_none_or(|due| due > now) {
            return Verdict::Wait;
        }
        if self.sends_pings() && self.pinged.is_none() {
            self.pinged = Some(now);
            return Verdict::Ping;
        }
        Verdict::Dead
    }
}
