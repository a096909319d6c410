//! All resources of a process, by name, and the gateway built from them.
//!
//! Static and dynamic resources are treated alike. Each is read and validated once by itself; names are resolved
//! here.

use crate::{
    cluster::Cluster,
    common::Protocol,
    compressor::compressed,
    config_source::ConfigSource,
    endpoints::{Endpoint, Endpoints},
    http::Routes,
    listener::{Chain, Listener, Serve},
    rbac::Access,
    resource::{Read, Resource},
    resource_type::ResourceType,
    route::RouteConfiguration,
    settings::{ContextSettings, ProcessSettings},
    tls::{DownstreamTls, Secret},
};
use quadrille_config::{
    Diagnostic, Diagnostics, Warnings,
    model::{self, AccessRules, AltSvc, Gateway, Http, Http3, HttpTracing, Upstream},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
};

/// Resources by name. Resources unchanged between two sets should be the same `Arc` in both.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// Listeners, from LDS or static.
    pub listeners: BTreeMap<String, Arc<Listener>>,
    /// Route configurations from RDS.
    pub routes: BTreeMap<String, Arc<RouteConfiguration>>,
    /// Clusters, from CDS or static.
    pub clusters: BTreeMap<String, Arc<Cluster>>,
    /// Endpoints from EDS.
    pub endpoints: BTreeMap<String, Arc<Endpoints>>,
    /// Secrets, from SDS or static.
    pub secrets: BTreeMap<String, Arc<Secret>>,
    /// Individually received resources as written, without secrets.
    dumps: BTreeMap<(ResourceType, String), Arc<serde_json::Value>>,
}

/// Referenced resources that come from elsewhere, with their sources.
#[derive(Clone, Debug, Default)]
pub struct References {
    /// Route configurations.
    pub routes: BTreeMap<String, ConfigSource>,
    /// Endpoints of clusters.
    pub endpoints: BTreeMap<String, ConfigSource>,
    /// Secrets.
    pub secrets: BTreeMap<String, ConfigSource>,
}

impl Resources {
    /// Adds a resource that was read, replacing one with the same name.
    pub fn insert(&mut self, read: Read) {
        self.dumps.insert((read.resource.kind(), read.name.clone()), read.dump);
        self.insert_resource(read.name, read.resource);
    }

    /// Adds a resource that is part of the bootstrap, and of its dump.
    pub(crate) fn insert_static(&mut self, name: String, resource: Resource) {
        self.dumps.remove(&(resource.kind(), name.clone()));
        self.insert_resource(name, resource);
    }

    /// Copies a resource from another set. Returns whether it exists there.
    pub fn copy(&mut self, from: &Self, kind: ResourceType, name: &str) -> bool {
        let Some(resource) = from.get(kind, name) else { return false };
        let key = (kind, name.to_owned());
        match from.dumps.get(&key) {
            Some(dump) => _ = self.dumps.insert(key, dump.clone()),
            None => _ = self.dumps.remove(&key),
        }
        self.insert_resource(name.to_owned(), resource);
        true
    }

    fn insert_resource(&mut self, name: String, resource: Resource) {
        match resource {
            Resource::Listener(listener) => drop(self.listeners.insert(name, listener)),
            Resource::Routes(route) => drop(self.routes.insert(name, route)),
            Resource::Cluster(cluster) => drop(self.clusters.insert(name, cluster)),
            Resource::Endpoints(endpoints) => drop(self.endpoints.insert(name, endpoints)),
            Resource::Secret(secret) => drop(self.secrets.insert(name, secret)),
        }
    }

    /// Removes a resource. Returns whether it was present.
    pub fn remove(&mut self, kind: ResourceType, name: &str) -> bool {
        self.dumps.remove(&(kind, name.to_owned()));
        match kind {
            ResourceType::Listener => self.listeners.remove(name).is_some(),
            ResourceType::Routes => self.routes.remove(name).is_some(),
            ResourceType::Cluster => self.clusters.remove(name).is_some(),
            ResourceType::Endpoints => self.endpoints.remove(name).is_some(),
            ResourceType::Secret => self.secrets.remove(name).is_some(),
        }
    }

