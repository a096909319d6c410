//! Control planes and the streams to them.

use crate::{identity, tls::Tls};
use quadrille_envoy::{Address, ApiSource, Bootstrap, Cluster, ConfigSource, Dynamic, Wanted};
use quadrille_xds::{
    Client, Dialect, Interest, Kind, Limits, proto,
    transport::{Connect, Connecting, ControlPlane, Io, Tcp, Unix},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The control planes of a bootstrap.
pub(crate) struct Planes {
    node: proto::Node,
    clusters: BTreeMap<String, Arc<Cluster>>,
    ads: Option<ApiSource>,
}

/// A stream that is needed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stream {
    /// The kind of a service with this one alone.
    pub(crate) only: Option<Kind>,
    source: ApiSource,
}

impl Stream {
    /// What it can bring.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.only.map_or_else(|| Kind::ALL.to_vec(), |kind| vec![kind])
    }
}

impl Planes {
    /// Checks all that the bootstrap names.
    pub(crate) fn new(bootstrap: &Bootstrap) -> Result<Self, Vec<String>> {
        let planes = Self {
            node: identity::node(bootstrap),
            clusters: bootstrap.resources.clusters.clone(),
            ads: bootstrap.dynamic.ads.clone(),
        };
        let needed = planes.needed(&bootstrap.dynamic, &bootstrap.resources.wanted());
        let mut problems: Vec<String> =
            needed.iter().filter_map(|(stream, _)| planes.client(stream).err()).collect();
        if planes.node.id.is_empty() {
            problems.push("node.id is missing; control planes know gateways by it".to_owned());
        }
        if problems.is_empty() { Ok(planes) } else { Err(problems) }
    }

    /// The streams that are needed, with what is wanted of them.
    pub(crate) fn needed(
        &self,
        dynamic: &Dynamic,
        wanted: &Wanted,
    ) -> Vec<(Stream, BTreeMap<Kind, Interest>)> {
        let mut needed: Vec<(Stream, BTreeMap<Kind, Interest>)> = Vec::new();
        for (kind, source) in [(Kind::Cluster, &dynamic.cds), (Kind::Listener, &dynamic.lds)] {
            if let Some(stream) = source.as_ref().and_then(|source| self.stream(kind, source)) {
                wants(&mut needed, stream).insert(kind, Interest::Everything);
            }
        }
        let named = [
            (Kind::Endpoints, &wanted.endpoints),
            (Kind::Routes, &wanted.routes),
            (Kind::Secret, &wanted.secrets),
        ];
        for (kind, map) in named {
            for (name, source) in map {
                let Some(stream) = self.stream(kind, source) else { continue };
                let interest = wants(&mut needed, stream).entry(kind).or_default();
                match interest {
                    Interest::Names(names) => _ = names.insert(name.clone()),
                    _ => *interest = Interest::Names(BTreeSet::from([name.clone()])),
                }
            }
        }
        needed
    }

    /// `None` for what is in a file.
    fn stream(&self, kind: Kind, source: &ConfigSource) -> Option<Stream> {
        match source {
            ConfigSource::File(_) => None,
            ConfigSource::Ads => Some(Stream { only: None, source: self.ads.clone()? }),
            ConfigSource::Api(api) => {
                Some(Stream { only: (!api.aggregated).then_some(kind), source: api.clone() })
            }
        }
    }

    /// How to speak on a stream.
    pub(crate) fn client(&self, stream: &Stream) -> Result<Client, String> {
        let source = &stream.source;
        let cluster = self.clusters.get(&source.cluster).ok_or_else(|| {
            format!(
                "the control plane `{}` is no cluster of the bootstrap; write it under static_resources.clusters",
                source.cluster
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

fn wants(
    needed: &mut Vec<(Stream, BTreeMap<Kind, Interest>)>,
    stream: Stream,
) -> &mut BTreeMap<Kind, Interest> {
    let at = needed.iter().position(|(known, _)| *known == stream).unwrap_or_else(|| {
        needed.push((stream, BTreeMap::new()));
        needed.len() - 1
    });
    &mut needed[at].1
}

fn connect(name: &str, cluster: &Cluster) -> Result<Arc<dyn Connect>, String> {
    let tls = cluster.tls.as_ref().map(|tls| Tls::new(name, tls)).transpose()?;
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
        return Err(format!(
            "the cluster `{name}` of a control plane needs endpoints that are written in the bootstrap"
        ));
    }
    Ok(Arc::new(InTurn { servers, next: AtomicUsize::new(0) }))
}

/// One server after the other, a new one for each connection.
struct InTurn {
    servers: Vec<Arc<dyn Connect>>,
    next: AtomicUsize,
}

impl Connect for InTurn {
    fn connect(&self) -> Connecting {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.servers[next % self.servers.len()].connect()
    }
}

/// For [`crate::tls`].
pub(crate) fn boxed(io: impl Io + 'static) -> Box<dyn Io> {
    Box::new(io)
}
