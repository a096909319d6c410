//! Span exporter: the queue of spans and their transmission.

use super::{collector::Collector, environment, otlp::Form, thread};
use crate::upstream::Upstream;
use metrics::counter;
use opentelemetry_sdk::trace::SpanData;
use quadrille_config::model::{CollectorServers, SpanCollector};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{
    mpsc::{self, Receiver},
    watch,
};

/// Maximum number of requests whose spans are queued.
const QUEUE: usize = 4096;
/// Approximate number of spans in one message.
const BATCH: usize = 512;
/// Maximum time that the first of them waits for others.
const WAIT: Duration = Duration::from_secs(1);

/// Queues spans for a collector, and sends them until the last reference is dropped.
pub(crate) struct Exporter {
    queue: mpsc::Sender<Vec<SpanData>>,
    /// Sending task, until it is started by the first spans.
    idle: Mutex<Option<Sending>>,
    started: std::sync::Once,
}

/// State of the sending task.
struct Sending {
    model: SpanCollector,
    collector: Collector,
    spans: Receiver<Vec<SpanData>>,
}

impl Exporter {
    /// Creates an exporter for this collector, which is reached by `upstream`, if there is one.
    pub(crate) fn new(model: &SpanCollector, upstream: Option<Arc<Upstream>>) -> Self {
        let (queue, spans) = mpsc::channel(QUEUE);
        let environment = match &model.servers {
            CollectorServers::Endpoint(_) => environment::headers(),
            CollectorServers::Upstream { .. } => Vec::new(),
        };
        let collector = Collector::new(model, upstream, Form::new(model, environment));
        let sending = Sending { model: model.clone(), collector, spans };
        Self { queue, idle: Mutex::new(Some(sending)), started: std::sync::Once::new() }
    }

    /// Queues the spans of one request, which are dropped if the queue is full.
    pub(crate) fn record(&self, spans: Vec<SpanData>) {
        self.started.call_once(|| self.start());
        if let Err(refused) = self.queue.try_send(spans) {
            count(refused.into_inner().len(), "dropped");
        }
    }

    fn start(&self) {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sending) = idle {
            thread::spawn(|ending| sending.run(ending));
        }
    }
}

impl Sending {
    async fn run(mut self, mut ending: watch::Receiver<bool>) {
        let mut fails = false;
        let collector = self.model.servers.to_string();
        while let Some(batch) = self.next(&mut ending).await {
            let total = batch.len();
            let sent = tokio::time::timeout(self.model.timeout, self.collector.send(batch)).await;
            let sent = sent.unwrap_or_else(|_| Err("timed out".to_owned()));
            match &sent {
                Ok(refused) => {
                    let refused = (*refused).min(total);
                    count(total - refused, "sent");
                    count(refused, "failed");
                }
                Err(_) => count(total, "failed"),
            }
            match &sent {
                Err(error) if !fails => tracing::warn!(collector, error, "cannot send spans"),
                Ok(_) if fails => tracing::info!(collector, "spans are sent again"),
                _ => {}
            }
            fails = sent.is_err();
        }
    }

    /// Waits for spans, and collects more for a short time; when the process ends, returns the queued spans.
    async fn next(&mut self, ending: &mut watch::Receiver<bool>) -> Option<Vec<SpanData>> {
        let mut batch = self.receive(ending).await?;
        let due = tokio::time::Instant::now() + WAIT;
        while batch.len() < BATCH {
            match tokio::time::timeout_at(due, self.receive(ending)).await {
                Ok(Some(more)) => batch.extend(more),
                Ok(None) | Err(_) => break,
            }
        }
        Some(batch)
    }

    async fn receive(&mut self, ending: &mut watch::Receiver<bool>) -> Option<Vec<SpanData>> {
        if !*ending.borrow() {
            tokio::select! {
                spans = self.spans.recv() => return spans,
                _ = ending.wait_for(|ending| *ending) => {}
            }
        }
        self.spans.close();
        self.spans.recv().await
    }
}

/// Counts spans by result: `sent`, `failed` or `dropped`.
fn count(spans: usize, result: &'static str) {
    if spans > 0 {
        counter!("quadrille_spans_total", "result" => result).increment(spans as u64);
    }
}
