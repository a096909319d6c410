//! The engine of this process: started with the first operation, so that a server may fork before.

use crate::{
    batches::Counts,
    error::{Failure, Reason},
    process::{PerProcess, on_own_stack},
};
use quadrille_engine::{Engine, Policy, Settings};
use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicUsize, Ordering},
};

static ENGINE: PerProcess<Result<Engine, String>> = PerProcess::new();

/// Number of threads from openssl.cnf; 0 if unset.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Number of threads proposed by a module of the server; 0 if unset.
static PROPOSED_THREADS: AtomicUsize = AtomicUsize::new(0);

/// Maximum number of queued operations in one process.
const QUEUE: NonZeroUsize = const { NonZeroUsize::new(16 * 1024).expect("it is not zero") };

/// Sets the number of compute threads.
pub(crate) fn set_threads(count: NonZeroUsize) {
    THREADS.store(count.get(), Ordering::Relaxed);
}

/// Sets the number of compute threads if openssl.cnf does not.
pub(crate) fn propose_threads(count: NonZeroUsize) {
    PROPOSED_THREADS.store(count.get(), Ordering::Relaxed);
}

/// Returns the engine of this process.
pub(crate) fn engine() -> Result<Engine, Failure> {
    let started = ENGINE.get(|| {
        let failed = || Err("panicked while starting".to_owned());
        on_own_stack(start).unwrap_or_else(|_| failed())
    });
    started
        .clone()
        .map_err(|error| Failure::new(Reason::Internal, format!("cannot start compute threads: {error}")))
}

/// Stops the compute threads.
///
/// # Safety
/// No operation is in progress, and none will start before [`engine`] is called again.
pub(crate) unsafe fn stop() {
    // SAFETY: the caller's promise; clones of the engine do not outlive operations.
    drop(unsafe { ENGINE.clear() });
}

fn start() -> Result<Engine, String> {
    without_preempting();
    let backend = quadrille_engine::fastest().map_err(|error| error.to_string())?;
    let (policy, yields, key_exchange) = (Policy::default(), Settings::YIELDS, false);
    let settings = Settings { policy, threads: threads(), yields, capacity: QUEUE, key_exchange };
    Engine::start(settings, backend, Counts).map_err(|error| error.to_string())
}

/// Sets `SCHED_BATCH`, which the compute threads inherit: waking them does not preempt an event loop on the same CPU.
/// The loop first serves its other connections, whose operations are then computed in the same batch (sched(7)).
fn without_preempting() {
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is valid; 0 is the calling thread. If the call is not permitted, batches are only
    // smaller.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &priority) };
}

/// Half of the CPUs unless openssl.cnf or the server's module sets a number: the event loops need CPU time too, and
/// fewer threads fill larger batches.
fn threads() -> NonZeroUsize {
    let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(THREADS.load(Ordering::Relaxed))
        .or_else(|| NonZeroUsize::new(PROPOSED_THREADS.load(Ordering::Relaxed)))
        .or_else(|| NonZeroUsize::new(cpus / 2))
        .unwrap_or(NonZeroUsize::MIN)
}
