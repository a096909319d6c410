//! The thread that sends spans to a collector.

use super::collector::Collector;
use metrics::counter;
use opentelemetry::KeyValue;
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanExporter as _},
};
use quadrille_config::model::{Tracing, TracingProtocol};
use std::{
    io,
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::sync::mpsc::Receiver;

/// Spans that are sent at a time, about.
const BATCH: usize = 512;
/// How long the first of them waits for others.
const WAIT: Duration = Duration::from_secs(1);
/// How long a collector has for them, attempts after the first included.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Where collectors take spans by HTTP.
const PATH: &str = "/v1/traces";

/// Sends what comes, until nothing does any more.
pub(super) fn start(model: Tracing, spans: Receiver<Vec<SpanData>>) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("traces".to_owned()).spawn(move || runtime.block_on(send_all(model, spans)))
}

async fn send_all(model: Tracing, mut spans: Receiver<Vec<SpanData>>) {
    let exporter = match exporter(&model) {
        Ok(exporter) => exporter,
        Err(error) => {
            tracing::error!(endpoint = model.endpoint, %error, "no spans are sent");
            return;
        }
    };
    let mut fails = false;
    while let Some(first) = spans.recv().await {
        let batch = fill(first, &mut spans).await;
        let total = batch.len();
        let sent = tokio::time::timeout(TIMEOUT, exporter.export(batch)).await;
        let sent = sent
            .map_err(|_| "it takes too long".to_owned())
            .and_then(|sent| sent.map_err(|error| error.to_string()));
        count(total, if sent.is_ok() { "sent" } else { "failed" });
        match &sent {
            Err(error) if !fails => tracing::warn!(endpoint = model.endpoint, error, "cannot send spans"),
            Ok(()) if fails => tracing::info!(endpoint = model.endpoint, "spans are sent again"),
            _ => {}
        }
        fails = sent.is_err();
    }
}

/// As many more as come soon.
async fn fill(mut batch: Vec<SpanData>, spans: &mut Receiver<Vec<SpanData>>) -> Vec<SpanData> {
    let due = tokio::time::Instant::now() + WAIT;
    while batch.len() < BATCH {
        match tokio::time::timeout_at(due, spans.recv()).await {
            Ok(Some(more)) => batch.extend(more),
            Ok(None) | Err(_) => break,
        }
    }
    batch
}

fn exporter(model: &Tracing) -> Result<SpanExporter, ExporterBuildError> {
    let builder = SpanExporter::builder();
    let mut exporter = match model.protocol {
        TracingProtocol::Grpc => {
            builder.with_tonic().with_endpoint(&model.endpoint).with_timeout(TIMEOUT).build()?
        }
        TracingProtocol::Http => {
            let has_path = model.endpoint.trim_start_matches("http://").contains('/');
            let path = if has_path { "" } else { PATH };
            builder
                .with_http()
                .with_http_client(Collector)
                .with_protocol(Protocol::HttpBinary)
                .with_endpoint(format!("{}{path}", model.endpoint))
                .with_timeout(TIMEOUT)
                .build()?
        }
    };
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder_empty().with_service_name(model.service.clone()).with_attribute(version);
    exporter.set_resource(&resource.build());
    Ok(exporter)
}

/// So many spans were `sent`, have `failed` to be, or were `dropped`.
pub(super) fn count(spans: usize, result: &'static str) {
    counter!("quadrille_spans_total", "result" => result).increment(spans as u64);
}
