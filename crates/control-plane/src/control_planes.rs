//! Control planes and the streams to them.

use crate::{node, tls::Tls};
use quadrille_config::{Diagnostic, Diagnostics, Problem, model::Place};
use quadrille_envoy::{Address, ApiSource, Bootstrap, Cluster, ConfigSource, DynamicResources, References};
use quadrille_xds::{
    Client, Dialect, Interest, Limits, ResourceType, proto,
    transport::{Connect, Connecting, ControlPlane, Tcp, Unix},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The control planes of a bootstrap.
pub(crate) struct ControlPlanes {
    node: proto::Node,
    clusters: BTreeMap<String, Arc<Cluster>>,
    ads: Option<ApiSource>,
}

/// Identity of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StreamKey {
    /// Resource type of a single-type service; `None` for the aggregated service.
    pub(crate) only: Option<ResourceType>,
    source: ApiSource,
}

impl StreamKey {
    /// Returns the resource types that the stream can carry.
    pub(crate) fn resource_types(&self) -> Vec<ResourceType> {
        self.only.map_or_else(|| ResourceType::ALL.to_vec(), |kind| vec![kind])
    }
}

impl ControlPlanes {
    /// # Errors
    /// Every problem that prevents a control plane of the bootstrap from being used.
    pub(crate) fn new(bootstrap: &Bootstrap) -> Result<Self, Diagnostics> {
        let control_planes = Self {
            node: node::node(bootstrap),
            clusters: bootstrap.resources.clusters.clone(),
            ads: bootstrap.dynamic.ads.clone(),
        };
        let required = control_planes.required_streams(&bootstrap.dynamic, &bootstrap.resources.references());
        let place = Place::whole(bootstrap.origin.clone());
        let wrong = |problem: Problem| Diagnostic::new(&place, problem);
        let unusable = required.iter().filter_map(|(stream, _)| control_planes.client(stream).err());
        let mut problems: Vec<Diagnostic> = unusable.map(wrong).collect();
        if control_planes.node.id.is_empty() {
            problems.push(wrong(Problem::new("node.id is missing", "it identifies the gateway")));
        }
        if problems.is_empty() { Ok(control_planes) } else { Err(problems.into()) }
    }

    /// Returns the streams that these sources and references require, with the subscriptions of each.
    pub(crate) fn required_streams(
        &self,
        dynamic: &DynamicResources,
        references: &References,
    ) -> Vec<(StreamKey, BTreeMap<ResourceType, Interest>)> {
        let mut required: Vec<(StreamKey, BTreeMap<ResourceType, Interest>)> = Vec::new();
        for (kind, source) in [(ResourceType::Cluster, &dynamic.cds), (ResourceType::Listener, &dynamic.lds)]
        {
            if let Some(stream) = source.as_ref().and_then(|source| self.stream(kind, source)) {
                interests_of(&mut required, stream).insert(kind, Interest::Wildcard);
            }
        }
        let named = [
            (ResourceType::Endpoints, &references.endpoints),
            (ResourceType::Routes, &references.routes),
            (ResourceType::Secret, &references.secrets),
        ];
        for (kind, map) in named {
            for (name, source) in map {
                let Some(stream) = self.stream(kind, source) else { continue };
                let interest = interests_of(&mut required, stream).entry(kind).or_default();
                match interest {
                    Interest::Names(names) => _ = names.insert(name.clone()),
                    _ => *interest = Interest::Names(BTreeSet::from([name.clone()])),
                }
            }
        }
        required
    }

    /// Returns the stream of a source; `None` if it is a file.
    fn stream(&self, kind: ResourceType, source: &ConfigSource) -> Option<StreamKey> {
        match source {
            ConfigSource::File(_) => None,
            ConfigSource::Ads => Some(StreamKey { only: None, source: self.ads.clone()? }),
            ConfigSource::Api(api) => {
                Some(StreamKey { only: (!api.aggregated).then_some(kind), source: api.clone() })
            }
        }
    }

    /// Creates the client of a stream.
    ///
    /// # Errors
    /// Fails if the control plane of the stream cannot be used.
    pub(crate) fn client(&self, stream: &StreamKey) -> Result<Client, Problem> {
        let source = &stream.source;
        let cluster = self.clusters.get(&source.cluster).ok_or_else(|| {
            Problem::new(
                format!("the control plane `{}` is not a cluster of the bootstrap", source.cluster),
                "define it under static_resources.clusters",
            )
        })?;
        let connect = connect(&source.cluster, cluster)?;
        let authority = if source.authority.is_empty() { &source.cluster } else { &source.authority };
        Ok(Client {
            control_plane: ControlPlane {
                name: source.cluster.clone(),
                authority: authority.clone(),
                connect,
                metadata: source.metadata.clone(),
                connect_timeout: cluster.connect_timeout,
            },
            dialect: if source.delta { Dialect::Delta } else { Dialect::StateOfTheWorld },
            only: stream.only,
            node: self.node.clone(),
            limits: Limits::default(),
        })
    }
}

fn interests_of(
    required: &mut Vec<(StreamKey, BTreeMap<ResourceType, Interest>)>,
    stream: StreamKey,
) -> &mut BTreeMap<ResourceType, Interest> {
    let at = required.iter().position(|(known, _)| *known == stream).unwrap_or_else(|| {
        required.push((stream, BTreeMap::new()));
        required.len() - 1
    });
    &mut required[at].1
}

fn connect(name: &str, cluster: &Cluster) -> Result<Arc<dyn Connect>, String> {
    let tls = cluster.tls().map(|tls| Tls::new(name, tls)).transpose()?;
    let servers: Vec<Arc<dyn Connect>> = cluster
        .endpoints
        .iter()
        .map(|endpoint| -> Arc<dyn Connect> {
            let (plain, host): (Arc<dyn Connect>, _) = match &endpoint.address {
                Address::Socket { host, .. } => (Arc::new(Tcp(endpoint.address.text())), host.clone()),
                Address::Pipe(path) => (Arc::new(Unix(path.clone())), "localhost".to_owned()),
            };
            match &tls {
                Some(tls) => Arc::new(tls.over(plain, host)),
                None => plain,
            }
        })
        .collect();
    if servers.is_empty() {
        return Err(format!("the cluster `{name}` of a control plane needs endpoints in the bootstrap"));
    }
    Ok(Arc::new(RoundRobin { servers, next: AtomicUsize::new(0) }))
}

/// Connects to the endpoints in turn.
struct RoundRobin {
    servers: Vec<Arc<dyn Connect>>,
    next: AtomicUsize,
}

impl Connect for RoundRobin {
    fn connect(&self) -> Connecting {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.servers[next % self.servers.len()].connect()
    }
}
