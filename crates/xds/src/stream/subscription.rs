//! The state of the subscription to one resource type.

use super::interest::Interest;
use crate::{backoff::Backoff, proto};
use std::{collections::BTreeMap, time::Instant};

/// What goes on about one kind.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) wanted: Interest,
    /// What this connection's server knows to be wanted.
    pub(super) requested: Interest,
    /// What is owed to the server, and not before when.
    pub(super) answer: Option<Answer>,
    pub(super) not_before: Option<Instant>,
    /// Since the last response that was accepted.
    pub(super) consecutive_nacks: usize,
    pub(super) backoff: Backoff,
    /// Of the last response on this connection.
    pub(super) nonce: String,
    /// The last version that was accepted. State of the world only.
    pub(super) version: String,
    /// Versions of what is kept. Delta only.
    pub(super) accepted: BTreeMap<String, String>,
}

impl Default for Subscription {
    fn default() -> Self {
        Self {
            wanted: Interest::Nothing,
            requested: Interest::Nothing,
            answer: None,
            not_before: None,
            consecutive_nacks: 0,
            backoff: Backoff::NACKS,
            nonce: String::new(),
            version: String::new(),
            accepted: BTreeMap::new(),
        }
    }
}

#[derive(Debug)]
pub(super) enum Answer {
    Ack,
    Nack(String),
}

impl Subscription {
    /// There is something to say, and its time has come.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let changed = self.wanted != self.requested && !self.is_idle();
        changed || self.owes_answer(now)
    }

    /// An answer is owed, and its time has come.
    pub(super) fn owes_answer(&self, now: Instant) -> bool {
        self.answer.is_some() && self.not_before.is_none_or(|time| time <= now)
    }

    /// Nothing is wanted, and the server knows it.
    pub(super) fn is_idle(&self) -> bool {
        self.wanted.is_nothing() && self.requested.is_nothing()
    }

    /// The nonce to answer and the reason of a refusal; `None` if nothing is owed.
    pub(super) fn take_answer(&mut self) -> Option<Option<proto::Status>> {
        const INVALID_ARGUMENT: i32 = 3;
        self.not_before = None;
        Some(match self.answer.take()? {
            Answer::Ack => None,
            Answer::Nack(message) => Some(proto::Status { code: INVALID_ARGUMENT, message }),
        })
    }
}
