use super::{
    AltName, CertificateSource, DnsRefresh, OriginalDestination, OutlierDetection, Place, Source,
    TlsParameters, UpstreamLimits,
};
use std::{net::IpAddr, num::NonZeroUsize, sync::Arc, time::Duration};

/// A named group of servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Upstream {
    /// The servers; at least one, unless they are where connections were going.
    pub servers: Vec<Server>,
    /// The server is where each connection was going, and there are no others.
    pub original_destination: Option<OriginalDestination>,
    /// Connections to servers leave from the first of these addresses that is of the server's family, and there are none
    /// to servers of another; without any, it is left to the system's routes.
    pub source_addresses: Vec<IpAddr>,
    /// When the addresses of servers that have names are looked up again.
    pub dns_refresh: DnsRefresh,
    /// How a server is chosen.
    pub balance: Balance,
    /// Active health checks; `None` trusts every server.
    pub health: Option<Health>,
    /// Which servers are left out by what became of requests; `None` leaves none out.
    pub outlier_detection: Option<OutlierDetection>,
    /// With fewer healthy servers than this many of a hundred, all are asked, healthy or not: the healthy ones could not
    /// bear it. 0 asks healthy ones only.
    pub panic_threshold: u8,
    /// How much is asked of the servers at a time.
    pub limits: UpstreamLimits,
    /// TLS towards the servers; `None` is plain text.
    pub tls: Option<UpstreamTls>,
    /// Other ways to servers, which [`Server::transport`] names: TLS, or plain text.
    pub more_transports: Vec<Option<UpstreamTls>>,
    /// The host of each request takes the place of the server's: it is sent by SNI, and its name verified.
    pub host_from_request: bool,
    /// Which HTTP version is spoken to the servers.
    pub protocol: UpstreamProtocol,
    /// Tell the server the client's address by a PROXY header. Such connections are not shared between clients.
    pub proxy_protocol: ProxyProtocolOut,
    /// How often an idempotent request is tried again on another connection or server.
    pub retries: usize,
    /// HTTP/1.1 connections kept to each server, for each worker thread; with as many open, requests wait a moment.
    pub pool: NonZeroUsize,
    /// When a slow server is given up.
    pub timeouts: UpstreamTimeouts,
    /// Where the upstream was written.
    pub place: Place,
}

/// One server of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// `host:port`, where a name stands for as many servers as it has addresses, or `unix:/path`.
    pub address: String,
    /// Share of the requests, relative to the others.
    pub weight: NonZeroUsize,
    /// The way to it: 0 is [`Upstream::tls`], 1 the first of [`Upstream::more_transports`], and so on.
    pub transport: usize,
    /// Servers of a higher number are for when none of a lower one is healthy.
    pub priority: u32,
    /// Where the server was written.
    pub place: Place,
}

/// How a server is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Balance {
    /// One after the other, by weight.
    #[default]
    RoundRobin,
    /// At random, by weight.
    Random,
    /// Of two at random, by weight, the one with fewer requests under way for its weight (Mitzenmacher, "The Power of
    /// Two Choices in Randomized Load Balancing", 2001).
    LeastRequest,
    /// By the client's address, consistently (ketama), so that a client stays with its server.
    ClientIp,
    /// By what the route says ([`super::HashPolicy`]), consistently (ketama); in TCP mode by the client's address.
    Hash,
}

/// Active health checks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Health {
    /// What is asked.
    pub probe: HealthProbe,
    /// Between two checks of the same server.
    pub interval: Duration,
    /// After which a check has failed.
    pub timeout: Duration,
    /// Successes in a row that bring a server back.
    pub healthy: NonZeroUsize,
    /// Failures in a row that take a server out.
    pub unhealthy: NonZeroUsize,
}

/// What a health check asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum HealthProbe {
    /// A connection can be opened.
    #[default]
    Tcp,
    /// `GET` of this path answers 200.
    Http(String),
    /// `grpc.health.v1.Health/Check` answers `SERVING`.
    Grpc {
        /// Of this service; empty is the server as a whole.
        service: String,
        /// By which name the server is asked; `None`: by its own.
        authority: Option<String>,
    },
}

/// TLS towards the servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UpstreamTls {
    /// SNI, and the name that the certificate must carry if it is verified; defaults to the server's host.
    pub server_name: Option<String>,
    /// CA bundle (PEM); `None` uses the system's.
    pub ca: Option<Source>,
    /// Where the CA bundle was written.
    pub ca_place: Option<Place>,
    /// Shown to servers that ask for a client certificate; its key is here.
    pub certificate: Option<Arc<CertificateSource>>,
    /// Check the server's certificate. Off means that anybody can impersonate it.
    pub verify: bool,
    /// Check the name in it too. Off means that whoever has a certificate of these CAs can impersonate it.
    pub verify_name: bool,
    /// One of the certificate's subjectAltNames must be one of these; empty asks nothing.
    pub names: Vec<AltName>,
    /// What is offered by ALPN.
    pub alpn: UpstreamAlpn,
    /// Versions, cipher suites and groups.
    pub parameters: TlsParameters,
}

/// What is offered to servers by ALPN (RFC 7301).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UpstreamAlpn {
    /// The versions of HTTP that are spoken.
    #[default]
    Http,
    /// Those, and in front of them the names by which the proxies of an Istio mesh know each other.
    Istio,
}

/// Which HTTP version is spoken to the servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UpstreamProtocol {
    /// HTTP/2 where ALPN offers it, else HTTP/1.1; plain text speaks HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only; with prior knowledge in plain text.
    Http2,
    /// HTTP/1.1 for requests that came over it, and HTTP/2, as by [`Http2`](Self::Http2), for others.
    OfRequest,
}

/// Tell the server the client's address by a PROXY header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProxyProtocolOut {
    /// No header.
    #[default]
    Off,
    /// The text form.
    V1,
    /// The binary form.
    V2,
}

/// When a slow server is given up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UpstreamTimeouts {
    /// For TCP and TLS together.
    pub connect: Duration,
    /// Without a byte from the server.
    pub read: Duration,
    /// Without the server taking a byte.
    pub write: Duration,
    /// How long an idle connection is kept.
    pub idle: Duration,
}

impl Upstream {
    /// These servers, with everything else as it is when nothing is said.
    pub fn new(servers: Vec<Server>, place: Place) -> Self {
        Self {
            servers,
            original_destination: None,
            source_addresses: Vec::new(),
            dns_refresh: DnsRefresh::default(),
            balance: Balance::RoundRobin,
            health: None,
            outlier_detection: None,
            panic_threshold: 0,
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

    /// All ways to servers, in the order of their numbers.
    pub fn transports(&self) -> impl Iterator<Item = Option<&UpstreamTls>> {
        std::iter::once(&self.tls).chain(&self.more_transports).map(Option::as_ref)
    }

    /// The way with this number.
    pub fn transport(&self, number: usize) -> Option<&UpstreamTls> {
        match number.checked_sub(1) {
            None => self.tls.as_ref(),
            Some(index) => self.more_transports.get(index)?.as_ref(),
        }
    }
}

impl Server {
    /// A server with the weight of one.
    pub fn new(address: String, place: Place) -> Self {
        Self { address, weight: NonZeroUsize::MIN, transport: 0, priority: 0, place }
    }
}

impl UpstreamTls {
    /// Everything that is read from files or given in place.
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
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(1),
            healthy: NonZeroUsize::MIN,
            unhealthy: NonZeroUsize::MIN.saturating_add(1),
        }
    }
}
