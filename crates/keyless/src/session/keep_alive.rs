//! How a client notices that its server is dead: by its silence, which pings may break.

use std::time::{Duration, Instant};

/// When a client's session takes its server for dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepAlive {
    /// Never: each request has a deadline, and that is enough.
    Off,
    /// When the server leaves requests unanswered and sends nothing for this time. It is not pinged.
    Replies {
        /// How long it may be silent.
        stall: Duration,
    },
    /// The same, but the server is pinged halfway, so that one that computes slowly is told from one that is dead. It
    /// is pinged on a quiet connection as well, and once at the beginning, to learn whether it accepts this client.
    Pings {
        /// How long a connection may be quiet before a ping.
        idle: Duration,
        /// How long the server may be silent; half of it is left for the answer to a ping.
        stall: Duration,
    },
}

/// The silence of one server.
pub(super) struct SilenceTimer {
    keep_alive: KeepAlive,
    /// When the server last sent anything, or was first asked something after that.
    heard: Instant,
    /// Since when a ping waits for anything to come.
    pinged: Option<Instant>,
}

/// What is to be done about the silence.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Wait,
    Ping,
    Dead,
}

impl SilenceTimer {
    /// With [`KeepAlive::Pings`], the first ping is for the caller to send at once.
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

    /// The server, of which nothing was wanted, is asked something.
    pub(super) fn first_request(&mut self, now: Instant) {
        self.heard = now;
    }

    /// When [`tick`](Self::tick) is due; `waiting` says whether requests are unanswered.
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
