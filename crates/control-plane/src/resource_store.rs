//! Known, active and referenced resources. No I/O.
//!
//! A listener or a cluster that references a resource which has not arrived yet is warming: the active version of the
//! same name serves until the new one is complete. Resources that the active version references are kept until then,
//! too.

use crate::trust::{OnRefusedPolicy, Trust};
use quadrille_config::{
    Diagnostic, Diagnostics, Warnings,
    model::{Gateway, Origin},
};
use quadrille_envoy::{
    Bootstrap, DynamicResources, EndpointsReference, Read, References, ResourceType, Resources,
    decides_access, read_remote,
};
use quadrille_xds::{Rejection, Update};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    rc::Rc,
    sync::Arc,
};

/// All resources of the process.
pub(crate) struct ResourceStore {
    /// The active bootstrap. Its resources, static or from files, are never replaced by a control plane.
    bootstrap: Arc<Bootstrap>,
    /// A bootstrap that was read again and is not in service yet.
    prepared: Option<Bootstrap>,
    /// Dynamic resources of the bootstrap that the process was started with.
    dynamic: DynamicResources,
    known: Resources,
    active: Resources,
    versions: Versions,
    trust: Trust,
}

/// Version of each resource that came from a control plane.
type Versions = BTreeMap<(ResourceType, String), Version>;

#[derive(Clone)]
struct Version {
    /// SHA-256 of its bytes.
    digest: [u8; 32],
    /// Description of its closed routes, if there are any.
    closed: Option<Arc<str>>,
}

/// State of a store after a change, to be committed.
pub(crate) struct Transition {
    known: Resources,
    active: Resources,
    versions: Versions,
}

/// Changes that an update would make.
#[derive(Default)]
pub(crate) struct ResourceDiff {
    changed: Vec<Changed>,
    removed: Vec<String>,
    /// Rejected resources whose active version is closed, because their new access rules are not supported.
    closed: Vec<String>,
    /// Rejections of the other resources.
    pub(crate) rejections: Vec<Rejection>,
    /// Unchanged resources with closed routes.
    pub(crate) still_partial: Vec<Rejection>,
    /// Warnings about resources that are used nevertheless.
    pub(crate) warnings: Warnings,
}

struct Changed {
    read: Read,
    version: Version,
}

impl ResourceStore {
    pub(crate) fn new(bootstrap: Bootstrap, trust: Trust) -> Self {
        Self {
            dynamic: bootstrap.dynamic.clone(),
            known: bootstrap.resources.clone(),
            active: bootstrap.resources.clone(),
            bootstrap: Arc::new(bootstrap),
            prepared: None,
            versions: Versions::new(),
            trust,
        }
    }

    /// Returns the limits on trust in control planes.
    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Returns the bootstrap that is in service.
    pub(crate) fn bootstrap(&self) -> &Arc<Bootstrap> {
        &self.bootstrap
    }

