//! The thread on which spans are sent, for all collectors.

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

/// Started by the first who has something to send.
static RUNTIME: LazyLock<Option<Handle>> = LazyLock::new(|| {
    let started = start();
    if let Err(error) = &started {
        tracing::error!(%error, "no spans are sent");
    }
    started.ok()
});

/// Becomes true when the process ends.
static ENDING: LazyLock<watch::Sender<bool>> = LazyLock::new(|| watch::Sender::new(false));
static RUNNING: AtomicUsize = AtomicUsize::new(0);

fn start() -> io::Result<Handle> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let run = move || runtime.block_on(std::future::pending::<()>());
    thread::Builder::new().name("traces".to_owned()).spawn(run)?;
    Ok(handle)
}

/// Runs what `task` makes of the news that the process ends, for which [`finish`] waits.
pub(super) fn spawn<F: Future<Output = ()> + Send + 'static>(task: impl FnOnce(watch::Receiver<bool>) -> F) {
    let Some(runtime) = &*RUNTIME else { return };
    let running = Running::begin();
    let task = task(ENDING.subscribe());
    drop(runtime.spawn(async move {
        task.await;
        drop(running);
    }));
}

/// Has all send what is left, for so long at most.
pub(crate) async fn finish(limit: Duration) {
    ENDING.send_replace(true);
    let end = Instant::now() + limit;
    while RUNNING.load(Ordering::Acquire) > 0 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Counts for as long as it is here.
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
