//! Traces of requests as Envoy's HTTP connection manager has them.

use super::SpanCollector;
use http::HeaderName;

/// Which requests of a chain are traced, and what their spans say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpTracing {
    /// Who gets the spans.
    pub collector: SpanCollector,
    /// Which requests are recorded, as far as routes do not say that.
    pub sampling: TraceSampling,
    /// The chain is for what somebody here asks of others, as a sidecar's is for its pod.
    pub outbound: bool,
    /// Each attempt at a server has a span of its own.
    pub attempts: bool,
    /// The gateway is a hop of the trace, whose span is a server's whatever the chain is for.
    pub own_hop: bool,
    /// What spans say besides.
    pub tags: Vec<TraceTag>,
    /// Characters of a path with its query, at most.
    pub longest_path: usize,
}

/// Which requests are recorded that come without a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceSampling {
    /// Of those whose clients ask for it by `x-client-trace-id`.
    pub client: TraceShare,
    /// Of the others.
    pub random: TraceShare,
    /// Of all that would be.
    pub overall: TraceShare,
}

/// So many of so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceShare {
    /// Of the denominator.
    pub numerator: u32,
    /// Not zero.
    pub denominator: u32,
}

/// Something that a span says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TraceTag {
    /// What it is called.
    pub name: String,
    /// What it says.
    pub value: TraceTagValue,
}

/// Where what a span says comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TraceTagValue {
    /// It is always this.
    Literal(String),
    /// From a header of the request, or this in its place; without either it is not said.
    RequestHeader(HeaderName, Option<String>),
    /// From a variable of this process's environment, or this in its place.
    Environment(String, Option<String>),
}

/// What a route says of traces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteTracing {
    /// What the span is called; empty leaves it as it is.
    pub operation: String,
    /// Servers are told that of what goes out.
    pub propagate: bool,
    /// Which requests are recorded, in the place of what the chain says.
    pub sampling: Option<TraceSampling>,
    /// What spans say besides, before the chain's of the same name.
    pub tags: Vec<TraceTag>,
}

impl TraceShare {
    /// All of them.
    pub const ALL: Self = Self { numerator: 100, denominator: 100 };

    /// Whether this number, which may be any, is among them.
    pub fn takes(self, number: u64) -> bool {
        number % u64::from(self.denominator.max(1)) < u64::from(self.numerator)
    }
}

impl TraceSampling {
    /// All requests.
    pub const ALL: Self = Self { client: TraceShare::ALL, random: TraceShare::ALL, overall: TraceShare::ALL };
}
