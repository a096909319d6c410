//! Clusters and their servers.

use crate::{
    common::{Address, address, duration},
    config_source::{ConfigSource, config_source},
    health::health,
    reader::{Field, Message, ReadMessage},
    schema,
    tls::{ClusterTls, Secret, upstream},
    values::{enumeration, number},
};
use quadrille_config::{
    Diagnostic, Problem,
    model::{Balance, Health, Place, Server, Upstream, UpstreamProtocol, UpstreamTimeouts},
};
use std::{collections::BTreeMap, num::NonZeroUsize, sync::Arc, time::Duration};

/// `envoy.config.cluster.v3.Cluster`.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Where its servers come from, unless they are written in place.
    pub endpoints_from: Option<EndpointsReference>,
    /// Servers that are written in place.
    pub endpoints: Vec<Endpoint>,
    /// TLS towards the servers.
    pub tls: Option<ClusterTls>,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// HTTP/2 is spoken, with prior knowledge in plain text.
    pub http2: bool,
    protocol: UpstreamProtocol,
    balance: Balance,
    health: Option<Health>,
    idle: Option<Duration>,
    place: Place,
}

/// Servers that come by EDS.
#[derive(Clone, Debug)]
pub struct EndpointsReference {
    /// The name to ask for.
    pub name: String,
    /// Where they come from.
    pub source: ConfigSource,
}

/// `envoy.config.endpoint.v3.ClusterLoadAssignment`.
#[derive(Clone, Debug)]
pub struct Endpoints {
    pub(crate) endpoints: Vec<Endpoint>,
}

/// A server.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Where it is.
    pub address: Address,
    weight: NonZeroUsize,
    place: Place,
}

/// How a cluster finds its servers.
#[derive(Clone, Copy, PartialEq)]
enum Discovery {
    Static,
    Dns,
    Eds,
}

/// What Envoy takes when nothing is said.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);
const STREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Reads a cluster, with its name.
pub(crate) fn cluster(field: &Field<'_>) -> Option<(String, Cluster)> {
    const TYPES: &[(&str, u32, Discovery)] = &[
        ("STATIC", 0, Discovery::Static),
        ("STRICT_DNS", 1, Discovery::Dns),
        ("LOGICAL_DNS", 2, Discovery::Dns),
        ("EDS", 3, Discovery::Eds),
    ];
    let message = field.message(&schema::CLUSTER)?;
    let name_field = message.require("name")?;
    let name = name_field.text()?.to_owned();
    if name.is_empty() {
        return name_field.fail("the name is empty");
    }
    let discovery = match message.get("type") {
        Some(kind) => kind.parse(enumeration(TYPES))?,
        None => Discovery::Static,
    };
    let assigned = message.get("load_assignment");
    let endpoints = match &assigned {
        Some(assignment) => assigned_endpoints(assignment)?.1.endpoints,
        None => Vec::new(),
    };
    if discovery == Discovery::Static {
        must_be_addresses(&endpoints, field)?;
    }
    let endpoints_from = eds(&message, &name, discovery)?;
    let protocol = protocol(&message)?;
    Some((
        name,
        Cluster {
            endpoints_from,
            endpoints,
            tls: transport_socket(&message)?,
            connect_timeout: time(&message, "connect_timeout")?.unwrap_or(CONNECT_TIMEOUT),
            http2: protocol.0 == UpstreamProtocol::Http2,
            protocol: protocol.0,
            idle: protocol.1,
            balance: balance(&message)?,
            health: health(&message)?,
            place: field.place(),
        },
    ))
}

/// A time that may be absent; `None` if it is a mistake.
fn time(message: &Message<'_>, name: &'static str) -> Option<Option<Duration>> {
    match message.get(name) {
        Some(field) => duration(&field).map(Some),
        None => Some(None),
    }
}

fn must_be_addresses(endpoints: &[Endpoint], field: &Field<'_>) -> Option<()> {
    let is_name = |endpoint: &&Endpoint| match &endpoint.address {
        Address::Socket { host, .. } => host.parse::<std::net::IpAddr>().is_err(),
        Address::Pipe(_) => false,
    };
    match endpoints.iter().find(is_name) {
        Some(endpoint) => field.fail(Problem::new(
            format!("{}: a name needs a cluster of type STRICT_DNS or LOGICAL_DNS", endpoint.address.text()),
            "this one is STATIC",
        )),
        None => Some(()),
    }
}

