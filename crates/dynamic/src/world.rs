//! Which resources are known, which are in force, and which are to be asked for. No I/O.
//!
//! A listener or a cluster that names what is not there yet is not put into force: the one of before serves until it is complete.
//! What the one of before names stays until then too.

use quadrille_config::model::Gateway;
use quadrille_envoy::{Base, Bootstrap, Dynamic, Kind, Resource, Resources, Wanted, read};
use quadrille_xds::{Kind as Service, Offer, Rejection};
use std::collections::{BTreeMap, BTreeSet};

/// Everything that is known.
pub(crate) struct World {
    base: Base,
    dynamic: Dynamic,
    /// Written in the bootstrap or in files: nobody replaces it.
    fixed: Resources,
    known: Resources,
    in_force: Resources,
    /// Of what has come from control planes: the bytes it was read from.
    digests: BTreeMap<(Kind, String), [u8; 32]>,
}

/// A world that may come next.
pub(crate) struct Step {
    known: Resources,
    in_force: Resources,
    digests: BTreeMap<(Kind, String), [u8; 32]>,
}

/// What an offer would change.
#[derive(Default)]
pub(crate) struct Proposal {
    read: Vec<Changed>,
    removed: Vec<String>,
    /// What is wrong with the others.
    pub(crate) rejections: Vec<Rejection>,
    /// Worth knowing.
    pub(crate) warnings: Vec<String>,
}

struct Changed {
    name: String,
    resource: Resource,
    digest: [u8; 32],
}

impl World {
    pub(crate) fn new(bootstrap: &Bootstrap) -> Self {
        Self {
            base: bootstrap.base.clone(),
            dynamic: bootstrap.dynamic.clone(),
            fixed: bootstrap.resources.clone(),
            known: bootstrap.resources.clone(),
            in_force: bootstrap.resources.clone(),
            digests: BTreeMap::new(),
        }
    }

    /// Other fixed resources, under what control planes have sent.
    pub(crate) fn renew(&mut self, bootstrap: &Bootstrap) -> Result<Gateway, Vec<String>> {
        let mut next = Self::new(bootstrap);
        for (kind, name) in self.digests.keys() {
            if !next.fixed.has(*kind, name)
                && let Some(resource) = found(&self.known, *kind, name)
            {
                next.known.insert(name.clone(), resource);
            }
        }
        next.digests = std::mem::take(&mut self.digests);
        next.digests.retain(|(kind, name), _| !next.fixed.has(*kind, name));
        next.in_force = effective(&next.known, &self.in_force);
        let made = next.in_force.model(&next.base);
        match made {
            Ok((gateway, _)) => {
                next.dynamic = self.dynamic.clone();
                *self = next;
                Ok(gateway)
            }
            Err(problems) => {
                self.digests = next.digests;
                Err(problems)
            }
        }
    }

    pub(crate) fn in_force(&self) -> &Resources {
        &self.in_force
    }

    /// Reads what has changed of an offer.
    pub(crate) fn read(&self, offer: &Offer) -> Proposal {
        let kind = kind_of(offer.kind);
        let mut proposal = Proposal::default();
        for resource in &offer.resources {
            let name = &resource.name;
            if self.digests.get(&(kind, name.clone())) == Some(&resource.digest) {
                continue;
            }
            let reject = |reason: String| Rejection { name: name.clone(), reason };
            if self.fixed.has(kind, name) {
                proposal.rejections.push(reject("the bootstrap has one of this name already".to_owned()));
                continue;
            }
            match read(kind, &resource.tree, &origin(offer.kind, name)) {
                Ok(found) => {
                    proposal.warnings.extend(found.warnings.lines());
                    let digest = resource.digest;
                    proposal.read.push(Changed { name: name.clone(), resource: found.resource, digest });
                }
                Err(errors) => {
                    proposal.rejections.push(reject(errors.to_string().trim().replace('\n', "; ")));
                }
            }
            for path in &resource.unknown {
                let origin = origin(offer.kind, name);
                proposal.warnings.push(format!("{origin}: {path} is newer than this gateway, and ignored"));
            }
        }
        proposal.removed = self.gone(kind, offer);
        proposal
    }

    /// Names that are no longer there. Routes, endpoints and secrets stay for as long as somebody names them.
    fn gone(&self, kind: Kind, offer: &Offer) -> Vec<String> {
        if !offer.kind.is_complete() {
            return Vec::new();
        }
        let sent = self.digests.keys().filter(|(of, _)| *of == kind).map(|(_, name)| name);
        let offered: BTreeSet<&str> = offer.resources.iter().map(|resource| resource.name.as_str()).collect();
        let unreadable: BTreeSet<&str> =
            offer.unreadable.iter().map(|rejection| rejection.name.as_str()).collect();
        let left_out = |name: &str| offer.complete && !offered.contains(name) && !unreadable.contains(name);
        sent.filter(|name| left_out(name) || offer.removed.contains(name)).cloned().collect()
    }

