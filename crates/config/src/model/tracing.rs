//! OpenTelemetry traces of requests.

use super::{Place, UpstreamTls};
use http::{HeaderName, HeaderValue};
use std::{fmt, time::Duration};

/// Tracing of requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tracing {
    /// The collector of the spans.
    pub collector: SpanCollector,
    /// The share of traces beginning here that are recorded, in parts per million. Continued traces follow their
    /// parent.
    pub parts: u32,
    /// The clients whose traces are continued.
    pub parents: TraceParents,
}

/// A collector of spans, and the settings of the export.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpanCollector {
    /// The servers.
    pub servers: CollectorServers,
    /// The protocol.
    pub protocol: TracingProtocol,
    /// The path of requests by HTTP.
    pub path: String,
    /// Headers sent to the collector, such as the key of an account. Their values are secrets, and marked as
    /// sensitive.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Time limit of one export.
    pub timeout: Duration,
    /// The name of this process (`service.name`).
    pub service: String,
    /// The place in the configuration.
    pub place: Place,
}

/// The servers of a collector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CollectorServers {
    /// A server at this address.
    Endpoint(Box<CollectorEndpoint>),
    /// The servers of an upstream, with this authority.
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
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// TLS to it; `None` is plain text.
    pub tls: Option<UpstreamTls>,
}

/// The protocol of the export: OTLP with protobuf, in one of its two variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TracingProtocol {
    /// OTLP by gRPC.
    #[default]
    Grpc,
    /// OTLP by HTTP.
    Http,
}

/// The clients that may set the trace of a request (W3C Trace Context), and whether it is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TraceParents {
    /// Trusted proxies.
    #[default]
    TrustedProxies,
    /// Every client.
    All,
    /// No client: every trace begins here.
    Off,
}

/// One percent in parts per million.
const ONE_PERCENT: u32 = 10_000;

impl Tracing {
    /// Returns settings for this collector, which record one trace in a hundred.
    pub fn new(collector: SpanCollector) -> Self {
        Self { collector, parts: ONE_PERCENT, parents: TraceParents::default() }
    }
}

impl SpanCollector {
    /// The default path of collectors by HTTP.
    pub const PATH: &str = "/v1/traces";
    /// The default time limit of an export.
    pub const TIMEOUT: Duration = Duration::from_secs(10);

    /// Returns default settings for these servers, with OTLP by gRPC.
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

    /// Returns the TLS settings of its address, if it has its own address.
    pub fn tls(&self) -> Option<&UpstreamTls> {
        match &self.servers {
            CollectorServers::Endpoint(endpoint) => endpoint.tls.as_ref(),
            CollectorServers::Upstream { .. } => None,
        }
    }
}

impl CollectorEndpoint {
    /// Returns host and port, in the format of a URL.
    pub fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

/// Writes the servers for logs.
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
