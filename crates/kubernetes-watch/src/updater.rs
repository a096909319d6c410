//! Applies changes of the cluster to the running gateway.

use crate::{
    address,
    kind::Kind,
    outcome::{Outcome, Refused, Served},
    progress::{Counts, Progress},
    settings::{NamespacedName, Settings},
    watched::{Change, Content, Event, Object, Scope},
};
use quadrille_config::{Diagnostics, model::Gateway};
use quadrille_gateway::Control;
use quadrille_kubernetes::{Objects, Report, State, Translation, insert_secrets, translate};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout_at},
};
use zeroize::Zeroizing;

/// The objects of the cluster, and the configuration that was made of them.
pub(crate) struct Updater {
    settings: Settings,
    scopes: Vec<Followed>,
    objects: Objects,
    known: BTreeMap<(Kind, NamespacedName), Known>,
    /// Settings that do not work, as they were logged.
    logged: BTreeSet<RefusedSetting>,
    control: Control,
    /// Settings that do not come from the cluster.
    base: Gateway,
    active: Arc<Mutex<Gateway>>,
    progress: Progress,
    outcomes: watch::Sender<Outcome>,
}

/// A scope, with the names of its objects.
struct Followed {
    scope: Scope,
    names: BTreeSet<NamespacedName>,
    /// Names of a list that is not complete.
    listing: Option<BTreeSet<NamespacedName>>,
    is_listed: bool,
    is_interrupted: bool,
}

/// Data of an object that is kept besides its translation.
struct Known {
    uid: String,
    addresses: Vec<Value>,
}

impl Updater {
    pub(crate) fn new(
        (settings, scopes): (Settings, &[Scope]),
        (control, base, active): (Control, Gateway, Arc<Mutex<Gateway>>),
        progress: Progress,
        outcomes: watch::Sender<Outcome>,
    ) -> Self {
        let followed = |scope: &Scope| Followed {
            scope: scope.clone(),
            names: BTreeSet::new(),
            listing: None,
            is_listed: false,
            is_interrupted: false,
        };
        let scopes = scopes.iter().map(followed).collect();
        Self {
            settings,
            scopes,
            objects: Objects::of_cluster(),
            known: BTreeMap::new(),
            logged: BTreeSet::new(),
            control,
            base,
            active,
            progress,
            outcomes,
        }
    }

    /// Applies changes until their senders are gone. Several that come together are applied as one.
    pub(crate) async fn run(mut self, mut changes: mpsc::Receiver<Change>) {
        let mut next_attempt: Option<Instant> = None;
        loop {
            let received = match next_attempt {
                Some(at) => timeout_at(at, changes.recv()).await.ok(),
                None => Some(changes.recv().await),
            };
            match received {
                Some(Some(change)) => self.take(change),
                Some(None) => return,
                None => {}
            }
            let settled = Instant::now() + SETTLING;
            while let Ok(Some(change)) = timeout_at(settled, changes.recv()).await {
                self.take(change);
            }
            let awaited = self.awaited();
            if !awaited.is_empty() {
                self.progress.awaits(awaited);
                continue;
            }
            self.progress.awaits(Vec::new());
            let begin = Instant::now();
            next_attempt = match self.update().await {
                Ok(()) => None,
                Err(problem) => {
                    if self.progress.failed(problem.clone()) {
                        tracing::error!(problem, "cannot apply the objects; the former configuration serves");
                    }
                    Some(Instant::now() + RETRY)
                }
            };
            // Leaves most of the CPU to requests while objects change continuously.
            tokio::time::sleep((begin.elapsed() * SHARE).min(LONGEST_PAUSE)).await;
        }
    }

    fn awaited(&self) -> Vec<String> {
        let awaited = self.scopes.iter().filter(|followed| !followed.is_listed);
        awaited.map(|followed| followed.scope.to_string()).collect()
    }

    fn take(&mut self, (number, event): Change) {
        let Some(followed) = self.scopes.get_mut(number) else { return };
        let kind = followed.scope.kind;
        if !matches!(event, Event::Failed { .. } | Event::ListBegins) && followed.is_interrupted {
            followed.is_interrupted = false;
            tracing::info!(objects = %followed.scope, "watching again");
        }
        match event {
            Event::ListBegins => followed.listing = Some(BTreeSet::new()),
            Event::Listed(object) => {
                followed.listing.get_or_insert_default().insert(object.name.clone());
                self.put(kind, object);
            }
            Event::ListEnds => {
                let listed = followed.listing.take().unwrap_or_default();
                let gone: Vec<_> = followed.names.difference(&listed).cloned().collect();
                followed.names = listed;
                followed.is_listed = true;
                gone.iter().for_each(|name| self.remove(kind, name));
            }
            Event::Put(object) => {
                followed.names.insert(object.name.clone());
                self.put(kind, object);
            }
            Event::Removed(name) => {
                followed.names.remove(&name);
                self.remove(kind, &name);
            }
            Event::Failed { problem, is_forbidden } => {
                if is_forbidden && followed.scope.is_optional && !followed.is_listed {
                    followed.is_listed = true;
                    tracing::warn!(objects = %followed.scope, "may not be listed: the class is compared by its name");
                } else if !followed.is_interrupted {
                    let hint = if is_forbidden { "; allow `list` and `watch` of them in a role" } else { "" };
                    tracing::warn!(objects = %followed.scope, problem, "cannot watch, retrying{hint}");
                }
                followed.is_interrupted = true;
            }
        }
    }