    fn get(&self, kind: ResourceType, name: &str) -> Option<Resource> {
        Some(match kind {
            ResourceType::Listener => Resource::Listener(self.listeners.get(name)?.clone()),
            ResourceType::Routes => Resource::Routes(self.routes.get(name)?.clone()),
            ResourceType::Cluster => Resource::Cluster(self.clusters.get(name)?.clone()),
            ResourceType::Endpoints => Resource::Endpoints(self.endpoints.get(name)?.clone()),
            ResourceType::Secret => Resource::Secret(self.secrets.get(name)?.clone()),
        })
    }

    /// Returns whether there is a resource of this name.
    pub fn contains(&self, kind: ResourceType, name: &str) -> bool {
        match kind {
            ResourceType::Listener => self.listeners.contains_key(name),
            ResourceType::Routes => self.routes.contains_key(name),
            ResourceType::Cluster => self.clusters.contains_key(name),
            ResourceType::Endpoints => self.endpoints.contains_key(name),
            ResourceType::Secret => self.secrets.contains_key(name),
        }
    }

    /// Returns the individually received resources of a type, by name, as written, without secrets.
    pub fn dumps(&self, kind: ResourceType) -> impl Iterator<Item = (&str, &serde_json::Value)> {
        let dumps =
            self.dumps.range((kind, String::new())..).take_while(move |((other, _), _)| *other == kind);
        dumps.map(|((_, name), dump)| (name.as_str(), &**dump))
    }

    /// Fails if a referenced resource is missing and does not come from a control plane.
    pub(crate) fn refuse_never_coming(&self) -> Result<(), Diagnostics> {
        let mut never = Vec::new();
        let static_only =
            |source: &Option<ConfigSource>| matches!(source, None | Some(ConfigSource::File(_)));
        let chains = || self.listeners.values().flat_map(|listener| listener.chains());
        let of_listeners = chains().filter_map(|chain| chain.tls.as_ref()).flat_map(DownstreamTls::secrets);
        let of_clusters = self.clusters.values().flat_map(|cluster| cluster.secrets());
        for secret in of_listeners.chain(of_clusters) {
            if static_only(&secret.source) && !self.secrets.contains_key(&secret.name) {
                never.push(secret.missing());
            }
        }
        for chain in chains() {
            if let Serve::Http(manager) = &chain.serve
                && let Routes::Named(routes) = &manager.routes
                && matches!(routes.source, ConfigSource::File(_))
                && !self.routes.contains_key(&routes.name)
            {
                let text = format!("there is no route configuration `{}`", routes.name);
                never.push(Diagnostic::new(&routes.place, text));
            }
        }
        if never.is_empty() { Ok(()) } else { Err(Diagnostics::new(never)) }
    }

    /// Returns the resources that are referenced but not contained in this set.
    pub fn references(&self) -> References {
        let mut references = References::default();
        for chain in self.listeners.values().flat_map(|listener| listener.chains()) {
            references.secrets.extend(
                chain
                    .tls
                    .iter()
                    .flat_map(DownstreamTls::secrets)
                    .filter_map(|secret| Some((secret.name.clone(), secret.source.clone()?))),
            );
            if let Serve::Http(manager) = &chain.serve
                && let Routes::Named(routes) = &manager.routes
            {
                references.routes.insert(routes.name.clone(), routes.source.clone());
            }
        }
        for cluster in self.clusters.values() {
            references.secrets.extend(
                cluster.secrets().filter_map(|secret| Some((secret.name.clone(), secret.source.clone()?))),
            );
            if let Some(reference) = &cluster.endpoints_from {
                references.endpoints.insert(reference.name.clone(), reference.source.clone());
            }
        }
        references
    }

    /// Returns the missing resources of a listener, which it needs to serve.
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

