//! From offers to the running gateway.

use crate::{
    Shared,
    plane::{Planes, Stream},
    world::{Proposal, Step, origin},
};
use quadrille_gateway::Control;
use quadrille_xds::{Consumer, Kind, Offer, Rejection, Subscriptions};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::Notify;

/// Keeps up the streams that are needed.
pub(crate) struct Follower {
    shared: Arc<Shared>,
    planes: Planes,
    applying: Arc<Applying>,
    running: Vec<(Stream, Subscriptions)>,
}

/// What all streams share: the gateway is changed by one at a time.
struct Applying {
    control: Control,
    one: tokio::sync::Mutex<()>,
    /// Other resources may be wanted now.
    changed: Notify,
}

impl Follower {
    pub(crate) fn new(shared: Arc<Shared>, control: Control, planes: Planes) -> Self {
        let applying = Applying { control, one: tokio::sync::Mutex::new(()), changed: Notify::new() };
        Self { shared, planes, applying: Arc::new(applying), running: Vec::new() }
    }

    /// Never ends.
    pub(crate) async fn run(mut self) {
        loop {
            self.subscribe();
            self.applying.changed.notified().await;
        }
    }

    /// Tells each stream what is wanted of it, and starts those that are missing.
    fn subscribe(&mut self) {
        let needed = {
            let world = self.shared.world();
            self.planes.needed(world.dynamic(), &world.wanted())
        };
        for (stream, subscriptions) in &self.running {
            let interests =
                needed.iter().find(|(needed, _)| needed == stream).map(|(_, interests)| interests);
            for kind in stream.kinds() {
                let interest = interests.and_then(|interests| interests.get(&kind)).cloned();
                subscriptions.want(kind, interest.unwrap_or_default());
            }
        }
        for (stream, interests) in needed {
            if self.running.iter().any(|(known, _)| *known == stream) {
                continue;
            }
            if self.running.len() >= MOST_STREAMS {
                tracing::error!(
                    most = MOST_STREAMS,
                    "too many control planes are named; this one is not asked"
                );
                continue;
            }
            match self.planes.client(&stream) {
                Ok(client) => {
                    let subscriptions = Subscriptions::default();
                    for (kind, interest) in interests {
                        subscriptions.want(kind, interest);
                    }
                    let judge = Judge {
                        shared: self.shared.clone(),
                        applying: self.applying.clone(),
                        kinds: stream.kinds(),
                        up: false,
                    };
                    tokio::spawn(client.run(subscriptions.clone(), judge));
                    self.running.push((stream, subscriptions));
                }
                Err(problem) => tracing::error!(problem, "resources are named that cannot be asked for"),
            }
        }
    }
}

/// Takes the offers of one stream.
struct Judge {
    shared: Arc<Shared>,
    applying: Arc<Applying>,
    kinds: Vec<Kind>,
    up: bool,
}

impl Consumer for Judge {
    async fn offer(&mut self, offer: &Offer) -> Vec<Rejection> {
        let one = self.applying.one.lock().await;
        let proposal = self.shared.world().read(offer);
        for warning in &proposal.warnings {
            tracing::warn!("{warning}");
        }
        let mut rejections = proposal.rejections.clone();
        if !proposal.is_empty() {
            rejections.extend(self.apply(offer.kind, &proposal).await);
        }
        drop(one);
        self.applying.changed.notify_one();
        let accepted = rejections.is_empty() && offer.unreadable.is_empty();
        self.shared.figures.answered(offer.kind, accepted);
        for Rejection { name, reason } in offer.unreadable.iter().chain(&rejections) {
            tracing::error!(resource = origin(offer.kind, name), reason, "refused; what was in force stays");
        }
        for (listener, missing) in self.shared.world().waiting() {
            tracing::debug!(listener, ?missing, "a listener waits");
        }
        rejections
    }

    fn connected(&mut self, state: Result<(), &str>) {
        let up = state.is_ok();
        self.shared.figures.connected(&self.kinds, self.up, up);
        self.up = up;
    }
}

impl Judge {
    /// Puts as much of a proposal into service as can be; what is wrong with the rest.
    async fn apply(&self, kind: Kind, proposal: &Proposal) -> Vec<Rejection> {
        let mut without: BTreeMap<String, String> = BTreeMap::new();
        // What is wrong is named all at once, so the second attempt is good, or the blame was wrong.
        for _ in 0..ATTEMPTS {
            let step = self.shared.world().next(proposal, &without, kind);
            let problems = match self.serve(step).await {
                Ok(()) => {
                    let rejected = without.into_iter();
                    return rejected.map(|(name, reason)| Rejection { name, reason }).collect();
                }
                Err(problems) => problems,
            };
            let before = without.len();
            for name in proposal.names() {
                let origin = origin(kind, name);
                let blamed: Vec<&str> =
                    problems.iter().filter(|p| p.contains(&origin)).map(String::as_str).collect();
                if !blamed.is_empty() {
                    without.entry(name.to_owned()).or_insert_with(|| blamed.join("; "));
                }
            }
            if without.len() == before {
                let reason = problems.join("; ");
                let all = proposal
                    .names()
                    .map(str::to_owned)
                    .chain(proposal.names().next().is_none().then(String::new));
                return all.map(|name| Rejection { name, reason: reason.clone() }).collect();
            }
        }
        let reason = "the others of this response could not be put into service without it";
        proposal
            .names()
            .map(|name| Rejection {
                name: name.to_owned(),
                reason: without.get(name).cloned().unwrap_or_else(|| reason.to_owned()),
            })
            .collect()
    }

    async fn serve(&self, step: Step) -> Result<(), Vec<String>> {
        let model = self.shared.world().model(&step)?;
        match self.applying.control.apply(model).await {
            Ok(applied) => {
                let (listeners, made) = (applied.listeners.len(), applied.made);
                tracing::info!(took = ?applied.took, listeners, ?made, "configuration applied");
                self.shared.world().take(step);
                Ok(())
            }
            Err(problems) => Err(problems.iter().map(ToString::to_string).collect()),
        }
    }
}

const ATTEMPTS: usize = 3;

/// Each is a connection.
const MOST_STREAMS: usize = 64;
