//! Clusters and their endpoints.

use crate::{
    common::{Address, duration},
    config_source::{ConfigSource, config_source},
    endpoints::{Endpoint, assigned_endpoints, shared_by_locality},
    filters,
    health::health,
    original_destination::{original_destination, source_addresses},
    reader::{Field, Message, ReadMessage},
    schema,
    tls::{ClusterTls, Secret, SecretReference},
    transport_socket::{SocketMatch, TransportSocket, transport_socket, transport_socket_matches},
    upstream_http::{HttpOptions, http_options},
    upstream_limits::{circuit_breakers, outlier_detection},
    values::enumeration,
};
use quadrille_config::{
    Diagnostic, Problem,
    model::{
        Balance, DnsRefresh, Health, LookupFamily, OriginalDestination, OutlierDetection, Place,
        ProxyProtocolOut, Server, Upstream, UpstreamLimits, UpstreamProtocol, UpstreamTimeouts, UpstreamTls,
    },
};
use std::{collections::BTreeMap, net::IpAddr, num::NonZeroUsize, sync::Arc, time::Duration};

/// `envoy.config.cluster.v3.Cluster`.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Source of its endpoints, unless they are inline.
    pub endpoints_from: Option<EndpointsReference>,
    /// Inline endpoints.
    pub endpoints: Vec<Endpoint>,
    /// Settings of endpoints at the original destination of a connection.
    original_destination: Option<OriginalDestination>,
    source_addresses: Vec<IpAddr>,
    /// Time limit for opening a connection.
    pub connect_timeout: Duration,
    /// Transport socket of endpoints that match no other.
    socket: TransportSocket,
    matches: Vec<SocketMatch>,
    http: HttpOptions,
    balance: Balance,
    dns_refresh: DnsRefresh,
    dns_lookup_family: LookupFamily,
    /// Whether localities share the load by their weights.
    by_locality: bool,
    /// Percentage of healthy endpoints below which all are used.
    panic_threshold: u8,
    slow_start: Option<Duration>,
    health: Option<Health>,
    outlier_detection: Option<OutlierDetection>,
    limits: UpstreamLimits,
    place: Place,
}

/// Endpoints delivered by EDS.
#[derive(Clone, Debug)]
pub struct EndpointsReference {
    /// Resource name of the request.
    pub name: String,
    /// Source of the endpoints.
    pub source: ConfigSource,
}

/// Service discovery of a cluster.
#[derive(Clone, Copy, PartialEq)]
enum Discovery {
    Static,
    Dns,
    Eds,
    OriginalDestination,
}