    /// Builds the gateway. Listeners that reference missing resources are omitted, and so are clusters with missing
    /// secrets: requests to them get 503.
    ///
    /// # Errors
    /// Every contradiction, with its place.
    pub fn model(&self, process: &ProcessSettings) -> Result<(Gateway, Warnings), Diagnostics> {
        let mut problems = Vec::new();
        let mut warnings = Warnings::default();
        let mut settings = ContextSettings::default();
        let mut gateway = process.gateway();
        for (name, listener) in &self.listeners {
            if self.missing(listener).is_empty() {
                match self.listener(listener, &mut settings) {
                    Ok(model) => gateway.listeners.extend(
                        listener.addresses().map(|address| model::Listener { address, ..model.clone() }),
                    ),
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
                Err(_) if process.control_planes.contains(name) => {}
                Err(problem) => problems.push(problem),
            }
        }
        if let Err(problem) = settings.apply(&mut gateway) {
            problems.push(problem);
        }
        if problems.is_empty() { Ok((gateway, warnings)) } else { Err(Diagnostics::new(problems)) }
    }

    fn listener(
        &self,
        listener: &Listener,
        settings: &mut ContextSettings,
    ) -> Result<model::Listener, Diagnostic> {
        // Clients on UDP already use HTTP/3; others learn of it from a header that the routes add.
        let http3 = (listener.protocol == Protocol::Udp).then_some(Http3 { alt_svc: AltSvc::Off });
        let chain = |chain: &Chain, settings: &mut ContextSettings| {
            Ok::<_, Diagnostic>(model::Chain {
                http3: http3.clone(),
                ..self.chain(chain, listener.outbound, settings)?
            })
        };
        let mut chains = Vec::new();
        for from in &listener.chains {
            chains.push(chain(from, settings)?);
        }
        let default_chain = match &listener.default_chain {
            Some(from) => Some(chain(from, settings)?),
            None => None,
        };
        Ok(model::Listener {
            name: listener.name.clone(),
            address: listener.address,
            bound: listener.bound,
            redirected: listener.redirected,
            place: listener.place.clone(),
            chains,
            default_chain,
            proxy_protocol: listener.proxy_protocol,
            tcp: listener.protocol == Protocol::Tcp,
            trusted_proxies: model::TrustedProxies::AppendedTo,
            inspection: listener.inspection.clone(),
            limits: listener.limits.clone(),
        })
    }

    fn chain(
        &self,
        chain: &Chain,
        outbound: bool,
        settings: &mut ContextSettings,
    ) -> Result<model::Chain, Diagnostic> {
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
                        None => {
                            return Err(Diagnostic::new(
                                &reference.place,
                                format!("there is no `{}`", reference.name),
                            ));
                        }
                    },
                };
                let defaults = Http::new(compressed(routes, manager.compression.as_ref()));
                model::Serve::Http(Http {
                    paths: manager.paths,
                    access: manager.access.clone(),
                    limits: manager.limits.clone(),
                    local_replies: manager.local_replies.clone(),
                    request_ids: manager.request_ids,
                    forwarded_certificate: manager.forwarded_certificate,
                    strip_port: manager.strip_port,
                    upgrades: Arc::new(manager.upgrades.clone()),
                    // Envoy closes such connections.
                    abort_on_close: true,
                    envoy_headers: Some(manager.envoy_headers.clone()),
                    tracing: manager
                        .tracing
                        .as_ref()
                        .map(|tracing| Arc::new(HttpTracing { outbound, ..tracing.clone() })),
                    ..defaults
                })
            }
        };
        Ok(model::Chain {
            name: chain.name.clone(),
            accepts: chain.accepts.clone(),
            tls,
            serve,
            http3: None,
            access: rules(&chain.access),
            timeouts: chain.timeouts.clone(),
            place: chain.place.clone(),
        })
    }

    /// Returns `None` if its secret is missing.
    fn upstream(&self, cluster: &Cluster) -> Result<Option<Upstream>, Diagnostic> {
        let mut secrets = cluster.secrets();
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

/// Reports duplicate addresses. A TCP and a UDP listener may share one; ports chosen by the kernel never conflict.
fn same_address(listeners: &[model::Listener]) -> Vec<Diagnostic> {
    let mut known: BTreeMap<(SocketAddr, bool), &model::Listener> = BTreeMap::new();
    let mut problems = Vec::new();
    for listener in listeners.iter().filter(|listener| listener.address.port() != 0) {
        if let Some(first) = known.insert((listener.address, listener.tcp), listener) {
            let text = format!("`{}` already has this address", first.name);
            problems.push(Diagnostic::new(&listener.place, text));
        }
    }
    problems
}

fn rules(access: &[Access]) -> Vec<AccessRules> {
    access.iter().map(|access| access.rules.clone()).collect()
}
