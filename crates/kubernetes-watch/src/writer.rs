//! Writes Events and the status of Ingress objects, while this process holds the Lease.

use crate::{
    events::Events,
    lease::HeldLease,
    outcome::{Outcome, Refused},
    progress::Progress,
    settings::NamespacedName,
};
use k8s_openapi::api::networking::v1::Ingress;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};
use tokio::{sync::watch, time::MissedTickBehavior};

/// Writes what translations say about the objects.
pub(crate) struct Writer {
    pub(crate) client: Client,
    pub(crate) events: Events,
    pub(crate) lease: HeldLease,
    pub(crate) outcomes: watch::Receiver<Outcome>,
    pub(crate) progress: Progress,
    /// Settings with an Event.
    pub(crate) announced: BTreeSet<Refused>,
    /// Addresses that were written to an Ingress, with those that it had before.
    pub(crate) written: BTreeMap<NamespacedName, (Vec<Value>, Vec<Value>)>,
    /// The last problem, so that it is logged once.
    pub(crate) problem: Option<String>,
}

impl Writer {
    /// Writes until the updater has ended.
    pub(crate) async fn run(mut self) {
        let mut renewal = tokio::time::interval(RENEWAL);
        renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = renewal.tick() => {
                    let renewed = self.lease.renew().await;
                    let problem = renewed.err().map(|error| format!("the Lease: {error}"));
                    self.note(problem);
                }
                changed = self.outcomes.changed() => if changed.is_err() { return },
            }
            let is_held = self.lease.is_held(Instant::now());
            self.progress.set_leader(is_held);
            if is_held {
                let written = self.write().await;
                self.note(written.err());
            }
        }
    }

    async fn write(&mut self) -> Result<(), String> {
        let outcome = self.outcomes.borrow_and_update().clone();
        self.announced.retain(|one| outcome.refused.contains(one));
        for refused in &outcome.refused {
            if self.announced.contains(refused) {
                continue;
            }
            let published = self.events.refused(refused).await;
            published.map_err(|error| format!("an Event on {}: {error}", refused.name))?;
            self.announced.insert(refused.clone());
        }
        if outcome.addresses.is_empty() {
            return Ok(());
        }
        for served in &outcome.served {
            let pair = (served.addresses.clone(), outcome.addresses.clone());
            if pair.0 == pair.1 || self.written.get(&served.name) == Some(&pair) {
                continue;
            }
            let status = json!({ "status": { "loadBalancer": { "ingress": &outcome.addresses } } });
            let api: Api<Ingress> = Api::namespaced(self.client.clone(), &served.name.namespace);
            match api.patch_status(&served.name.name, &PatchParams::default(), &Patch::Merge(&status)).await {
                // It was deleted meanwhile.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                written => {
                    drop(written.map_err(|error| format!("the status of Ingress {}: {error}", served.name))?);
                }
            }
            self.written.insert(served.name.clone(), pair);
        }
        self.written.retain(|name, _| outcome.served.iter().any(|served| served.name == *name));
        Ok(())
    }

    fn note(&mut self, problem: Option<String>) {
        if let Some(problem) = &problem
            && self.problem.as_ref() != Some(problem)
        {
            tracing::warn!(problem, "cannot write to the cluster; retrying");
        }
        if problem.is_some() {
            self.problem = problem;
        }
    }
}

const RENEWAL: Duration = Duration::from_secs(3);
