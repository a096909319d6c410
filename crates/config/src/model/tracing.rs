//! Traces of requests, as OpenTelemetry has them.

use super::{Place, UpstreamTls};
use http::{HeaderName, HeaderValue};
use std::{fmt, time::Duration};

/// Which requests are traced, and where their spans are sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tracing {
    /// Who gets the spans.
    pub collector: SpanCollector,
    /// Of traces that begin here, so many of a million are recorded. Others follow who has begun them.
    pub parts: u32,
    /// Whose traces are continued.
    pub parents: TraceParents,
}

/// Who gets spans, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpanCollector {
    /// Its servers.
    pub servers: CollectorServers,
    /// How spans are sent.
    pub protocol: TracingProtocol,
    /// Where they are sent to by HTTP.
    pub path: String,
    /// Sent along, such as the key of an account. Their values are secrets, and marked as such.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How long it has for the spans that are sent at a time.
    pub timeout: Duration,
    /// What this process is called (`service.name`).
    pub service: String,
    /// Where it was written.
    pub place: Place,
}

/// Where a collector is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CollectorServers {
    /// At this address.
    Endpoint(Box<CollectorEndpoint>),
    /// The servers of an upstream, which are asked under this authority.
    Upstream {
        /// The upstream's name.
        name: String,
        /// A host, with a port or without.
        authority: String,
    },
}

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CollectorEndpoint {
    /// A name or an address; one of IPv6 without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// TLS towards it; `None` is plain text.
    pub tls: Option<UpstreamTls>,
}

/// How spans are sent: OTLP with protobuf, in one of its two forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TracingProtocol {
    /// By gRPC.
    #[default]
    Grpc,
    /// By HTTP.
    Http,
}

/// Who may say to which trace a request belongs (W3C Trace Context), and whether it is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TraceParents {
    /// Trusted proxies.
    #[default]
    TrustedProxies,
    /// Every client.
    All,
    /// Nobody: every trace begins here.
    Off,
}

/// Of a million.
const ONE_PERCENT: u32 = 10_000;

impl Tracing {
    /// One trace in a hundred, for this collector.
    pub fn new(collector: SpanCollector) -> Self {
        Self { collector, parts: ONE_PERCENT, parents: TraceParents::default() }
    }
}

impl SpanCollector {
    /// Where collectors take spans by HTTP.
    pub const PATH: &str = "/v1/traces";
    /// How long a collector has if nothing is said.
    pub const TIMEOUT: Duration = Duration::from_secs(10);

    /// All spans by gRPC.
    pub fn new(servers: CollectorServers, place: Place) -> Self {
        Self {
            servers,
            protocol: TracingProtocol::default(),
            path: Self::PATH.into(),
            headers: Vec::new(),
            timeout: Self::TIMEOUT,
            service: "quadrille".into(),
            place,
        }
    }

    /// TLS to its address, where it has one of its own.
    pub fn tls(&self) -> Option<&UpstreamTls> {
        match &self.servers {
            CollectorServers::Endpoint(endpoint) => endpoint.tls.as_ref(),
            CollectorServers::Upstream { .. } => None,
        }
    }
}

impl CollectorEndpoint {
    /// Host and port, as a URL has them.
    pub fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

/// For logs.
impl fmt::Display for CollectorServers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint(endpoint) => {
                let scheme = if endpoint.tls.is_some() { "https" } else { "http" };
                write!(formatter, "{scheme}://{}", endpoint.authority())
            }
            Self::Upstream { name, .. } => formatter.write_str(name),
        }
    }
}
