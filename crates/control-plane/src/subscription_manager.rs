//! Manages the open streams and their subscriptions.

use crate::{
    control_planes::{ControlPlanes, StreamKey},
    gateway_updater::{GatewayUpdater, Updates},
    state::State,
};
use quadrille_config::Problem;
use quadrille_gateway::Control;
use quadrille_xds::{Interest, ResourceType, Subscriptions};
use std::{collections::BTreeMap, sync::Arc};

/// Opens the streams that the references in the known resources require, and subscribes to these resources.
pub(crate) struct SubscriptionManager {
    state: Arc<State>,
    control_planes: ControlPlanes,
    updates: Arc<Updates>,
    open: Vec<(StreamKey, Subscriptions)>,
}

impl SubscriptionManager {
    pub(crate) fn new(state: Arc<State>, control: Control, control_planes: ControlPlanes) -> Self {
        Self { state, control_planes, updates: Arc::new(Updates::new(control)), open: Vec::new() }
    }

    /// Runs the manager; never returns.
    pub(crate) async fn run(mut self) {
        loop {
            self.subscribe();
            self.updates.applied().await;
        }
    }

    /// Updates the subscriptions of each stream, opens missing streams, and ends those that are no longer required.
    fn subscribe(&mut self) {
        let required = {
            let store = self.state.store();
            self.control_planes.required_streams(store.dynamic(), &store.references())
        };
        self.open.retain(|(key, subscriptions)| {
            let Some((_, interests)) = required.iter().find(|(required, _)| required == key) else {
                subscriptions.end();
                return false;
            };
            for kind in key.resource_types() {
                subscriptions.subscribe(kind, interests.get(&kind).cloned().unwrap_or_default());
            }
            true
        });
        for (key, interests) in required {
            if self.open.iter().any(|(open, _)| *open == key) {
                continue;
            }
            if self.open.len() >= MAX_STREAMS {
                tracing::error!(
                    limit = MAX_STREAMS,
                    "too many control planes: no stream is opened to this control plane"
                );
                continue;
            }
            match self.open(&key, interests) {
                Ok(subscriptions) => self.open.push((key, subscriptions)),
                Err(problem) => {
                    tracing::error!(%problem, "cannot subscribe to referenced resources");
                }
            }
        }
    }

    fn open(
        &self,
        key: &StreamKey,
        interests: BTreeMap<ResourceType, Interest>,
    ) -> Result<Subscriptions, Problem> {
        let client = self.control_planes.client(key)?;
        let subscriptions = Subscriptions::default();
        for (kind, interest) in interests {
            subscriptions.subscribe(kind, interest);
        }
        let updater = GatewayUpdater::new(self.state.clone(), self.updates.clone(), key.resource_types());
        tokio::spawn(client.run(subscriptions.clone(), updater));
        Ok(subscriptions)
    }
}

/// Maximum number of streams, each of which is a connection.
const MAX_STREAMS: usize = 64;
