//! All resources of a process, by name, and the gateway that they make together.
//!
//! Static and dynamic resources go this one way. Each is read once and judged alone; names are resolved here.

use crate::{
    cluster::{Cluster, Endpoint, Endpoints},
    config_source::ConfigSource,
    http::Routes,
    listener::{Chain, Listener, Serve},
    resource::{Kind, Read, Resource},
    route::RouteConfiguration,
    settings::{Base, Settings},
    tls::{ClusterTls, DownstreamTls, Secret},
    warnings::Warnings,
};
use quadrille_config::model::{self, Gateway, Http, Upstream};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
};

/// Resources by name. What has not changed between two sets should be the same `Arc` in both.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// By LDS, or static.
    pub listeners: BTreeMap<String, Arc<Listener>>,
    /// By RDS.
    pub routes: BTreeMap<String, Arc<RouteConfiguration>>,
    /// By CDS, or static.
    pub clusters: BTreeMap<String, Arc<Cluster>>,
    /// By EDS.
    pub endpoints: BTreeMap<String, Arc<Endpoints>>,
    /// By SDS, or static.
    pub secrets: BTreeMap<String, Arc<Secret>>,
    /// Those that came one by one, as they were written, without secrets.
    pub(crate) dumps: BTreeMap<(Kind, String), Arc<serde_json::Value>>,
}

/// What is named and comes from elsewhere, with the place it comes from.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Route configurations.
    pub routes: BTreeMap<String, ConfigSource>,
    /// Servers of clusters.
    pub endpoints: BTreeMap<String, ConfigSource>,
    /// Secrets.
    pub secrets: BTreeMap<String, ConfigSource>,
}

impl Resources {
    /// Adds a resource, or puts it in the place of another one of its name.
    pub fn insert(&mut self, name: String, resource: Resource) {
        match resource {
            Resource::Listener(listener) => drop(self.listeners.insert(name, listener)),
            Resource::Route(route) => drop(self.routes.insert(name, route)),
            Resource::Cluster(cluster) => drop(self.clusters.insert(name, cluster)),
            Resource::Endpoints(endpoints) => drop(self.endpoints.insert(name, endpoints)),
            Resource::Secret(secret) => drop(self.secrets.insert(name, secret)),
        }
    }

    /// Adds a resource that was read, or puts it in the place of another one of its name.
    pub fn add(&mut self, read: Read) {
        self.dumps.insert((read.resource.kind(), read.name.clone()), read.dump);
        self.insert(read.name, read.resource);
    }

    /// Takes a resource out; whether it was there.
    pub fn remove(&mut self, kind: Kind, name: &str) -> bool {
        self.dumps.remove(&(kind, name.to_owned()));
        match kind {
            Kind::Listener => self.listeners.remove(name).is_some(),
            Kind::Route => self.routes.remove(name).is_some(),
            Kind::Cluster => self.clusters.remove(name).is_some(),
            Kind::Endpoints => self.endpoints.remove(name).is_some(),
            Kind::Secret => self.secrets.remove(name).is_some(),
        }
    }

    /// Whether there is a resource of this name.
    pub fn has(&self, kind: Kind, name: &str) -> bool {
        match kind {
            Kind::Listener => self.listeners.contains_key(name),
            Kind::Route => self.routes.contains_key(name),
            Kind::Cluster => self.clusters.contains_key(name),
            Kind::Endpoints => self.endpoints.contains_key(name),
            Kind::Secret => self.secrets.contains_key(name),
        }
    }

    /// What is named, is not here, and comes from no control plane: as sentences.
    pub(crate) fn never_coming(&self) -> Vec<String> {
        let mut never = BTreeSet::new();
        let static_only =
            |source: &Option<ConfigSource>| matches!(source, None | Some(ConfigSource::File(_)));
        let chains = || self.listeners.values().flat_map(|listener| listener.chains());
        let of_listeners = chains().filter_map(|chain| chain.tls.as_ref()).flat_map(DownstreamTls::secrets);
        let of_clusters =
            self.clusters.values().filter_map(|cluster| cluster.tls.as_ref()).flat_map(ClusterTls::secrets);
        for secret in of_listeners.chain(of_clusters) {
            if static_only(&secret.source) && !self.secrets.contains_key(&secret.name) {
                never.insert(format!("{}: there is no secret `{}`", secret.place, secret.name));
            }
        }
        for chain in chains() {
            if let Serve::Http(manager) = &chain.serve
                && let Routes::Named(routes) = &manager.routes
                && matches!(routes.source, ConfigSource::File(_))
                && !self.routes.contains_key(&routes.name)
            {
                never.insert(format!("{}: there is no route configuration `{}`", routes.place, routes.name));
            }
        }
        never.into_iter().collect()
    }

    /// What the resources that are here name, and do not bring themselves.
    pub fn wanted(&self) -> Wanted {
        let mut wanted = Wanted::default();
        for chain in self.listeners.values().flat_map(|listener| listener.chains()) {
            wanted.secrets.extend(
                chain
                    .tls
                    .iter()
                    .flat_map(DownstreamTls::secrets)
                    .filter_map(|secret| Some((secret.name.clone(), secret.source.clone()?))),
            );
            if let Serve::Http(manager) = &chain.serve
                && let Routes::Named(routes) = &manager.routes
            {
                wanted.routes.insert(routes.name.clone(), routes.source.clone());
            }
        }
        for cluster in self.clusters.values() {
            wanted.secrets.extend(
                cluster
                    .tls
                    .iter()
                    .flat_map(ClusterTls::secrets)
                    .filter_map(|secret| Some((secret.name.clone(), secret.source.clone()?))),
            );
            if let Some(reference) = &cluster.endpoints_from {
                wanted.endpoints.insert(reference.name.clone(), reference.source.clone());
            }
        }
        wanted
    }

