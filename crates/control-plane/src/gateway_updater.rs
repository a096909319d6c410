//! From a control plane's updates to the running gateway.

use crate::{
    resource_store::{ResourceDiff, Transition, origin},
    state::State,
};
use quadrille_config::Diagnostics;
use quadrille_gateway::Control;
use quadrille_xds::{Rejection, ResourceType, Update, UpdateHandler};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::Notify;

/// What the updates of all streams share: only one at a time changes the gateway.
pub(crate) struct Updates {
    control: Control,
    exclusive: tokio::sync::Mutex<()>,
    applied: Notify,
}

impl Updates {
    pub(crate) fn new(control: Control) -> Self {
        Self { control, exclusive: tokio::sync::Mutex::new(()), applied: Notify::new() }
    }

    /// Waits for an update, after which other resources may be referenced.
    pub(crate) async fn applied(&self) {
        self.applied.notified().await;
    }
}

/// Puts the updates of one stream into service.
pub(crate) struct GatewayUpdater {
    state: Arc<State>,
    updates: Arc<Updates>,
    resource_types: Vec<ResourceType>,
    connected: bool,
}

impl GatewayUpdater {
    pub(crate) fn new(state: Arc<State>, updates: Arc<Updates>, resource_types: Vec<ResourceType>) -> Self {
        Self { state, updates, resource_types, connected: false }
    }

    /// Puts as much of a diff into service as possible; returns what is wrong with the rest.
    async fn apply(&self, kind: ResourceType, diff: &ResourceDiff) -> Vec<Rejection> {
        let mut excluded: BTreeMap<String, String> = BTreeMap::new();
        // All problems are reported at once, so the second attempt succeeds, or the blame was wrong.
        for _ in 0..MAX_ATTEMPTS {
            let transition = self.state.store().transition(diff, &excluded, kind);
            let problems = match self.put_into_service(transition).await {
                Ok(()) => {
                    let rejected = excluded.into_iter();
                    return rejected.map(|(name, reason)| Rejection { name, reason }).collect();
                }
                Err(problems) => problems,
            };
            let before = excluded.len();
            for name in diff.changed_names() {
                let origin = origin(kind, name);
                let blamed = problems.iter().filter(|problem| problem.concerns(&origin));
                let blamed: Vec<String> = blamed.map(ToString::to_string).collect();
                if !blamed.is_empty() {
                    excluded.entry(name.to_owned()).or_insert_with(|| blamed.join("; "));
                }
            }
            if excluded.len() == before {
                let reason = problems.lines().join("; ");
                let all = diff
                    .changed_names()
                    .map(str::to_owned)
                    .chain(diff.changed_names().next().is_none().then(String::new));
                return all.map(|name| Rejection { name, reason: reason.clone() }).collect();
            }
        }
        let reason = "the rest of this response could not be put into service without it";
        diff.changed_names()
            .map(|name| Rejection {
                name: name.to_owned(),
                reason: excluded.get(name).cloned().unwrap_or_else(|| reason.to_owned()),
            })
            .collect()
    }

    async fn put_into_service(&self, transition: Transition) -> Result<(), Diagnostics> {
        let model = self.state.store().model(&transition)?;
        match self.updates.control.apply(model).await {
            Ok(applied) => {
                let (listeners, made) = (applied.listeners.len(), applied.made);
                tracing::info!(took = ?applied.took, listeners, ?made, "configuration applied");
                self.state.store().commit(transition);
                Ok(())
            }
            Err(problems) => Err(problems.into()),
        }
    }
}

impl UpdateHandler for GatewayUpdater {
    async fn handle(&mut self, update: &Update) -> Vec<Rejection> {
        let exclusive = self.updates.exclusive.lock().await;
        let mut diff = self.state.store().diff(update);
        let warnings = std::mem::take(&mut diff.warnings).unless_known(&mut self.state.warned());
        for warning in warnings.lines() {
            tracing::warn!("{warning}");
        }
        let mut rejections = diff.rejections.clone();
        if !diff.is_empty() {
            rejections.extend(self.apply(update.kind, &diff).await);
        }
        drop(exclusive);
        self.updates.applied.notify_one();
        let accepted = rejections.is_empty() && update.unreadable.is_empty();
        self.state.stats.count_response(update.kind, accepted);
        for Rejection { name, reason } in update.unreadable.iter().chain(&rejections) {
            let resource = origin(update.kind, name);
            if diff.closes(name) {
                tracing::error!(%resource, reason, "rejected, and closed: it decides who is let in");
                self.state.stats.count_closed(update.kind);
            } else {
                tracing::error!(%resource, reason, "rejected; the active one stays");
            }
        }
        {
            let mut refusals = self.state.refusals();
            refusals.note(update, &rejections, |name| diff.closes(name));
            self.state.stats.show_refused(update.kind, refusals.count(update.kind));
        }
        for (listener, missing) in self.state.store().warming_listeners() {
            tracing::debug!(listener, ?missing, "a listener waits for resources");
        }
        rejections
    }

    fn connection_changed(&mut self, state: Result<(), &str>) {
        let connected = state.is_ok();
        self.state.stats.count_connection(&self.resource_types, self.connected, connected);
        self.connected = connected;
    }
}

const MAX_ATTEMPTS: usize = 3;