/// Envoy's default.
const PANIC_THRESHOLD: u8 = 50;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const DNS_REFRESH_RATE: Duration = Duration::from_secs(5);
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);
const STREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Reads a cluster, with its name.
pub(crate) fn cluster(field: &Field<'_>) -> Option<(String, Cluster)> {
    const TYPES: &[(&str, u32, Discovery)] = &[
        ("STATIC", 0, Discovery::Static),
        ("STRICT_DNS", 1, Discovery::Dns),
        ("LOGICAL_DNS", 2, Discovery::Dns),
        ("EDS", 3, Discovery::Eds),
        ("ORIGINAL_DST", 4, Discovery::OriginalDestination),
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
    let original_destination = match discovery {
        Discovery::OriginalDestination => Some(original_destination(&message)?),
        Discovery::Static | Discovery::Dns | Discovery::Eds => None,
    };
    filters::cluster(message.list("filters"))?;
    let (by_locality, panic_threshold) = common_balance(&message)?;
    let http = http_options(&message)?;
    Some((
        name,
        Cluster {
            endpoints_from,
            endpoints,
            source_addresses: source_addresses(&message)?,
            connect_timeout: time(&message, "connect_timeout")?.unwrap_or(CONNECT_TIMEOUT),
            socket: transport_socket(&message)?,
            matches: transport_socket_matches(&message)?,
            http,
            balance: balance(&message, original_destination.is_some())?,
            original_destination,
            dns_refresh: dns_refresh(&message)?,
            dns_lookup_family: dns_lookup_family(&message)?,
            by_locality,
            panic_threshold,
            slow_start: slow_start(&message)?,
            health: health(&message, http.protocol)?.filter(|_| discovery != Discovery::OriginalDestination),
            outlier_detection: outlier_detection(&message)?
                .filter(|_| discovery != Discovery::OriginalDestination),
            limits: circuit_breakers(&message)?,
            place: field.place(),
        },
    ))
}

fn dns_lookup_family(message: &Message<'_>) -> Option<LookupFamily> {
    const FAMILIES: &[(&str, u32, LookupFamily)] = &[
        // The default: a name with addresses of both families has an endpoint for each.
        ("AUTO", 0, LookupFamily::All),
        ("V4_ONLY", 1, LookupFamily::V4Only),
        ("V6_ONLY", 2, LookupFamily::V6Only),
        ("V4_PREFERRED", 3, LookupFamily::V4Preferred),
        ("ALL", 4, LookupFamily::All),
    ];
    match message.get("dns_lookup_family") {
        Some(family) => family.parse(enumeration(FAMILIES)),
        None => Some(LookupFamily::default()),
    }
}

fn dns_refresh(message: &Message<'_>) -> Option<DnsRefresh> {
    let interval = time(message, "dns_refresh_rate")?.unwrap_or(DNS_REFRESH_RATE);
    let by_ttl = message.flag("respect_dns_ttl");
    Some(if by_ttl { DnsRefresh::ByTtl } else { DnsRefresh::Every(interval) })
}

/// Reads an optional duration; `None` if it is invalid.
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
            format!("{}: a host name requires the type STRICT_DNS or LOGICAL_DNS", endpoint.address.text()),
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

/// Reads the settings of all policies: whether localities are weighted, and the panic threshold.
fn common_balance(message: &Message<'_>) -> Option<(bool, u8)> {
    let Some(common) = message.get("common_lb_config") else { return Some((false, PANIC_THRESHOLD)) };
    let common = common.message(&schema::COMMON_LB)?;
    let by_locality = common.get("locality_weighted_lb_config").is_some();
    let threshold = match common.get("healthy_panic_threshold") {
        Some(threshold) => threshold.message(&schema::PERCENT)?.read("value", percentage).unwrap_or(0),
        None => PANIC_THRESHOLD,
    };
    Some((by_locality, threshold))
}

/// Reads the slow start of the policy in use.
fn slow_start(message: &Message<'_>) -> Option<Option<Duration>> {
    let policies = [
        ("round_robin_lb_config", &schema::ROUND_ROBIN),
        ("least_request_lb_config", &schema::LEAST_REQUEST),
    ];
    let mut window = None;
    for (name, policy_schema) in policies {
        let Some(policy) = message.get(name) else { continue };
        if let Some(slow) = policy.message(policy_schema)?.get("slow_start_config") {
            window = time(&slow.message(&schema::SLOW_START)?, "slow_start_window")?;
        }
    }
    Some(window.filter(|window| !window.is_zero()))
}

/// Rounds as Envoy does.
fn percentage(text: &str) -> Result<u8, Problem> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value.round() as u8),
        _ => Err(Problem::new(
            format!("{} is not a percentage", quadrille_config::quote(text)),
            "write 0 to 100",
        )),
    }
}

fn balance(message: &Message<'_>, provided: bool) -> Option<Balance> {
    if provided {
        return Some(Balance::RoundRobin);
    }
    const POLICIES: &[(&str, u32, Balance)] = &[
        ("ROUND_ROBIN", 0, Balance::RoundRobin),
        ("LEAST_REQUEST", 1, Balance::LeastRequest),
        ("RING_HASH", 2, Balance::Hash),
        ("RANDOM", 3, Balance::Random),
        ("MAGLEV", 5, Balance::Hash),
        ("LOAD_BALANCING_POLICY_CONFIG", 7, Balance::RoundRobin),
    ];
    let mut chosen = Balance::RoundRobin;
    if let Some(field) = message.get("lb_policy") {
        chosen = field.parse(enumeration(POLICIES))?;
    }
    let Some(field) = message.get("load_balancing_policy") else { return Some(chosen) };
    for policy in field.message(&schema::LB_POLICY)?.list("policies") {
        let policy = policy.message(&schema::LB_POLICY_ITEM)?;
        let extension = policy.require("typed_extension_config")?.message(&schema::TYPED_EXTENSION)?;
        let (kind, _) = extension.require("typed_config")?.any()?;
        let balance = match kind.rsplit('.').next() {
            Some("RoundRobin") => Balance::RoundRobin,
            Some("Random") => Balance::Random,
            Some("LeastRequest") => Balance::LeastRequest,
            Some("RingHash" | "Maglev") => Balance::Hash,
            _ => continue,
        };
        return Some(balance);
    }
    field.fail(Problem::new(
        "none of these policies is supported",
        "supported: RoundRobin, LeastRequest, Random, RingHash, Maglev",
    ))
}

