//! Applies updates of control planes to the running gateway.

use crate::{
    resource_store::{ResourceDiff, Transition, origin},
    state::State,
};
use quadrille_config::Diagnostics;
use quadrille_gateway::Control;
use quadrille_xds::{Outcome, Rejection, ResourceType, Update, UpdateHandler};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::Notify;

/// State shared by the updates of all streams. One update at a time changes the gateway.
pub(crate) struct Updates {
    control: Control,
    exclusive: tokio::sync::Mutex<()>,
    applied: Notify,
}

impl Updates {
    pub(crate) fn new(control: Control) -> Self {
        Self { control, exclusive: tokio::sync::Mutex::new(()), applied: Notify::new() }
    }

    /// Waits for an update to be applied, after which other resources may be referenced.
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

    /// Puts as much of a diff into service as possible, and returns the rejections of the rest.
    async fn apply(&self, kind: ResourceType, diff: &mut ResourceDiff) -> Vec<Rejection> {
        let mut excluded = Excluded::new();
        let mut reason = "the rest of this response could not be applied without it".to_owned();
        // All problems are reported at once, so the second attempt succeeds unless the wrong resource was excluded.
        for _ in 0..MAX_ATTEMPTS {
            let Err(problems) = self.attempt(kind, diff, &excluded).await else {
                return rejections(excluded);
            };
            if !self.blame(kind, diff, &problems, &mut excluded) {
                reason = problems.lines().join("; ");
                break;
            }
        }
        let names: Vec<String> = diff.changed_names().map(str::to_owned).collect();
        for name in names {
            if excluded.contains_key(&name) {
                continue;
            }
            if self.state.store().closes(kind, &name, diff.closed_routes(&name).iter()) {
                diff.close(&name);
            }
            excluded.insert(name, reason.clone());
        }
        if excluded.is_empty() {
            excluded.insert(String::new(), reason);
        }
        // Removals are applied even if all changes are excluded.
        if diff.takes_away() && self.attempt(kind, diff, &excluded).await.is_err() {
            diff.close_nothing();
        }
        rejections(excluded)
    }

    async fn attempt(
        &self,
        kind: ResourceType,
        diff: &ResourceDiff,
        excluded: &Excluded,
    ) -> Result<(), Diagnostics> {
        let transition = self.state.store().transition(diff, excluded, kind);
        self.put_into_service(transition).await
    }

    /// Excludes the resources of a diff that these problems concern, and closes those whose access rules were
    /// rejected. Returns whether any was excluded.
    fn blame(
        &self,
        kind: ResourceType,
        diff: &mut ResourceDiff,
        problems: &Diagnostics,
        excluded: &mut Excluded,
    ) -> bool {
        let before = excluded.len();
        let names: Vec<String> = diff.changed_names().map(str::to_owned).collect();
        for name in names {
            let origin = origin(kind, &name);
            let blamed = || problems.iter().filter(|problem| problem.concerns(&origin));
            if blamed().next().is_none() || excluded.contains_key(&name) {
                continue;
            }
            let closes = {
                let store = self.state.store();
                let closed_routes = diff.closed_routes(&name).iter();
                store.closes(kind, &name, blamed()) || store.closes(kind, &name, closed_routes)
            };
            if closes {
                diff.close(&name);
            }
            excluded.insert(name, blamed().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        }
        excluded.len() > before
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
        let mut rejections = std::mem::take(&mut diff.rejections);
        if !diff.is_empty() {
            rejections.extend(self.apply(update.kind, &mut diff).await);
        }
        for rejection in rejections.iter_mut().filter(|rejection| diff.closes(&rejection.name)) {
            rejection.outcome = Outcome::Closed;
        }
        let is_whole = |name: &str| rejections.iter().any(|rejection| rejection.name == name);
        let partial: Vec<Rejection> = diff.partial().filter(|rejection| !is_whole(&rejection.name)).collect();
        for Rejection { name, reason, .. } in &partial {
            let resource = origin(update.kind, name);
            tracing::warn!(%resource, reason, "in service, except for routes that get a 503 response");
        }
        drop(exclusive);
        self.updates.applied.notify_one();
        let is_accepted = rejections.is_empty() && partial.is_empty() && diff.still_partial.is_empty();
        let accepted = is_accepted && update.unreadable.is_empty();
        self.state.stats.count_response(update.kind, accepted);
        for Rejection { name, reason, outcome } in update.unreadable.iter().chain(&rejections) {
            let resource = origin(update.kind, name);
            if *outcome == Outcome::Closed {
                tracing::error!(%resource, reason, "rejected and closed: cannot enforce its access rules");
                self.state.stats.count_closed(update.kind);
            } else {
                tracing::error!(%resource, reason, "rejected; the active version stays in service");
            }
        }
        rejections.extend(partial);
        rejections.append(&mut diff.still_partial);
        {
            let mut refusals = self.state.refusals();
            refusals.note(update, &rejections);
            self.state.stats.show_refused(update.kind, refusals.count(update.kind));
        }
        for (listener, missing) in self.state.store().warming_listeners() {
            tracing::debug!(listener, ?missing, "a listener is waiting for resources");
        }
        rejections
    }

    fn ended(&mut self) {
        if std::mem::take(&mut self.connected) {
            self.state.stats.count_end(&self.resource_types);
        }
    }

    fn connection_changed(&mut self, state: Result<(), &str>) {
        let connected = state.is_ok();
        self.state.stats.count_connection(&self.resource_types, self.connected, connected);
        self.connected = connected;
    }
}

/// Resources excluded from a diff: name and reason.
type Excluded = BTreeMap<String, String>;

fn rejections(excluded: Excluded) -> Vec<Rejection> {
    excluded.into_iter().map(|(name, reason)| Rejection::new(name, reason)).collect()
}

const MAX_ATTEMPTS: usize = 3;
