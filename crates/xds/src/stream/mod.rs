//! The transport protocol of one stream, without I/O: what to ask for, what a response brings, what to answer.
//!
//! Source: Envoy's "xDS REST and gRPC protocol". A response is an [`Offer`]; whoever judged it calls [`Stream::settle`], and the
//! ACK or NACK is the next request. What was accepted before a NACK, and before a lost connection, stays.

mod delta;
mod offer;
mod sotw;
#[cfg(test)]
mod tests;

pub use offer::{Offer, Rejection, Resource};

use crate::{Kind, Limits, backoff::Backoff, proto};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

/// How a stream speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Each response holds all resources of its kind that are wanted.
    #[default]
    StateOfTheWorld,
    /// Each response holds what is new, and the names of what is gone.
    Delta,
}

/// What is wanted of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Interest {
    /// Nothing.
    #[default]
    Nothing,
    /// Whatever the server has for this node.
    Everything,
    /// These.
    Names(BTreeSet<String>),
}

impl Interest {
    fn is_nothing(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Everything => false,
            Self::Names(names) => names.is_empty(),
        }
    }

    fn includes(&self, name: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Names(names) => names.contains(name),
        }
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        match self {
            Self::Names(names) => Some(names),
            _ => None,
        }
        .into_iter()
        .flatten()
    }
}

/// What is to be sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// In the state-of-the-world dialect.
    StateOfTheWorld(proto::DiscoveryRequest),
    /// In the delta dialect.
    Delta(proto::DeltaDiscoveryRequest),
}

/// What has come.
#[derive(Debug)]
pub enum Response {
    /// In the state-of-the-world dialect.
    StateOfTheWorld(proto::DiscoveryResponse),
    /// In the delta dialect.
    Delta(proto::DeltaDiscoveryResponse),
}

/// One server's stream, over all its connections.
#[derive(Debug)]
pub struct Stream {
    dialect: Dialect,
    node: proto::Node,
    limits: Limits,
    /// The server has been told who asks.
    introduced: bool,
    kinds: [Subscription; Kind::ALL.len()],
}

/// What goes on about one kind.
#[derive(Debug)]
struct Subscription {
    wanted: Interest,
    /// What this connection's server knows to be wanted.
    asked: Interest,
    /// What is owed to the server, and not before when.
    answer: Option<Answer>,
    not_before: Option<Instant>,
    /// Since the last response that was accepted.
    refusals: usize,
    backoff: Backoff,
    /// Of the last response on this connection.
    nonce: String,
    /// The last version that was accepted. State of the world only.
    version: String,
    /// Versions of what is kept. Delta only.
    held: BTreeMap<String, String>,
}

impl Default for Subscription {
    fn default() -> Self {
        Self {
            wanted: Interest::Nothing,
            asked: Interest::Nothing,
            answer: None,
            not_before: None,
            refusals: 0,
            backoff: Backoff::REFUSALS,
            nonce: String::new(),
            version: String::new(),
            held: BTreeMap::new(),
        }
    }
}

#[derive(Debug)]
enum Answer {
    Ack,
    Nack(String),
}

impl Stream {
    /// A stream that wants nothing yet.
    pub fn new(dialect: Dialect, node: proto::Node, limits: Limits) -> Self {
        Self { dialect, node, limits, introduced: false, kinds: Default::default() }
    }

    /// How it speaks.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// What is wanted from now on. Names beyond the limit are not asked for, and their number is returned.
    pub fn want(&mut self, kind: Kind, interest: Interest) -> usize {
        let limits = self.limits;
        let subscription = &mut self.kinds[kind.index()];
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
        let Subscription { held, wanted, .. } = subscription;
        held.retain(|name, _| wanted.includes(name));
        surplus
    }

