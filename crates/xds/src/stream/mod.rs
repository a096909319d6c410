//! Transport protocol of one stream, without I/O: subscriptions, updates, ACKs and NACKs.
//!
//! Source: Envoy's "xDS REST and gRPC protocol". A response is parsed to an [`Update`]; the caller validates it and
//! calls [`Stream::answer`], and the next request is the ACK or NACK. Resources that were accepted before a NACK, or
//! before a lost connection, are kept.

mod delta;
mod interest;
mod message;
mod sotw;
mod subscription;
#[cfg(test)]
mod tests;
mod update;

pub use interest::Interest;
pub use message::{Request, Response};
pub use update::{Outcome, Rejection, Resource, Update};

use crate::{Limits, ResourceType, proto, resource_type};
use std::{collections::BTreeSet, time::Instant};
use subscription::{Answer, Subscription};

/// Variant of the transport protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// State of the world: each response holds all subscribed resources of its type.
    #[default]
    StateOfTheWorld,
    /// Delta: each response holds new and changed resources, and the names of removed ones.
    Delta,
}

/// State of the stream to one control plane, across all its connections.
#[derive(Debug)]
pub struct Stream {
    dialect: Dialect,
    node: proto::Node,
    limits: Limits,
    /// Whether the node's identity was sent on this connection.
    node_sent: bool,
    kinds: [Subscription; ResourceType::ALL.len()],
}

impl Stream {
    /// Creates a stream without subscriptions.
    pub fn new(dialect: Dialect, node: proto::Node, limits: Limits) -> Self {
        Self { dialect, node, limits, node_sent: false, kinds: Default::default() }
    }

    /// Returns the protocol variant.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Replaces the subscription of a type. Names beyond the limit are ignored; returns their number.
    pub fn subscribe(&mut self, kind: ResourceType, interest: Interest) -> usize {
        let limits = self.limits;
        let subscription = &mut self.kinds[kind as usize];
        let mut surplus = 0;
        subscription.wanted = match interest {
            Interest::Names(names) => {
                let sane = |name: &String| !name.is_empty() && name.len() <= limits.name;
                let all = names.len();
                let kept: BTreeSet<_> = names.into_iter().filter(sane).take(limits.resources).collect();
                surplus = all - kept.len();
                Interest::Names(kept)
            }
            other => other,
        };
        let Subscription { accepted, wanted, .. } = subscription;
        accepted.retain(|name, _| wanted.includes(name));
        surplus
    }

    /// Resets the state that belongs to a connection, when a new one begins.
    pub fn connected(&mut self) {
        self.node_sent = false;
        for subscription in &mut self.kinds {
            subscription.requested = Interest::Nothing;
            subscription.answer = None;
            subscription.not_before = None;
            subscription.nonce.clear();
            // A restarted control plane may count versions from the beginning: an old number must not make it assume
            // that its new resources are known.
            subscription.version.clear();
        }
    }

    /// Parses a response. `None` if there is no subscription (any longer) to its type: it is not acknowledged, as in
    /// Envoy.
    pub fn receive(&mut self, response: Response) -> Option<Update> {
        let type_url = match &response {
            Response::StateOfTheWorld(response) => &response.type_url,
            Response::Delta(response) => &response.type_url,
        };
        let kind = resource_type::from_type_url(type_url)?;
        let subscription = &mut self.kinds[kind as usize];
        if subscription.wanted.is_nothing() {
            return None;
        }
        Some(match response {
            Response::StateOfTheWorld(response) => sotw::receive(kind, subscription, &self.limits, response),
            Response::Delta(response) => delta::receive(kind, subscription, &self.limits, response),
        })
    }

    /// Records the result of an update: without rejections, it is acknowledged. Its valid resources count as accepted
    /// in both cases. A NACK that follows another is delayed; otherwise a control plane that repeats itself would
    /// keep both ends busy.
    pub fn answer(&mut self, now: Instant, update: &Update, rejections: &[Rejection]) {
        let subscription = &mut self.kinds[update.kind as usize];
        if subscription.nonce != update.nonce {
            return;
        }
        for name in &update.removed {
            subscription.accepted.remove(name);
        }
        // The control plane would not resend a resource that the client claims to have.
        for closed in rejections.iter().filter(|rejection| rejection.outcome == Outcome::Closed) {
            subscription.accepted.remove(&closed.name);
        }
        if self.dialect == Dialect::Delta {
            let rejected = rejections.iter().filter(|rejection| rejection.outcome != Outcome::Partial);
            let rejected: BTreeSet<&str> = rejected.map(|rejection| rejection.name.as_str()).collect();
            for resource in &update.resources {
                if !rejected.contains(resource.name.as_str()) {
                    subscription.accepted.insert(resource.name.clone(), resource.version.clone());
                }
            }
        }
        let faults = update.unreadable.iter().chain(rejections);
        let detail = update::nack_detail(update.kind, faults);
        subscription.answer = Some(match detail {
            None => {
                subscription.version.clone_from(&update.version);
                subscription.consecutive_nacks = 0;
                subscription.backoff.reset();
                Answer::Ack
            }
            Some(detail) => {
                let wait = (subscription.consecutive_nacks > 0).then(|| subscription.backoff.wait(1.0));
                subscription.not_before = wait.map(|wait| now + wait);
                subscription.consecutive_nacks += 1;
                Answer::Nack(detail)
            }
        });
    }

    /// Returns the time at which a delayed request becomes due.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.kinds.iter().filter(|kind| kind.answer.is_some()).filter_map(|kind| kind.not_before).min()
    }

    /// Returns the next request, if one is due, in the order of [`ResourceType`].
    pub fn next_request(&mut self, now: Instant) -> Option<Request> {
        let Self { dialect, node, node_sent, kinds, .. } = self;
        let mut request = ResourceType::ALL.into_iter().find_map(|kind| {
            let subscription = &mut kinds[kind as usize];
            if !subscription.is_due(now) {
                return None;
            }
            Some(match dialect {
                Dialect::StateOfTheWorld => sotw::request(kind, subscription),
                Dialect::Delta => delta::request(kind, subscription, now),
            })
        })?;
        if !*node_sent {
            *node_sent = true;
            match &mut request {
                Request::StateOfTheWorld(request) => request.node = Some(node.clone()),
                Request::Delta(request) => request.node = Some(node.clone()),
            }
        }
        Some(request)
    }
}