    /// Returns the files that the most recently read bootstrap references.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.prepared.as_ref().unwrap_or(&self.bootstrap).files
    }

    /// Builds the gateway of another bootstrap together with the resources that control planes have sent.
    pub(crate) fn prepare_bootstrap(&mut self, bootstrap: Bootstrap) -> Result<Gateway, Diagnostics> {
        let next = self.with_bootstrap(bootstrap.clone());
        let (gateway, _) = next.active.model(&next.bootstrap.process)?;
        self.prepared = Some(bootstrap);
        Ok(gateway)
    }

    /// Puts the prepared bootstrap into service. Resources that control planes have sent meanwhile are kept, too.
    pub(crate) fn commit_bootstrap(&mut self) {
        if let Some(bootstrap) = self.prepared.take() {
            *self = self.with_bootstrap(bootstrap);
        }
    }

    /// Copies the store with another bootstrap's static resources, and the resources that control planes have sent.
    fn with_bootstrap(&self, bootstrap: Bootstrap) -> Self {
        let mut next = Self::new(bootstrap, self.trust.clone());
        for ((kind, name), version) in &self.versions {
            if !next.bootstrap.resources.contains(*kind, name) && next.known.copy(&self.known, *kind, name) {
                next.versions.insert((*kind, name.clone()), version.clone());
            }
        }
        next.active = activate(&next.known, &self.active);
        next.dynamic = self.dynamic.clone();
        next
    }

    pub(crate) fn active(&self) -> &Resources {
        &self.active
    }

    /// Reads the resources of an update that differ from the known ones.
    pub(crate) fn diff(&self, update: &Update) -> ResourceDiff {
        let kind = update.kind;
        let mut diff = ResourceDiff::default();
        let allowance = Rc::default();
        for resource in &update.resources {
            let name = &resource.name;
            if let Some(known) = self.versions.get(&(kind, name.clone()))
                && known.digest == resource.digest
            {
                let closed = known.closed.as_deref().map(|closed| Rejection::partial(name, closed));
                diff.still_partial.extend(closed);
                continue;
            }
            let reject = |reason: String| Rejection::new(name, reason);
            if self.bootstrap.resources.contains(kind, name) {
                diff.rejections.push(reject("the bootstrap already has a resource of this name".to_owned()));
                continue;
            }
            let origin_of = origin(update.kind, name);
            match read_remote(kind, &resource.tree, origin_of, &self.trust.directories, &allowance) {
                // The operator prefers the previous version to closed parts of the new one.
                Ok(found) if self.keeps(kind, name, &found.closed) => {
                    diff.rejections.push(reject(Diagnostics::new(found.closed).lines().join("; ")));
                }
                Ok(found) => {
                    diff.warnings.extend(found.warnings.clone());
                    let version = Version { digest: resource.digest, closed: description(&found.closed) };
                    diff.changed.push(Changed { read: found, version });
                }
                Err(errors) => {
                    if self.closes(kind, name, errors.iter()) {
                        diff.close(name);
                    }
                    diff.rejections.push(reject(errors.lines().join("; ")));
                }
            }
            for path in &resource.unknown {
                let origin = origin(update.kind, name);
                diff.warnings.add(&format!("newer {kind} {path}"), || {
                    format!("{origin}: {path} is not known to this gateway and ignored")
                });
            }
        }
        diff.removed = self.removed_names(kind, update);
        diff
    }

    /// Returns whether the active resource of this name is to be closed because its new version's access rules were
    /// rejected.
    pub(crate) fn closes<'d>(
        &self,
        kind: ResourceType,
        name: &str,
        mut errors: impl Iterator<Item = &'d Diagnostic>,
    ) -> bool {
        self.trust.on_refused_policy == OnRefusedPolicy::Close
            && matches!(kind, ResourceType::Listener | ResourceType::Routes)
            && self.known.contains(kind, name)
            && errors.any(decides_access)
    }

    /// Returns whether the active resource of this name stays because access rules of routes were rejected.
    fn keeps(&self, kind: ResourceType, name: &str, closed: &[Diagnostic]) -> bool {
        self.trust.on_refused_policy == OnRefusedPolicy::Keep
            && self.known.contains(kind, name)
            && closed.iter().any(decides_access)
    }

    /// Returns the names that the control plane no longer has. Routes, endpoints and secrets are kept for as long as
    /// they are referenced.
    fn removed_names(&self, kind: ResourceType, update: &Update) -> Vec<String> {
        if !update.kind.is_complete() {
            return Vec::new();
        }
        let known = self.versions.keys().filter(|(other, _)| *other == kind).map(|(_, name)| name);
        let sent: BTreeSet<&str> = update.resources.iter().map(|resource| resource.name.as_str()).collect();
        let unreadable: BTreeSet<&str> =
            update.unreadable.iter().map(|rejection| rejection.name.as_str()).collect();
        let removed: BTreeSet<&str> = update.removed.iter().map(String::as_str).collect();
        let left_out = |name: &str| update.complete && !sent.contains(name) && !unreadable.contains(name);
        known.filter(|name| left_out(name) || removed.contains(name.as_str())).cloned().collect()
    }

    /// Applies a diff to the store, except for the resources with the `excluded` names.
    pub(crate) fn transition(
        &self,
        diff: &ResourceDiff,
        excluded: &BTreeMap<String, String>,
        kind: ResourceType,
    ) -> Transition {
        let mut transition = Transition {
            known: self.known.clone(),
            active: Resources::default(),
            versions: self.versions.clone(),
        };
        for Changed { read, version } in &diff.changed {
            if !excluded.contains_key(&read.name) {
                transition.known.insert(read.clone());
                transition.versions.insert((kind, read.name.clone()), version.clone());
            }
        }
        for name in diff.removed.iter().chain(&diff.closed) {
            transition.known.remove(kind, name);
            transition.versions.remove(&(kind, name.clone()));
        }
        transition.active = activate(&transition.known, &self.active);
        transition.drop_unreferenced();
        transition
    }

    /// Builds the gateway of a transition.
    pub(crate) fn model(&self, transition: &Transition) -> Result<Gateway, Diagnostics> {
        transition.active.model(&self.bootstrap.process).map(|(gateway, _)| gateway)
    }

    /// Commits a transition after it was put into service.
    pub(crate) fn commit(&mut self, transition: Transition) {
        Transition { known: self.known, active: self.active, versions: self.versions } = transition;
    }

    /// Returns the references of the known and the active resources.
    pub(crate) fn references(&self) -> References {
        references(&self.known, &self.active)
    }

    /// Returns the warming listeners, with the resources that each is missing.
    pub(crate) fn warming_listeners(&self) -> Vec<(String, Vec<String>)> {
        let listeners = self.known.listeners.iter();
        let missing = listeners.map(|(name, listener)| (name.clone(), self.known.missing(listener)));
        missing.filter(|(_, missing)| !missing.is_empty()).collect()
    }

    /// Returns the sources of listeners and clusters.
    pub(crate) fn dynamic(&self) -> &DynamicResources {
        &self.dynamic
    }
}

