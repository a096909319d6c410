use super::{
    AltName, CertificateSource, DnsRefresh, LookupFamily, OriginalDestination, OutlierDetection, Place,
    Source, TextMatch, TlsParameters, UpstreamLimits,
};
use http::Method;
use std::{net::IpAddr, num::NonZeroUsize, sync::Arc, time::Duration};

/// A named group of servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Upstream {
    /// The servers; at least one, unless the original destination is used.
    pub servers: Vec<Server>,
    /// Selection of the server by each connection's original destination, in place of `servers`.
    pub original_destination: Option<OriginalDestination>,
    /// Source addresses of connections to servers: the first one of the server's address family is used, and servers
    /// of another family are not reachable. If empty, the system's routes decide.
    pub source_addresses: Vec<IpAddr>,
    /// The time at which the names of servers are resolved again.
    pub dns_refresh: DnsRefresh,
    /// The addresses of names that are used.
    pub dns_lookup_family: LookupFamily,
    /// The load-balancing policy.
    pub balance: Balance,
    /// Active health checks; `None` treats every server as healthy.
    pub health: Option<Health>,
    /// Outlier detection; `None` ejects no server.
    pub outlier_detection: Option<OutlierDetection>,
    /// Below this percentage of healthy servers, all servers are used, healthy or not: the healthy ones alone would
    /// be overloaded. 0 uses healthy ones only.
    pub panic_threshold: u8,
    /// Time over which the share of a server that is new, or healthy again, grows to its weight; `None` gives it all at
    /// once. Not for policies that hash.
    pub slow_start: Option<Duration>,
    /// Limits on the load of the servers.
    pub limits: UpstreamLimits,
    /// TLS to the servers; `None` is plain text.
    pub tls: Option<UpstreamTls>,
    /// Additional transports, which [`Server::transport`] selects: TLS, or plain text.
    pub more_transports: Vec<Option<UpstreamTls>>,
    /// Whether the host of each request replaces the server's: it is sent as SNI, and the certificate is verified for
    /// it.
    pub host_from_request: bool,
    /// The HTTP version used with the servers.
    pub protocol: UpstreamProtocol,
    /// Whether the client's address is sent to the server in a PROXY header. Such connections are not shared between
    /// clients.
    pub proxy_protocol: ProxyProtocolOut,
    /// Maximum number of times that an idempotent request is retried on another connection or server.
    pub retries: usize,
    /// Maximum number of HTTP/1.1 connections kept open to each server, for each worker thread; while all are in use,
    /// requests wait briefly.
    pub pool: NonZeroUsize,
    /// Timeouts of slow servers.
    pub timeouts: UpstreamTimeouts,
    /// The place of the upstream in the configuration.
    pub place: Place,
}

/// One server of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// The address: `host:port`, where a name counts as one server for each of its addresses, `unix:/path`, or
    /// `srv:name`, whose SRV records (RFC 2782) name servers with ports, priorities and weights.
    pub address: String,
    /// The weight, relative to the others.
    pub weight: NonZeroUsize,
    /// The transport: 0 is [`Upstream::tls`], 1 the first of [`Upstream::more_transports`], and so on.
    pub transport: usize,
    /// The priority. Servers with a higher number are used only if no server with a lower number is healthy.
    pub priority: u32,
    /// Maximum number of active requests, or connections in TCP mode, from all event loops.
    pub max_connections: Option<NonZeroUsize>,
    /// The place of the server in the configuration.
    pub place: Place,
}

/// A load-balancing policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Balance {
    /// Round robin, by weight.
    #[default]
    RoundRobin,
    /// Random choice, by weight.
    Random,
    /// The one of two random servers, by weight, with fewer active requests for its weight (Mitzenmacher, "The Power
    /// of Two Choices in Randomized Load Balancing", 2001).
    LeastRequest,
    /// Consistent hashing (ketama) of the client's address, so that a client stays with its server.
    ClientIp,
    /// Consistent hashing (ketama) of the route's hash keys ([`super::HashPolicy`]); in TCP mode of the client's
    /// address.
    Hash,
}

/// Active health checks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Health {
    /// The kind of check.
    pub probe: HealthProbe,
    /// The SNI of checks with TLS, and the name for which the certificate must be valid; `None`: as for requests.
    pub server_name: Option<String>,
    /// Time between two checks of the same server.
    pub interval: Duration,
    /// Time after which a check fails.
    pub timeout: Duration,
    /// Consecutive successes after which a server is healthy again.
    pub healthy: NonZeroUsize,
    /// Consecutive failures after which a server is unhealthy.
    pub unhealthy: NonZeroUsize,
}

/// The kind of a health check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum HealthProbe {
    /// A connection can be opened.
    #[default]
    Tcp,
    /// A request has the expected response.
    Http(HttpProbe),
    /// `grpc.health.v1.Health/Check` returns `SERVING`.
    Grpc {
        /// The service; empty is the server as a whole.
        service: String,
        /// The authority of the request; `None`: the server's own name.
        authority: Option<String>,
    },
}

/// A request that checks a server's health, and the expected response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpProbe {
    /// The path, with a query or without.
    pub path: String,
    /// The method.
    pub method: Method,
    /// The `Host`, or `:authority`; `None`: the server's own name.
    pub host: Option<String>,
    /// The statuses of a healthy server, from the first of each range to the last.
    pub statuses: Vec<(u16, u16)>,
    /// The condition on the first [`HttpProbe::MOST_BODY`] bytes of the body; `None` for no condition.
    pub body: Option<TextMatch>,
}

