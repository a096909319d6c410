//! The thread that sends the spans of all collectors.

use std::{
    io,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::{runtime::Handle, sync::watch};

/// Runtime of the thread, which is started by the first exporter with spans.
static RUNTIME: LazyLock<Option<Handle>> = LazyLock::new(|| {
    let started = start();
    if let Err(error) = &started {
        tracing::error!(%error, "cannot start the thread that sends spans");
    }
    started.ok()
});

/// Set to true when the process ends.
static ENDING: LazyLock<watch::Sender<bool>> = LazyLock::new(|| watch::Sender::new(false));
static RUNNING: AtomicUsize = AtomicUsize::new(0);

fn start() -> io::Result<Handle> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let run = move || runtime.block_on(std::future::pending::<()>());
    thread::Builder::new().name("traces".to_owned()).spawn(run)?;
    Ok(handle)
}

/// Spawns a task that is notified when the process ends; [`finish`] waits for it.
pub(super) fn spawn<F: Future<Output = ()> + Send + 'static>(task: impl FnOnce(watch::Receiver<bool>) -> F) {
    let Some(runtime) = &*RUNTIME else { return };
    let running = Running::begin();
    let task = task(ENDING.subscribe());
    drop(runtime.spawn(async move {
        task.await;
        drop(running);
    }));
}

/// Sends all queued spans, and waits up to this limit.
pub(crate) async fn finish(limit: Duration) {
    ENDING.send_replace(true);
    let end = Instant::now() + limit;
    while RUNNING.load(Ordering::Acquire) > 0 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Counts a running task until it is dropped.
struct Running;

impl Running {
    fn begin() -> Self {
        RUNNING.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}
