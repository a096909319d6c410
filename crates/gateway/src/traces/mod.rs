//! OpenTelemetry traces: sampling rules, spans, and their export to a collector.
//!
//! Spans are queued, up to a limit, for a separate thread, so that no event loop waits for a collector.
//!
//! - `exporter`: the queue for one collector; `thread` runs all exporters.
//! - `collector`: connections to a collector, which is an upstream like any other.
//! - `spans`: parts common to `http` and `tcp`; `otlp`: their encoding; `environment`: OpenTelemetry's variables.

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

/// Rules of tracing, with the exporter of the spans.
pub(crate) struct Tracer {
    pub(crate) rules: TraceRules,
    /// Whether routes may override the sampling.
    pub(crate) routes_decide: bool,
    pub(crate) exporter: Arc<Exporter>,
}

/// Rules for the sampling of requests and the attributes of spans.
pub(crate) enum TraceRules {
    /// Rules of the process's own configuration.
    Own(Box<Tracing>),
    /// Rules of a filter chain in an Envoy configuration.
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