impl ResourceDiff {
    pub(crate) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty() && self.closed.is_empty()
    }

    /// Returns whether the diff removes or closes a resource.
    pub(crate) fn takes_away(&self) -> bool {
        !(self.removed.is_empty() && self.closed.is_empty())
    }

    /// Marks the active resource of this name as closed.
    pub(crate) fn close(&mut self, name: &str) {
        self.closed.push(name.to_owned());
    }

    /// Clears the closed resources, because closing them could not be put into service either.
    pub(crate) fn close_nothing(&mut self) {
        self.closed.clear();
    }

    /// Returns whether the active resource of this name is closed.
    pub(crate) fn closes(&self, name: &str) -> bool {
        self.closed.iter().any(|closed| closed == name)
    }

    /// Returns the mistakes of closed routes of a changed resource.
    pub(crate) fn closed_routes(&self, name: &str) -> &[Diagnostic] {
        let changed = self.changed.iter().find(|changed| changed.read.name == name);
        changed.map_or(&[], |changed| &changed.read.closed)
    }

    /// Returns the changed resources that have closed routes.
    pub(crate) fn partial(&self) -> impl Iterator<Item = Rejection> {
        let closed = |Changed { read, version }: &Changed| {
            version.closed.as_deref().map(|closed| Rejection::partial(&read.name, closed))
        };
        self.changed.iter().filter_map(closed)
    }

    /// Returns the names of the resources that are new or changed.
    pub(crate) fn changed_names(&self) -> impl Iterator<Item = &str> {
        self.changed.iter().map(|changed| changed.read.name.as_str())
    }
}

impl Transition {
    /// Drops the resources from control planes that are no longer referenced.
    fn drop_unreferenced(&mut self) {
        let references = references(&self.known, &self.active);
        let Self { known, active, versions } = self;
        versions.retain(|(kind, name), _| {
            let referenced = match kind {
                ResourceType::Listener | ResourceType::Cluster => true,
                ResourceType::Routes => references.routes.contains_key(name),
                ResourceType::Endpoints => references.endpoints.contains_key(name),
                ResourceType::Secret => references.secrets.contains_key(name),
            };
            if !referenced {
                known.remove(*kind, name);
                active.remove(*kind, name);
            }
            referenced
        });
    }
}

/// Returns the known resources, in which the previous active version replaces each warming one.
fn activate(known: &Resources, before: &Resources) -> Resources {
    let mut active = known.clone();
    for (name, listener) in &known.listeners {
        if known.missing(listener).is_empty() {
            continue;
        }
        // A new listener that is not complete is left out when the model is built.
        if before.listeners.get(name).is_some_and(|old| known.missing(old).is_empty()) {
            active.copy(before, ResourceType::Listener, name);
        }
    }
    for (name, cluster) in &known.clusters {
        let missing = |reference: &EndpointsReference| !known.endpoints.contains_key(&reference.name);
        if cluster.endpoints_from.as_ref().is_some_and(missing)
            && let Some(old) = before.clusters.get(name)
            && !old.endpoints_from.as_ref().is_some_and(missing)
        {
            active.copy(before, ResourceType::Cluster, name);
        }
    }
    active
}

fn references(known: &Resources, active: &Resources) -> References {
    let mut references = active.references();
    let newer = known.references();
    references.routes.extend(newer.routes);
    references.endpoints.extend(newer.endpoints);
    references.secrets.extend(newer.secrets);
    references
}

/// Describes closed routes, if there are any.
fn description(closed: &[Diagnostic]) -> Option<Arc<str>> {
    let lines: Vec<String> = closed.iter().map(ToString::to_string).collect();
    (!lines.is_empty()).then(|| lines.join("; ").into())
}

/// Returns the origin named in messages about a resource, in place of a file name.
pub(crate) fn origin(kind: ResourceType, name: &str) -> Origin {
    Origin::Resource(kind.service(), name.into())
}
