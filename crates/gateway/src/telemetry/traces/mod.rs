//! Traces of requests, as OpenTelemetry has them: whether there are any, and their way to a collector.
//!
//! Spans wait in a queue of bounded length for a thread of their own, so that no event loop waits for a collector.

mod collector;
mod exporter;

use arc_swap::ArcSwapOption;
use opentelemetry_sdk::trace::SpanData;
use quadrille_config::model::Tracing;
use std::{
    io,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// Requests whose spans wait to be sent, at most.
const QUEUE: usize = 4096;

static ENABLED: AtomicBool = AtomicBool::new(false);
static TRACER: LazyLock<ArcSwapOption<Tracer>> = LazyLock::new(ArcSwapOption::empty);
/// The thread that sends, while there is one.
static EXPORTER: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);

/// Takes spans.
pub(crate) struct Tracer {
    pub(crate) model: Tracing,
    queue: mpsc::Sender<Vec<SpanData>>,
}

/// Who takes spans; `None` if nobody does.
pub(crate) fn tracer() -> Option<Arc<Tracer>> {
    if ENABLED.load(Ordering::Relaxed) { TRACER.load_full() } else { None }
}

/// From now on, spans are recorded and sent as these settings say.
///
/// # Errors
/// There is no thread to send them.
pub(crate) fn follow(model: Option<&Tracing>) -> io::Result<()> {
    if TRACER.load().as_ref().map(|tracer| &tracer.model) == model {
        return Ok(());
    }
    let tracer = match model {
        None => None,
        Some(model) => {
            let (queue, spans) = mpsc::channel(QUEUE);
            let exporter = exporter::start(model.clone(), spans)?;
            // The thread before this one ends by itself, once it has sent what is left.
            *EXPORTER.lock().unwrap_or_else(PoisonError::into_inner) = Some(exporter);
            Some(Arc::new(Tracer { model: model.clone(), queue }))
        }
    };
    ENABLED.store(tracer.is_some(), Ordering::Relaxed);
    TRACER.store(tracer);
    Ok(())
}

/// Sends what is left, for so long at most.
pub(crate) async fn finish(limit: Duration) {
    let _ = follow(None);
    let exporter = EXPORTER.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(exporter) = exporter else { return };
    let end = Instant::now() + limit;
    while !exporter.is_finished() && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

impl Tracer {
    /// Takes the spans of one request, which are lost if too many wait.
    pub(crate) fn record(&self, spans: Vec<SpanData>) {
        if let Err(refused) = self.queue.try_send(spans) {
            exporter::count(refused.into_inner().len(), "dropped");
        }
    }
}