/// TLS to the servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UpstreamTls {
    /// The SNI, and the name for which the certificate must be valid if it is verified; defaults to the server's
    /// host.
    pub server_name: Option<String>,
    /// CA bundle (PEM); `None` uses the system's.
    pub ca: Option<Source>,
    /// The place of the CA bundle in the configuration.
    pub ca_place: Option<Place>,
    /// The certificate presented to servers that request one; its key is on this machine.
    pub certificate: Option<Arc<CertificateSource>>,
    /// Whether the server's certificate is verified. If off, any party on the network path can impersonate it.
    pub verify: bool,
    /// Whether the name in it is verified too. If off, a holder of any certificate of these CAs can impersonate it.
    pub verify_name: bool,
    /// Conditions on the certificate's subjectAltNames, one of which must match; empty checks nothing.
    pub names: Vec<AltName>,
    /// The protocols offered by ALPN.
    pub alpn: UpstreamAlpn,
    /// Versions, cipher suites and groups.
    pub parameters: TlsParameters,
}

/// The protocols offered to servers by ALPN (RFC 7301).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UpstreamAlpn {
    /// The HTTP versions in use.
    #[default]
    Http,
    /// The HTTP versions in use, after the names by which the proxies of an Istio mesh recognize each other.
    Istio,
}

/// The HTTP version used with the servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UpstreamProtocol {
    /// HTTP/2 if ALPN selects it, else HTTP/1.1; in plain text HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only; with prior knowledge in plain text.
    Http2,
    /// HTTP/1.1 for requests received over it, and HTTP/2, as with [`Http2`](Self::Http2), for others.
    OfRequest,
}

/// The PROXY header that sends the client's address to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProxyProtocolOut {
    /// No header.
    #[default]
    Off,
    /// The text format.
    V1,
    /// The binary format.
    V2,
}

/// Timeouts of slow servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UpstreamTimeouts {
    /// Time limit of the TCP and TLS handshakes together.
    pub connect: Duration,
    /// Time limit without a byte from the server.
    pub read: Duration,
    /// Time limit while the server accepts no byte.
    pub write: Duration,
    /// Time that an idle connection is kept.
    pub idle: Duration,
}

impl Upstream {
    /// Returns an upstream with these servers and default settings.
    pub fn new(servers: Vec<Server>, place: Place) -> Self {
        Self {
            servers,
            original_destination: None,
            source_addresses: Vec::new(),
            dns_refresh: DnsRefresh::default(),
            dns_lookup_family: LookupFamily::default(),
            balance: Balance::RoundRobin,
            health: None,
            outlier_detection: None,
            panic_threshold: 0,
            slow_start: None,
            limits: UpstreamLimits::default(),
            tls: None,
            more_transports: Vec::new(),
            host_from_request: false,
            protocol: UpstreamProtocol::Auto,
            proxy_protocol: ProxyProtocolOut::Off,
            retries: 1,
            pool: NonZeroUsize::new(128).unwrap_or(NonZeroUsize::MIN),
            timeouts: UpstreamTimeouts::default(),
            place,
        }
    }

    /// Returns all transports, in the order of their numbers.
    pub fn transports(&self) -> impl Iterator<Item = Option<&UpstreamTls>> {
        std::iter::once(&self.tls).chain(&self.more_transports).map(Option::as_ref)
    }

    /// Returns the transport with this number.
    pub fn transport(&self, number: usize) -> Option<&UpstreamTls> {
        match number.checked_sub(1) {
            None => self.tls.as_ref(),
            Some(index) => self.more_transports.get(index)?.as_ref(),
        }
    }
}

impl HttpProbe {
    /// Maximum number of bytes of a body that are compared.
    pub const MOST_BODY: usize = 64 * 1024;

    /// Returns a `GET` of a path, whose response has the status 200.
    pub fn get(path: impl Into<String>) -> Self {
        Self { path: path.into(), method: Method::GET, host: None, statuses: vec![(200, 200)], body: None }
    }
}

impl Server {
    /// Returns a server with the weight of one.
    pub fn new(address: String, place: Place) -> Self {
        Self { address, weight: NonZeroUsize::MIN, transport: 0, priority: 0, max_connections: None, place }
    }
}

impl UpstreamTls {
    /// Returns all sources: files and inline values.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.ca.iter().chain(self.certificate.iter().flat_map(|certificate| certificate.sources()))
    }
}

/// The certificate is verified against the system's CA bundle, for the server's host name.
impl Default for UpstreamTls {
    fn default() -> Self {
        Self {
            server_name: None,
            ca: None,
            ca_place: None,
            certificate: None,
            verify: true,
            verify_name: true,
            names: Vec::new(),
            alpn: UpstreamAlpn::Http,
            parameters: TlsParameters::default(),
        }
    }
}

impl Default for UpstreamTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            read: Duration::from_secs(60),
            write: Duration::from_secs(60),
            idle: Duration::from_secs(60),
        }
    }
}

impl Default for Health {
    fn default() -> Self {
        Self {
            probe: HealthProbe::Tcp,
            server_name: None,
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(1),
            healthy: NonZeroUsize::MIN,
            unhealthy: NonZeroUsize::MIN.saturating_add(1),
        }
    }
}