impl Cluster {
    /// TLS to the endpoints, if there is a single transport socket.
    pub fn tls(&self) -> Option<&ClusterTls> {
        self.socket.tls.as_ref()
    }

    /// Returns whether HTTP/2 is used, with prior knowledge in plain text.
    pub fn speaks_http2(&self) -> bool {
        self.http.protocol == UpstreamProtocol::Http2
    }

    /// Returns whether it has inline endpoints, all on Unix sockets.
    pub(crate) fn is_on_unix_sockets(&self) -> bool {
        let is_pipe = |endpoint: &Endpoint| matches!(endpoint.address, Address::Pipe(_));
        !self.endpoints.is_empty() && self.endpoints.iter().all(is_pipe)
    }

    fn sockets(&self) -> impl Iterator<Item = &TransportSocket> {
        std::iter::once(&self.socket).chain(self.matches.iter().map(|found| &found.socket))
    }

    /// Returns the secrets that it names.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &SecretReference> {
        self.sockets().filter_map(|socket| socket.tls.as_ref()).flat_map(ClusterTls::secrets)
    }

    /// Converts the cluster to the model, with these endpoints.
    ///
    /// # Errors
    /// If a secret is missing.
    pub(crate) fn resolve(
        &self,
        endpoints: &[Endpoint],
        secrets: &BTreeMap<String, Arc<Secret>>,
    ) -> Result<Upstream, Diagnostic> {
        let server = |(endpoint, weight): (&Endpoint, NonZeroUsize)| Server {
            weight,
            priority: endpoint.priority,
            transport: self
                .matches
                .iter()
                .position(|found| found.accepts(&endpoint.labels))
                .map_or(0, |at| at + 1),
            ..Server::new(endpoint.address.as_server(), endpoint.place.clone())
        };
        let servers = match self.by_locality {
            true => shared_by_locality(endpoints).map(server).collect(),
            false => endpoints.iter().map(|endpoint| server((endpoint, endpoint.weight))).collect(),
        };
        let mut upstream = Upstream::new(servers, self.place.clone());
        upstream.original_destination = self.original_destination.clone();
        upstream.source_addresses = self.source_addresses.clone();
        upstream.balance = self.balance;
        upstream.dns_refresh = self.dns_refresh;
        upstream.dns_lookup_family = self.dns_lookup_family;
        upstream.panic_threshold = self.panic_threshold;
        upstream.slow_start = self.slow_start;
        upstream.health = self.health.clone();
        upstream.outlier_detection = self.outlier_detection.clone();
        upstream.limits = self.limits.clone();
        upstream.protocol = self.http.protocol;
        upstream.host_from_request = self.http.name.sni;
        upstream.proxy_protocol = self.proxy_protocol()?;
        // Envoy retries only as configured by routes.
        upstream.retries = 0;
        let mut transports = self.sockets().map(|socket| self.transport(socket, secrets));
        upstream.tls = transports.next().transpose()?.flatten();
        upstream.more_transports = transports.collect::<Result<_, _>>()?;
        upstream.timeouts = UpstreamTimeouts {
            connect: self.connect_timeout,
            read: STREAM_IDLE_TIMEOUT,
            write: STREAM_IDLE_TIMEOUT,
            idle: self.http.idle.unwrap_or(IDLE_TIMEOUT),
        };
        Ok(upstream)
    }

    fn transport(
        &self,
        socket: &TransportSocket,
        secrets: &BTreeMap<String, Arc<Secret>>,
    ) -> Result<Option<UpstreamTls>, Diagnostic> {
        let Some(tls) = &socket.tls else { return Ok(None) };
        let name = self.http.name;
        let tls = tls.resolve(secrets, name.sni)?;
        Ok(Some(match name.sni {
            true => UpstreamTls { server_name: None, verify_name: name.verified, ..tls },
            false => tls,
        }))
    }

    /// Reads the PROXY header sent to all endpoints.
    fn proxy_protocol(&self) -> Result<ProxyProtocolOut, Diagnostic> {
        // If a match accepts all endpoints, the cluster's own transport socket is unused.
        let unused = usize::from(self.matches.iter().any(SocketMatch::accepts_all));
        let mut forms = self.sockets().skip(unused).map(|socket| socket.proxy_protocol);
        let first = forms.next().unwrap_or_default();
        match forms.all(|other| other == first) {
            true => Ok(first),
            false => Err(Diagnostic::new(
                &self.place,
                Problem::new(
                    "refused: some endpoints get a PROXY header, and others do not",
                    "create a cluster for each kind",
                ),
            )),
        }
    }
}
