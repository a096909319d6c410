//! Endpoints of clusters.

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

/// An endpoint.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Address of the endpoint.
    pub address: Address,
    pub(crate) weight: NonZeroUsize,
    /// Metadata matched by `transport_socket_matches`.
    pub(crate) labels: Labels,
    pub(crate) priority: u32,
    /// Load share of its locality, for clusters with locality weights.
    pub(crate) locality: LocalityShare,
    pub(crate) place: Place,
}

/// Load share of a locality, relative to other localities of the same priority.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalityShare {
    /// Weight of the locality; 0 if it has none, and then it gets no load if others have a weight.
    weight: u32,
    /// Sum of its endpoints' own weights.
    servers: usize,
}

/// Units of weight per unit of a locality's weight.
const LOCALITY_UNIT: usize = 1000;

impl Endpoint {
    /// Returns its weight among all endpoints of its priority with locality weights; `None` if its locality gets no
    /// load.
    fn weight_in_locality(&self) -> Option<NonZeroUsize> {
        let LocalityShare { weight, servers } = self.locality;
        let weight = NonZeroU32::new(weight)?;
        let units = (weight.get() as usize).saturating_mul(LOCALITY_UNIT).saturating_mul(self.weight.get());
        Some(NonZeroUsize::new(units / servers.max(1)).unwrap_or(NonZeroUsize::MIN))
    }
}

/// Returns the endpoints that get load, with their weights, for locality weights. In a priority without locality
/// weights, the endpoints' own weights apply.
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

/// Scalar values by name, from the metadata of an endpoint or of a condition on it.
pub(crate) type Labels = BTreeMap<String, String>;

/// Metadata key of the labels that select a transport socket.
const TRANSPORT_MATCH: &str = "envoy.transport_socket_match";

/// Reads endpoints, with the resource name.
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

/// Reads the endpoints of a locality that are in service.
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

/// Reads an endpoint; `Some(None)` if it is out of service. `shared` are the labels of its locality.
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

/// Reads an endpoint's address. A service on a Unix socket of this machine is meant for its local users, and not for
/// those of a control plane.
fn server_address(field: &Field<'_>) -> Option<Address> {
    let address = address(field)?;
    let Address::Pipe(path) = &address else { return Some(address) };
    if !field.may_name(path) {
        return field.fail(Problem::new(
            "refused: a control plane names a local Unix socket",
            "list its directory: --control-plane-files DIRECTORY",
        ));
    }
    Some(address)
}

/// Reads the transport socket labels in the `metadata` of an endpoint or of a locality.
fn labels_of(message: &Message<'_>) -> Labels {
    let metadata = message.get("metadata");
    let filters = metadata.as_ref().and_then(|metadata| {
        metadata.node().get("filter_metadata").or_else(|| metadata.node().get("filterMetadata"))
    });
    filters.and_then(|filters| filters.get(TRANSPORT_MATCH)).map(labels).unwrap_or_default()
}

/// Returns the scalar values of a mapping; others match nothing.
pub(crate) fn labels(node: &Node) -> Labels {
    let Value::Mapping(entries) = &node.value else { return Labels::new() };
    let single = entries.iter().filter_map(|entry| {
        let text = entry.value.text()?;
        Some((entry.key.clone(), text.to_owned()))
    });
    single.collect()
}