fn eds(message: &Message<'_>, name: &str, discovery: Discovery) -> Option<Option<EndpointsReference>> {
    let config = message.get("eds_cluster_config");
    match (discovery, config) {
        (Discovery::Eds, Some(config)) => {
            let config = config.message(&schema::EDS_CONFIG)?;
            let service = config.string("service_name");
            let source = config_source(&config.require("eds_config")?)?;
            let name = if service.is_empty() { name.to_owned() } else { service };
            Some(Some(EndpointsReference { name, source }))
        }
        (Discovery::Eds, None) => message.field().fail("`eds_cluster_config` is missing"),
        _ => Some(None),
    }
}

fn transport_socket(message: &Message<'_>) -> Option<Option<ClusterTls>> {
    let Some(field) = message.get("transport_socket") else { return Some(None) };
    let socket = field.message(&schema::TRANSPORT_SOCKET)?;
    let config = socket.require("typed_config")?;
    let (kind, config) = config.any()?;
    match kind.rsplit('.').next() {
        Some("UpstreamTlsContext") => upstream(&config).map(Some),
        Some("RawBuffer") => Some(None),
        _ => config.fail(Problem::new(
            format!("refused: there is no transport socket {kind} towards servers"),
            "TLS and raw buffer",
        )),
    }
}

/// Which protocol is spoken, and how long an idle connection is kept.
fn protocol(message: &Message<'_>) -> Option<(UpstreamProtocol, Option<Duration>)> {
    let mut protocol = UpstreamProtocol::Http1;
    let mut idle = None;
    message.get("http_protocol_options");
    if message.get("http2_protocol_options").is_some() {
        protocol = UpstreamProtocol::Http2;
    }
    if let Some(common) = message.get("common_http_protocol_options") {
        idle = time(&common.message(&schema::COMMON_HTTP_OPTIONS)?, "idle_timeout")?;
    }
    if let Some(options) = message.get("upstream_http_protocol_options") {
        options.message(&schema::UPSTREAM_HTTP_NAME)?;
    }
    let Some(extensions) = message.get("typed_extension_protocol_options") else {
        return Some((protocol, idle));
    };
    for (_, extension) in extensions.entries() {
        let (kind, options) = extension.any()?;
        if kind != schema::UPSTREAM_HTTP.name {
            options.warn("extension-options", format!("ignored: {kind} has no effect here"));
            continue;
        }
        let options = options.message(&schema::UPSTREAM_HTTP)?;
        if let Some(common) = options.get("common_http_protocol_options") {
            idle = time(&common.message(&schema::COMMON_HTTP_OPTIONS)?, "idle_timeout")?.or(idle);
        }
        if let Some(names) = options.get("upstream_http_protocol_options") {
            names.message(&schema::UPSTREAM_HTTP_NAME)?;
        }
        let kinds = ["explicit_http_config", "use_downstream_protocol_config", "auto_config"];
        protocol = match options.one_of(&kinds) {
            Some(("explicit_http_config", explicit)) => {
                let explicit = explicit.message(&schema::EXPLICIT_HTTP)?;
                match explicit.one_of(&["http_protocol_options", "http2_protocol_options"]) {
                    Some(("http2_protocol_options", _)) => UpstreamProtocol::Http2,
                    _ => UpstreamProtocol::Http1,
                }
            }
            Some(_) => UpstreamProtocol::Auto,
            None => protocol,
        };
    }
    Some((protocol, idle))
}

/// What ring hash and Maglev become.
const BY_CLIENT: &str = "served by the client's address (ketama)";

fn balance(message: &Message<'_>) -> Option<Balance> {
    const POLICIES: &[(&str, u32, Balance)] = &[
        ("ROUND_ROBIN", 0, Balance::RoundRobin),
        ("LEAST_REQUEST", 1, Balance::LeastRequest),
        ("RING_HASH", 2, Balance::ClientIp),
        ("RANDOM", 3, Balance::Random),
        ("MAGLEV", 5, Balance::ClientIp),
        ("LOAD_BALANCING_POLICY_CONFIG", 7, Balance::RoundRobin),
    ];
    let mut chosen = Balance::RoundRobin;
    if let Some(field) = message.get("lb_policy") {
        chosen = field.parse(enumeration(POLICIES))?;
        if chosen == Balance::ClientIp {
            field.warn("lb_policy RING_HASH", BY_CLIENT);
        }
    }
    let Some(field) = message.get("load_balancing_policy") else { return Some(chosen) };
    for policy in field.message(&schema::LB_POLICY)?.list("policies") {
        let policy = policy.message(&schema::LB_POLICY_ITEM)?;
        let extension = policy.require("typed_extension_config")?.message(&schema::TYPED_EXTENSION)?;
        let (kind, config) = extension.require("typed_config")?.any()?;
        let balance = match kind.rsplit('.').next() {
            Some("RoundRobin") => Balance::RoundRobin,
            Some("Random") => Balance::Random,
            Some("LeastRequest") => Balance::LeastRequest,
            Some("RingHash" | "Maglev") => {
                config.warn("lb_policy RING_HASH", BY_CLIENT);
                Balance::ClientIp
            }
            _ => continue,
        };
        return Some(balance);
    }
    field.fail(Problem::new(
        "none of these policies is known",
        "known are RoundRobin, LeastRequest, Random, RingHash, Maglev",
    ))
}

