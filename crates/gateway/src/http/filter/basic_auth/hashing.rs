//! Threads that hash passwords.

use crate::process::background;
use std::{
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        LazyLock, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};
use tokio::sync::oneshot;

/// No thread is available in time.
#[derive(Debug)]
pub(super) struct Busy;

type Job = Box<dyn FnOnce() + Send>;

/// Maximum number of passwords in the queue.
const WAITING: usize = 128;
/// Maximum time that a client waits for its turn and for the result.
const PATIENCE: Duration = Duration::from_secs(10);

/// The threads start with the first password and run until the process exits. TLS handshakes never wait for them.
static JOBS: LazyLock<SyncSender<Job>> = LazyLock::new(|| {
    let (sender, receiver) = sync_channel(WAITING);
    // Lives as long as the process.
    let receiver: &'static Mutex<Receiver<Job>> = Box::leak(Box::new(Mutex::new(receiver)));
    for _ in 0..threads() {
        let spawned = thread::Builder::new().name("passwords".into()).spawn(|| work(receiver));
        if let Err(error) = spawned {
            tracing::error!(%error, "cannot start a thread for passwords");
        }
    }
    sender
});

/// Number of threads: a quarter of the CPUs, and at most four, because each may need the memory of Argon2.
fn threads() -> usize {
    (thread::available_parallelism().map_or(1, NonZeroUsize::get) / 4).clamp(1, 4)
}

/// Runs a slow function on one of the threads and returns its result.
///
/// # Errors
/// Fails if the queue is full or the time is over.
pub(super) async fn compute<T: Send + 'static>(
    function: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Busy> {
    let (done, result) = oneshot::channel();
    let job = move || {
        // The result of a disconnected client is not needed.
        if !done.is_closed() {
            let _ = done.send(function());
        }
    };
    JOBS.try_send(Box::new(job)).map_err(|_| Busy)?;
    match tokio::time::timeout(PATIENCE, result).await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(_)) | Err(_) => Err(Busy),
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    background::lower_priority();
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("a password could not be hashed");
        }
    }
}
