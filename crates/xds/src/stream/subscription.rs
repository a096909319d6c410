//! The state of the subscription to one resource type.

use super::interest::Interest;
use crate::{backoff::Backoff, proto};
use std::{collections::BTreeMap, time::Instant};

/// State of the subscription to one resource type.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) wanted: Interest,
    /// Subscription that was sent on this connection.
    pub(super) requested: Interest,
    /// ACK or NACK to be sent, not before `not_before`.
    pub(super) answer: Option<Answer>,
    pub(super) not_before: Option<Instant>,
    /// Number of NACKs since the last accepted response.
    pub(super) consecutive_nacks: usize,
    pub(super) backoff: Backoff,
    /// Nonce of the last response on this connection.
    pub(super) nonce: String,
    /// Last accepted version. State of the world only.
    pub(super) version: String,
    /// Versions of accepted resources. Delta only.
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
    /// Returns whether a request is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let changed = self.wanted != self.requested && !self.is_idle();
        changed || self.owes_answer(now)
    }

    /// Returns whether an ACK or NACK is due.
    pub(super) fn owes_answer(&self, now: Instant) -> bool {
        self.answer.is_some() && self.not_before.is_none_or(|time| time <= now)
    }

    /// Returns whether the subscription is empty, and the control plane has been notified.
    pub(super) fn is_idle(&self) -> bool {
        self.wanted.is_nothing() && self.requested.is_nothing()
    }

    /// Takes the pending ACK, or the status of a NACK; `None` if neither is pending.
    pub(super) fn take_answer(&mut self) -> Option<Option<proto::Status>> {
        const INVALID_ARGUMENT: i32 = 3;
        self.not_before = None;
        Some(match self.answer.take()? {
            Answer::Ack => None,
            Answer::Nack(message) => Some(proto::Status { code: INVALID_ARGUMENT, message }),
        })
    }
}