/// Reads servers, with the name that they are asked for by.
pub(crate) fn assigned_endpoints(field: &Field<'_>) -> Option<(String, Endpoints)> {
    const OUT: &[(&str, u32, bool)] = &[
        ("UNKNOWN", 0, false),
        ("HEALTHY", 1, false),
        ("UNHEALTHY", 2, true),
        ("DRAINING", 3, true),
        ("TIMEOUT", 4, true),
        ("DEGRADED", 5, false),
    ];
    let message = field.message(&schema::LOAD_ASSIGNMENT)?;
    let name = message.string("cluster_name");
    let mut by_priority: BTreeMap<u32, Vec<Endpoint>> = BTreeMap::new();
    for locality in message.list("endpoints") {
        let locality = locality.message(&schema::LOCALITY_ENDPOINTS)?;
        let priority = locality.number("priority").unwrap_or_default();
        for item in locality.list("lb_endpoints") {
            let server = item.message(&schema::LB_ENDPOINT)?;
            let out = match server.get("health_status") {
                Some(status) => status.parse(enumeration(OUT))?,
                None => false,
            };
            let endpoint = server.require("endpoint")?.message(&schema::ENDPOINT)?;
            let weight = match server.get("load_balancing_weight") {
                Some(weight) => weight.parse(number)?,
                None => 1,
            };
            let weight = usize::try_from(weight).ok().and_then(NonZeroUsize::new);
            let endpoint = Endpoint {
                address: address(&endpoint.require("address")?)?,
                weight: weight.unwrap_or(NonZeroUsize::MIN),
                place: item.place(),
            };
            let servers = by_priority.entry(priority).or_default();
            if !out {
                servers.push(endpoint);
            }
        }
    }
    let endpoints = by_priority.into_values().find(|servers| !servers.is_empty()).unwrap_or_default();
    Some((name, Endpoints { endpoints }))
}

impl Cluster {
    /// The model's form, with these servers.
    ///
    /// # Errors
    /// If it is only fit for a control plane, or a secret is not there.
    pub(crate) fn resolve(
        &self,
        endpoints: &[Endpoint],
        secrets: &BTreeMap<String, Arc<Secret>>,
    ) -> Result<Upstream, Diagnostic> {
        if let Some(unsupported) = self.tls.as_ref().and_then(|tls| tls.unsupported.clone()) {
            return Err(unsupported);
        }
        if let Some(pipe) = endpoints.iter().find(|endpoint| matches!(endpoint.address, Address::Pipe(_))) {
            return Err(Diagnostic::new(&pipe.place, "refused: requests do not go to Unix sockets yet"));
        }
        let server = |endpoint: &Endpoint| Server {
            weight: endpoint.weight,
            ..Server::new(endpoint.address.text(), endpoint.place.clone())
        };
        let mut upstream = Upstream::new(endpoints.iter().map(server).collect(), self.place.clone());
        upstream.balance = self.balance;
        upstream.health = self.health.clone();
        upstream.protocol = self.protocol;
        // Envoy tries nothing again that a route does not ask for.
        upstream.retries = 0;
        upstream.tls = match &self.tls {
            Some(tls) => Some(tls.resolve(secrets)?),
            None => None,
        };
        upstream.timeouts = UpstreamTimeouts {
            connect: self.connect_timeout,
            read: STREAM_IDLE_TIMEOUT,
            write: STREAM_IDLE_TIMEOUT,
            idle: self.idle.unwrap_or(IDLE_TIMEOUT),
        };
        Ok(upstream)
    }
}