    /// A connection begins: the server knows nothing.
    pub fn connected(&mut self) {
        self.introduced = false;
        for subscription in &mut self.kinds {
            subscription.asked = Interest::Nothing;
            subscription.answer = None;
            subscription.not_before = None;
            subscription.nonce.clear();
            // A server that was started anew may count its versions from the beginning: an old number must not make
            // it believe that its new resources are known.
            subscription.version.clear();
        }
    }

    /// Takes in a response. `None` if nobody wants its kind (any longer): it is not answered, as in Envoy.
    pub fn receive(&mut self, response: Response) -> Option<Offer> {
        match response {
            Response::StateOfTheWorld(response) => sotw::receive(self, response),
            Response::Delta(response) => delta::receive(self, response),
        }
    }

    /// What became of an offer: empty if it was accepted as it is. What was good of it counts as kept in both cases.
    /// A NACK that follows another waits for a while, or a server that repeats itself would keep both busy.
    pub fn settle(&mut self, now: Instant, offer: &Offer, rejections: &[Rejection]) {
        let subscription = &mut self.kinds[offer.kind.index()];
        if subscription.nonce != offer.nonce {
            return;
        }
        for name in &offer.removed {
            subscription.held.remove(name);
        }
        if self.dialect == Dialect::Delta {
            let rejected: BTreeSet<&str> =
                rejections.iter().map(|rejection| rejection.name.as_str()).collect();
            for resource in &offer.resources {
                if !rejected.contains(resource.name.as_str()) {
                    subscription.held.insert(resource.name.clone(), resource.version.clone());
                }
            }
        }
        let faults = offer.unreadable.iter().chain(rejections);
        let detail = offer::detail(offer.kind, faults);
        subscription.answer = Some(match detail {
            None => {
                subscription.version.clone_from(&offer.version);
                subscription.refusals = 0;
                subscription.backoff.reset();
                Answer::Ack
            }
            Some(detail) => {
                let wait = (subscription.refusals > 0).then(|| subscription.backoff.wait(1.0));
                subscription.not_before = wait.map(|wait| now + wait);
                subscription.refusals += 1;
                Answer::Nack(detail)
            }
        });
    }

    /// When there is something to be said that must wait now.
    pub fn wake(&self) -> Option<Instant> {
        self.kinds.iter().filter(|kind| kind.answer.is_some()).filter_map(|kind| kind.not_before).min()
    }

    /// The next request, if there is one, in the order of [`Kind`].
    pub fn next_request(&mut self, now: Instant) -> Option<Request> {
        let Self { dialect, node, introduced, kinds, .. } = self;
        let mut request = Kind::ALL.into_iter().find_map(|kind| {
            let subscription = &mut kinds[kind.index()];
            if !subscription.may_speak(now) {
                return None;
            }
            Some(match dialect {
                Dialect::StateOfTheWorld => sotw::request(kind, subscription),
                Dialect::Delta => delta::request(kind, subscription),
            })
        })?;
        if !*introduced {
            *introduced = true;
            match &mut request {
                Request::StateOfTheWorld(request) => request.node = Some(node.clone()),
                Request::Delta(request) => request.node = Some(node.clone()),
            }
        }
        Some(request)
    }
}

impl Subscription {
    /// There is something to say, and its time has come.
    fn may_speak(&self, now: Instant) -> bool {
        let changed = self.wanted != self.asked && !self.is_idle();
        let due = self.answer.is_some() && self.not_before.is_none_or(|time| time <= now);
        changed || due
    }

    /// Nothing is wanted, and the server knows it.
    fn is_idle(&self) -> bool {
        self.wanted.is_nothing() && self.asked.is_nothing()
    }

    /// The nonce to answer and the reason of a refusal; `None` if nothing is owed.
    fn take_answer(&mut self) -> Option<Option<proto::Status>> {
        const INVALID_ARGUMENT: i32 = 3;
        self.not_before = None;
        Some(match self.answer.take()? {
            Answer::Ack => None,
            Answer::Nack(message) => Some(proto::Status { code: INVALID_ARGUMENT, message }),
        })
    }
}
