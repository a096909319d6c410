//! The servers of clusters.

use crate::{
    common::{Address, address},
    reader::{Field, Message, ReadMessage},
    schema,
    values::{enumeration, number},
};
use quadrille_config::{
    Problem,
    model::Place,
    yaml::{Node, Value},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    num::{NonZeroU32, NonZeroUsize},
};

/// `envoy.config.endpoint.v3.ClusterLoadAssignment`.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    pub(crate) endpoints: Vec<Endpoint>,
}

/// A server.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Where it is.
    pub address: Address,
    pub(crate) weight: NonZeroUsize,
    /// What it says of the way to it, for `transport_socket_matches`.
    pub(crate) labels: Labels,
    pub(crate) priority: u32,
    /// What its locality gets, for clusters whose load is shared by localities.
    pub(crate) locality: LocalityShare,
    pub(crate) place: Place,
}

/// What the servers of a locality get together, relative to other localities of their priority.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalityShare {
    /// 0 if it has none: it gets nothing beside others that have one.
    weight: u32,
    /// The sum of its servers' own weights.
    servers: usize,
}

/// So many units of weight are one of a locality's.
const LOCALITY_UNIT: usize = 1000;

impl Endpoint {
    /// Its weight among all servers of its priority, where localities share the load by theirs; `None` if its locality
    /// gets nothing.
    fn weight_in_locality(&self) -> Option<NonZeroUsize> {
        let LocalityShare { weight, servers } = self.locality;
        let weight = NonZeroU32::new(weight)?;
        let units = (weight.get() as usize).saturating_mul(LOCALITY_UNIT).saturating_mul(self.weight.get());
        Some(NonZeroUsize::new(units / servers.max(1)).unwrap_or(NonZeroUsize::MIN))
    }
}

/// The servers that get something, with their weights, where localities share the load. Those of a priority in which no
/// locality has a weight share it by their own.
pub(crate) fn shared_by_locality(endpoints: &[Endpoint]) -> impl Iterator<Item = (&Endpoint, NonZeroUsize)> {
    let weighted: BTreeSet<u32> =
        endpoints.iter().filter(|server| server.locality.weight > 0).map(|server| server.priority).collect();
    endpoints.iter().filter_map(move |server| {
        let weight = match weighted.contains(&server.priority) {
            true => server.weight_in_locality()?,
            false => server.weight,
        };
        Some((server, weight))
    })
}

/// Single values by name, of the metadata of a server or of a condition on it.
pub(crate) type Labels = BTreeMap<String, String>;

/// Which of the metadata says how a server is reached.
const TRANSPORT_MATCH: &str = "envoy.transport_socket_match";

/// Reads servers, with the name that they are asked for by.
pub(crate) fn assigned_endpoints(field: &Field<'_>) -> Option<(String, Endpoints)> {
    let message = field.message(&schema::LOAD_ASSIGNMENT)?;
    let name = message.string("cluster_name");
    let mut endpoints = Vec::new();
    for locality in message.list("endpoints") {
        endpoints.extend(locality_endpoints(&locality.message(&schema::LOCALITY_ENDPOINTS)?)?);
    }
    endpoints.sort_by_key(|endpoint| endpoint.priority);
    Some((name, Endpoints { endpoints }))
}

/// The servers of a locality that are in service.
fn locality_endpoints(locality: &Message<'_>) -> Option<Vec<Endpoint>> {
    let shared = labels_of(locality);
    let priority = locality.number("priority").unwrap_or_default();
    let weight = locality.number("load_balancing_weight").unwrap_or_default();
    let mut servers = Vec::new();
    for item in locality.list("lb_endpoints") {
        servers.extend(endpoint(&item, &shared)?);
    }
    let sum = servers.iter().map(|server| server.weight.get()).sum();
    for server in &mut servers {
        server.priority = priority;
        server.locality = LocalityShare { weight, servers: sum };
    }
    Some(servers)
}

/// `Some(None)` is a server that is out of service. `shared` is what its locality says of all its servers.
fn endpoint(field: &Field<'_>, shared: &Labels) -> Option<Option<Endpoint>> {
    const OUT: &[(&str, u32, bool)] = &[
        ("UNKNOWN", 0, false),
        ("HEALTHY", 1, false),
        ("UNHEALTHY", 2, true),
        ("DRAINING", 3, true),
        ("TIMEOUT", 4, true),
        ("DEGRADED", 5, false),
    ];
    let server = field.message(&schema::LB_ENDPOINT)?;
    let out = match server.get("health_status") {
        Some(status) => status.parse(enumeration(OUT))?,
        None => false,
    };
    let own = server.require("endpoint")?.message(&schema::ENDPOINT)?;
    let weight = match server.get("load_balancing_weight") {
        Some(weight) => weight.parse(number)?,
        None => 1,
    };
    let weight = usize::try_from(weight).ok().and_then(NonZeroUsize::new);
    let mut labels = labels_of(&server);
    if labels.is_empty() {
        labels.clone_from(shared);
    }
    let endpoint = Endpoint {
        address: server_address(&own.require("address")?)?,
        weight: weight.unwrap_or(NonZeroUsize::MIN),
        labels,
        priority: 0,
        locality: LocalityShare { weight: 0, servers: 1 },
        place: field.place(),
    };
    Some((!out).then_some(endpoint))
}

/// Of a server. Whatever listens on a Unix socket of this machine has reckoned with its users, and not with those of a
/// control plane.
fn server_address(field: &Field<'_>) -> Option<Address> {
    let address = address(field)?;
    let Address::Pipe(path) = &address else { return Some(address) };
    if !field.may_name(path) {
        return field.fail(Problem::new(
            "refused: a control plane names a Unix socket of this machine",
            "list its directory: --control-plane-files DIRECTORY",
        ));
    }
    Some(address)
}

/// What the `metadata` of a server or of a locality says of the way to servers.
fn labels_of(message: &Message<'_>) -> Labels {
    let metadata = message.get("metadata");
    let filters = metadata.as_ref().and_then(|metadata| {
        metadata.node().get("filter_metadata").or_else(|| metadata.node().get("filterMetadata"))
    });
    filters.and_then(|filters| filters.get(TRANSPORT_MATCH)).map(labels).unwrap_or_default()
}

/// The single values of a mapping; others match nothing.
pub(crate) fn labels(node: &Node) -> Labels {
    let Value::Mapping(entries) = &node.value else { return Labels::new() };
    let single = entries.iter().filter_map(|entry| {
        let text = entry.value.text()?;
        Some((entry.key.clone(), text.to_owned()))
    });
    single.collect()
}