    /// The world with a proposal, without the resources of these names.
    pub(crate) fn next(
        &self,
        proposal: &Proposal,
        without: &BTreeMap<String, String>,
        kind: Service,
    ) -> Step {
        let kind = kind_of(kind);
        let mut step =
            Step { known: self.known.clone(), in_force: Resources::default(), digests: self.digests.clone() };
        for changed in proposal.read.iter().filter(|changed| !without.contains_key(&changed.name)) {
            step.known.insert(changed.name.clone(), changed.resource.clone());
            step.digests.insert((kind, changed.name.clone()), changed.digest);
        }
        for name in &proposal.removed {
            step.known.remove(kind, name);
            step.digests.remove(&(kind, name.clone()));
        }
        step.in_force = effective(&step.known, &self.in_force);
        step.forget();
        step
    }

    /// The gateway of a step.
    pub(crate) fn model(&self, step: &Step) -> Result<Gateway, Vec<String>> {
        step.in_force.model(&self.base).map(|(gateway, _)| gateway)
    }

    /// A step was taken.
    pub(crate) fn take(&mut self, step: Step) {
        Step { known: self.known, in_force: self.in_force, digests: self.digests } = step;
    }

    /// What is named, by what is known and by what is in force.
    pub(crate) fn wanted(&self) -> Wanted {
        wanted(&self.known, &self.in_force)
    }

    /// Listeners that wait, and for what.
    pub(crate) fn waiting(&self) -> Vec<(String, Vec<String>)> {
        let listeners = self.known.listeners.iter();
        let missing = listeners.map(|(name, listener)| (name.clone(), self.known.missing(listener)));
        missing.filter(|(_, missing)| !missing.is_empty()).collect()
    }

    /// Where listeners and clusters come from.
    pub(crate) fn dynamic(&self) -> &Dynamic {
        &self.dynamic
    }
}

impl Proposal {
    pub(crate) fn is_empty(&self) -> bool {
        self.read.is_empty() && self.removed.is_empty()
    }

    /// The names of what would change.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.read.iter().map(|changed| changed.name.as_str())
    }
}

impl Step {
    /// Drops what nobody names any longer.
    fn forget(&mut self) {
        let wanted = wanted(&self.known, &self.in_force);
        let Self { known, in_force, digests } = self;
        digests.retain(|(kind, name), _| {
            let named = match kind {
                Kind::Listener | Kind::Cluster => true,
                Kind::Route => wanted.routes.contains_key(name),
                Kind::Endpoints => wanted.endpoints.contains_key(name),
                Kind::Secret => wanted.secrets.contains_key(name),
            };
            if !named {
                known.remove(*kind, name);
                in_force.remove(*kind, name);
            }
            named
        });
    }
}

/// What can be put into force of what is known.
fn effective(known: &Resources, before: &Resources) -> Resources {
    let mut set = known.clone();
    for (name, listener) in &known.listeners {
        if known.missing(listener).is_empty() {
            continue;
        }
        // A new one that is not complete is left out when the model is made.
        if let Some(old) = before.listeners.get(name).filter(|old| known.missing(old).is_empty()) {
            set.listeners.insert(name.clone(), old.clone());
        }
    }
    for (name, cluster) in &known.clusters {
        let waits = |from: &quadrille_envoy::EndpointsReference| !known.endpoints.contains_key(&from.name);
        if cluster.endpoints_from.as_ref().is_some_and(waits)
            && let Some(old) = before.clusters.get(name)
            && !old.endpoints_from.as_ref().is_some_and(waits)
        {
            set.clusters.insert(name.clone(), old.clone());
        }
    }
    set
}

fn wanted(known: &Resources, in_force: &Resources) -> Wanted {
    let mut wanted = in_force.wanted();
    let newer = known.wanted();
    wanted.routes.extend(newer.routes);
    wanted.endpoints.extend(newer.endpoints);
    wanted.secrets.extend(newer.secrets);
    wanted
}

fn found(resources: &Resources, kind: Kind, name: &str) -> Option<Resource> {
    Some(match kind {
        Kind::Listener => Resource::Listener(resources.listeners.get(name)?.clone()),
        Kind::Route => Resource::Route(resources.routes.get(name)?.clone()),
        Kind::Cluster => Resource::Cluster(resources.clusters.get(name)?.clone()),
        Kind::Endpoints => Resource::Endpoints(resources.endpoints.get(name)?.clone()),
        Kind::Secret => Resource::Secret(resources.secrets.get(name)?.clone()),
    })
}

/// What stands where a file's name would, in errors about a resource.
pub(crate) fn origin(kind: Service, name: &str) -> String {
    format!("{} `{name}`", kind.service())
}

fn kind_of(kind: Service) -> Kind {
    match kind {
        Service::Cluster => Kind::Cluster,
        Service::Endpoints => Kind::Endpoints,
        Service::Listener => Kind::Listener,
        Service::Routes => Kind::Route,
        Service::Secret => Kind::Secret,
    }
}
