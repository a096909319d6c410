//! Traces, as OpenTelemetry has them: who takes spans, and their way to a collector.
//!
//! Spans wait in a queue of bounded length for a thread of their own, so that no event loop waits for a collector.

mod collector;
mod environment;
mod exporter;
mod otlp;
mod thread;

pub(crate) use exporter::Exporter;
pub(crate) use thread::finish;

use quadrille_config::model::Tracing;
use std::sync::Arc;

/// Which requests are traced, and who takes their spans.
pub(crate) struct Tracer {
    pub(crate) model: Tracing,
    pub(crate) exporter: Arc<Exporter>,
}