    fn put(&mut self, kind: Kind, Object { name, uid, content }: Object) {
        match content {
            Content::Secret(values) => self.objects.put_secret(&name.namespace, &name.name, values),
            Content::Json(json) => {
                self.objects.put(&json);
                let addresses = match kind {
                    Kind::Ingress => address::of_status(&json),
                    Kind::Service => address::of_service(&json),
                    _ => Vec::new(),
                };
                self.known.insert((kind, name), Known { uid, addresses });
            }
        }
    }

    fn remove(&mut self, kind: Kind, name: &NamespacedName) {
        self.objects.remove(kind.name(), &name.namespace, &name.name);
        self.known.remove(&(kind, name.clone()));
    }

    /// Translates the objects, and puts the configuration into service if it has changed.
    async fn update(&mut self) -> Result<(), String> {
        let Translation { yaml, model, report, served } =
            translate(&self.objects, &self.settings.translation)?;
        drop(Zeroizing::new(yaml));
        let mut model = Gateway {
            listeners: model.listeners,
            upstreams: model.upstreams,
            access_log: model.access_log,
            request_ids: model.request_ids,
            tracing: model.tracing,
            ..self.base.clone()
        };
        insert_secrets(&mut model, &self.objects);
        let is_first = self.progress.missing().is_some();
        if is_first || *self.active.lock().unwrap_or_else(PoisonError::into_inner) != model {
            let applied = self.control.apply(model.clone()).await;
            let applied = applied.map_err(|problems| Diagnostics::from(problems).lines().join("; "))?;
            *self.active.lock().unwrap_or_else(PoisonError::into_inner) = model;
            let (listeners, made) = (applied.listeners.len(), applied.made);
            tracing::info!(took = ?applied.took, listeners, ?made, ingresses = served.len(), "configuration applied");
            if is_first {
                for address in &applied.listeners {
                    tracing::info!(%address, "listening");
                }
            }
        }
        let refused = refused(&report);
        self.log(&refused);
        let outcome = self.outcome(&refused, &served);
        self.logged = refused;
        self.progress.applied(Counts {
            objects: Kind::ALL.map(|kind| (kind.name(), self.count(kind))).to_vec(),
            served: served.len(),
            refused: report.count(State::Refused),
        });
        self.outcomes.send_replace(outcome);
        Ok(())
    }

    fn count(&self, kind: Kind) -> usize {
        let of_kind = self.scopes.iter().filter(|followed| followed.scope.kind == kind);
        of_kind.map(|followed| followed.names.len()).sum()
    }

    /// Logs the settings that do not work, each once.
    fn log(&self, refused: &BTreeSet<RefusedSetting>) {
        for (object, setting, remedy) in refused.difference(&self.logged) {
            tracing::warn!(object, setting, remedy, "a setting does not work");
        }
    }

    fn outcome(&self, refused: &BTreeSet<RefusedSetting>, served: &[(String, String)]) -> Outcome {
        let of_object = |(object, setting, remedy): &RefusedSetting| {
            let (kind, name) = object.split_once(' ')?;
            let (kind, name) = (Kind::named(kind)?, name.parse::<NamespacedName>().ok()?);
            let uid = self.known.get(&(kind, name.clone()))?.uid.clone();
            Some(Refused { kind, name, uid, setting: setting.clone(), remedy: remedy.clone() })
        };
        let of_ingress = |(namespace, name): &(String, String)| {
            let name = NamespacedName { namespace: namespace.clone(), name: name.clone() };
            let known = self.known.get(&(Kind::Ingress, name.clone()))?;
            Some(Served { addresses: known.addresses.clone(), name })
        };
        Outcome {
            refused: refused.iter().filter_map(of_object).collect(),
            served: served.iter().filter_map(of_ingress).collect(),
            addresses: self.addresses(),
        }
    }

    /// Returns the addresses for the status of Ingress objects.
    fn addresses(&self) -> Vec<Value> {
        let given = self.settings.addresses.iter().map(|address| address::entry(address));
        let service = self.settings.publish_service.clone().map(|name| (Kind::Service, name));
        let of_service =
            service.and_then(|name| self.known.get(&name)).map(|service| service.addresses.clone());
        given.chain(of_service.unwrap_or_default()).collect()
    }
}

/// A setting that does not work: the object, the setting and the remedy.
type RefusedSetting = (String, String, String);

/// Returns the settings that do not work.
fn refused(report: &Report) -> BTreeSet<RefusedSetting> {
    let of_object = |one: &quadrille_kubernetes::ObjectReport| {
        let refused = one.entries.iter().filter(|entry| entry.state == State::Refused);
        refused
            .map(|entry| (one.object.clone(), entry.setting.clone(), entry.text.clone()))
            .collect::<Vec<_>>()
    };
    report.objects.iter().flat_map(of_object).collect()
}

/// Time after a change for which others are awaited, as tools change several objects in a row.
const SETTLING: Duration = Duration::from_millis(20);
/// The pause after an update is this multiple of its duration.
const SHARE: u32 = 4;
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Time after which a configuration is tried again that could not be put into service.
const RETRY: Duration = Duration::from_secs(10);
