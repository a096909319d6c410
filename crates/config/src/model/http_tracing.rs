//! Tracing of requests, as in Envoy's HTTP connection manager.

use super::SpanCollector;
use http::HeaderName;

/// Tracing of a chain: the traced requests, and the attributes of their spans.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpTracing {
    /// The collector of the spans.
    pub collector: SpanCollector,
    /// The sampling of requests, unless the route sets it.
    pub sampling: TraceSampling,
    /// Whether the chain handles outbound requests, such as those of a sidecar's pod.
    pub outbound: bool,
    /// Whether each attempt at a server has its own span.
    pub attempts: bool,
    /// Whether the gateway is a separate hop of the trace: its span then has the kind `SERVER`, even for outbound
    /// requests.
    pub own_hop: bool,
    /// Additional attributes of spans.
    pub tags: Vec<TraceTag>,
    /// Maximum number of characters of a path with its query.
    pub longest_path: usize,
}

/// The sampling of requests without a parent trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceSampling {
    /// Share of requests whose clients request a trace by `x-client-trace-id`.
    pub client: TraceShare,
    /// Share of all other requests.
    pub random: TraceShare,
    /// Share of the requests that would be recorded.
    pub overall: TraceShare,
}

/// A share, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceShare {
    /// The numerator.
    pub numerator: u32,
    /// The denominator; not zero.
    pub denominator: u32,
}

/// A custom attribute of a span.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TraceTag {
    /// The name.
    pub name: String,
    /// The value.
    pub value: TraceTagValue,
}

/// The source of an attribute's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TraceTagValue {
    /// A fixed text.
    Literal(String),
    /// A header of the request, with a default; without either, the attribute is omitted.
    RequestHeader(HeaderName, Option<String>),
    /// An environment variable of this process, with a default.
    Environment(String, Option<String>),
}

/// Tracing settings of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteTracing {
    /// The name of the span; empty keeps the default.
    pub operation: String,
    /// Whether the span name of outbound requests is sent to servers.
    pub propagate: bool,
    /// The sampling of requests, in place of the chain's.
    pub sampling: Option<TraceSampling>,
    /// Additional attributes of spans, which override the chain's of the same name.
    pub tags: Vec<TraceTag>,
}

impl TraceShare {
    /// The whole.
    pub const ALL: Self = Self { numerator: 100, denominator: 100 };

    /// Returns whether the share includes this number, which may have any value.
    pub fn takes(self, number: u64) -> bool {
        number % u64::from(self.denominator.max(1)) < u64::from(self.numerator)
    }
}

impl TraceSampling {
    /// All requests.
    pub const ALL: Self = Self { client: TraceShare::ALL, random: TraceShare::ALL, overall: TraceShare::ALL };
}
