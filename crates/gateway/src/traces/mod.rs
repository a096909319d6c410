//! Traces, as OpenTelemetry has them: who takes spans, and their way to a collector.
//!
//! Spans wait in a queue of bounded length for a thread of their own, so that no event loop waits for a collector.

mod collector;
mod environment;
mod exporter;
mod otlp;
mod spans;
mod thread;

pub(crate) use exporter::Exporter;
pub(crate) use spans::{TraceSpans, before, failed_if, of_server, of_tls, random_span, random_trace};
pub(crate) use thread::finish;

use quadrille_config::model::{HttpTracing, SpanCollector, Tracing};
use std::sync::Arc;

/// Which requests are traced, and who takes their spans.
pub(crate) struct Tracer {
    pub(crate) rules: TraceRules,
    /// Whether a route may say which requests are traced.
    pub(crate) routes_decide: bool,
    pub(crate) exporter: Arc<Exporter>,
}

/// Which requests are traced, and what spans say of them.
pub(crate) enum TraceRules {
    /// As the process's own configuration has it.
    Own(Box<Tracing>),
    /// As Envoy's has it for a chain.
    Envoy(Arc<HttpTracing>),
}

impl TraceRules {
    pub(crate) fn collector(&self) -> &SpanCollector {
        match self {
            Self::Own(tracing) => &tracing.collector,
            Self::Envoy(tracing) => &tracing.collector,
        }
    }
}
