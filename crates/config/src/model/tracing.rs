//! Traces of requests, as OpenTelemetry has them.

/// Which requests are traced, and where their spans are sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tracing {
    /// The collector: `http://host:port`, with a path where spans go by HTTP and not to `/v1/traces`.
    pub endpoint: String,
    /// How spans are sent.
    pub protocol: TracingProtocol,
    /// What this process is called (`service.name`).
    pub service: String,
    /// Of traces that begin here, so many of a million are recorded. Others follow who has begun them.
    pub parts: u32,
    /// Whose traces are continued.
    pub parents: TraceParents,
}

/// How spans are sent: OTLP with protobuf, in one of its two forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TracingProtocol {
    /// By gRPC.
    #[default]
    Grpc,
    /// By HTTP/1.1.
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
    /// All spans of one trace in a hundred, for this collector.
    pub fn new(endpoint: String) -> Self {
        Self {
            endpoint,
            protocol: TracingProtocol::default(),
            service: "quadrille".into(),
            parts: ONE_PERCENT,
            parents: TraceParents::default(),
        }
    }
}