    /// What a listener names and is not here: until it is, the listener cannot serve.
    pub fn missing(&self, listener: &Listener) -> Vec<String> {
        let mut missing = BTreeSet::new();
        for chain in listener.chains() {
            let secrets = chain.tls.iter().flat_map(DownstreamTls::secrets);
            let gone = secrets.filter(|secret| !self.secrets.contains_key(&secret.name));
            missing.extend(gone.map(|secret| format!("secret `{}` ({})", secret.name, secret.place)));
            if let Serve::Http(manager) = &chain.serve
                && let Routes::Named(routes) = &manager.routes
                && !self.routes.contains_key(&routes.name)
            {
                missing.insert(format!("route configuration `{}` ({})", routes.name, routes.place));
            }
        }
        missing.into_iter().collect()
    }

    /// The gateway that these make. Listeners that name something that is not here are left out, and so are clusters
    /// whose secrets are not here: requests to them are answered with 503.
    ///
    /// # Errors
    /// Everything that contradicts itself, with its place.
    pub fn model(&self, base: &Base) -> Result<(Gateway, Warnings), Vec<String>> {
        let mut problems = Vec::new();
        let mut warnings = Warnings::default();
        let mut settings = Settings::default();
        let mut gateway = base.gateway();
        for (name, listener) in &self.listeners {
            if self.missing(listener).is_empty() {
                match self.listener(listener, &mut settings) {
                    Ok(listener) => gateway.listeners.push(listener),
                    Err(problem) => problems.push(problem),
                }
            } else {
                warnings.add(&format!("waiting {name}"), || {
                    format!("the listener `{name}` waits for {}", self.missing(listener).join(", "))
                });
            }
        }
        problems.extend(same_address(&gateway.listeners));
        for (name, cluster) in &self.clusters {
            match self.upstream(cluster) {
                Ok(Some(upstream)) => drop(gateway.upstreams.insert(name.clone(), upstream)),
                Ok(None) => warnings
                    .add(&format!("waiting {name}"), || format!("the cluster `{name}` waits for its secret")),
                Err(_) if base.control_planes.contains(name) => {}
                Err(problem) => problems.push(problem),
            }
        }
        if let Err(problem) = settings.apply(&mut gateway, &mut warnings) {
            problems.push(problem);
        }
        if problems.is_empty() { Ok((gateway, warnings)) } else { Err(problems) }
    }

    fn listener(&self, listener: &Listener, settings: &mut Settings) -> Result<model::Listener, String> {
        let chain = |chain: &Chain, settings: &mut Settings| self.chain(chain, settings);
        let mut chains = Vec::new();
        for from in &listener.chains {
            chains.push(chain(from, settings)?);
        }
        let otherwise = match &listener.otherwise {
            Some(from) => Some(chain(from, settings)?),
            None => None,
        };
        Ok(model::Listener {
            name: listener.name.clone(),
            address: listener.address,
            place: listener.place.clone(),
            chains,
            otherwise,
            proxy_protocol: listener.proxy_protocol,
            inspection: listener.inspection,
            limits: listener.limits.clone(),
        })
    }

    fn chain(&self, chain: &Chain, settings: &mut Settings) -> Result<model::Chain, String> {
        let tls = match &chain.tls {
            Some(tls) => {
                let resolved = tls.resolve(&self.secrets)?;
                settings.add(&resolved, &tls.sessions);
                Some(resolved.tls)
            }
            None => None,
        };
        if let Some(log) = &chain.access_log {
            settings.access_log(log);
        }
        let serve = match &chain.serve {
            Serve::Tcp(to) => model::Serve::Tcp(to.clone()),
            Serve::Http(manager) => {
                let routes = match &manager.routes {
                    Routes::Here(table) => Arc::clone(table),
                    Routes::Named(reference) => match self.routes.get(&reference.name) {
                        Some(configuration) => Arc::clone(&configuration.table),
                        None => return Err(format!("{}: there is no `{}`", reference.place, reference.name)),
                    },
                };
                model::Serve::Http(Http {
                    routes,
                    normalize_path: manager.normalize_path,
                    merge_slashes: manager.merge_slashes,
                })
            }
        };
        Ok(model::Chain {
            name: chain.name.clone(),
            accepts: chain.accepts.clone(),
            tls,
            serve,
            timeouts: chain.timeouts.clone(),
            place: chain.place.clone(),
        })
    }

    /// `None` if its secret is not here.
    fn upstream(&self, cluster: &Cluster) -> Result<Option<Upstream>, String> {
        let mut secrets = cluster.tls.iter().flat_map(ClusterTls::secrets);
        if secrets.any(|secret| !self.secrets.contains_key(&secret.name)) {
            return Ok(None);
        }
        let endpoints: &[Endpoint] = match &cluster.endpoints_from {
            None => &cluster.endpoints,
            Some(reference) => self.endpoints.get(&reference.name).map_or(&[], |found| &found.endpoints),
        };
        cluster.resolve(endpoints, &self.secrets).map(Some)
    }
}

/// Two listeners cannot have one address; ports that the kernel chooses are all different.
fn same_address(listeners: &[model::Listener]) -> Vec<String> {
    let mut known: BTreeMap<SocketAddr, &model::Listener> = BTreeMap::new();
    let mut problems = Vec::new();
    for listener in listeners.iter().filter(|listener| listener.address.port() != 0) {
        if let Some(first) = known.insert(listener.address, listener) {
            problems.push(format!("{}: `{}` has this address already", listener.place, first.name));
        }
    }
    problems
}
