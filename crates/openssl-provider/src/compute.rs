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

/// From openssl.cnf; 0 if it says nothing.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// From a module of the server; 0 without one.
static PROPOSED_THREADS: AtomicUsize = AtomicUsize::new(0);

/// Operations that may wait in one process.
const QUEUE: NonZeroUsize = const { NonZeroUsize::new(16 * 1024).expect("it is not zero") };

/// Sets how many compute threads the engine will have.
pub(crate) fn set_threads(count: NonZeroUsize) {
    THREADS.store(count.get(), Ordering::Relaxed);
}

/// The same, if openssl.cnf says nothing.
pub(crate) fn propose_threads(count: NonZeroUsize) {
    PROPOSED_THREADS.store(count.get(), Ordering::Relaxed);
}

/// The engine of this process.
pub(crate) fn engine() -> Result<Engine, Failure> {
    let started = ENGINE.get(|| {
        let failed = || Err("a panic while starting".to_owned());
        on_own_stack(start).unwrap_or_else(|_| failed())
    });
    started
        .clone()
        .map_err(|error| Failure::new(Reason::Internal, format!("cannot start compute threads: {error}")))
}

/// Ends the compute threads.
///
/// # Safety
/// No operation is under way, and none will begin before [`engine`] is called again.
pub(crate) unsafe fn stop() {
    // SAFETY: the caller's promise; clones of the engine live no longer than operations.
    drop(unsafe { ENGINE.clear() });
}

fn start() -> Result<Engine, String> {
    without_preempting();
    let backend = quadrille_engine::fastest().map_err(|error| error.to_string())?;
    let (policy, yields, key_exchange) = (Policy::default(), Settings::YIELDS, false);
    let settings = Settings { policy, threads: threads(), yields, capacity: QUEUE, key_exchange };
    Engine::start(settings, backend, Counts).map_err(|error| error.to_string())
}

/// The compute threads, which inherit this, do not interrupt an event loop on the same CPU when it wakes them: it goes on to its
/// other connections first, and what those hand in is computed together (sched(7)).
fn without_preempting() {
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is there; 0 is the calling thread. Where it is not allowed, batches are smaller, and all is well.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &priority) };
}

/// Half of the CPUs unless openssl.cnf or the server's module says otherwise: the event loops want some too, and fewer
/// threads fill larger batches.
fn threads() -> NonZeroUsize {
    let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(THREADS.load(Ordering::Relaxed))
        .or_else(|| NonZeroUsize::new(PROPOSED_THREADS.load(Ordering::Relaxed)))
        .or_else(|| NonZeroUsize::new(cpus / 2))
        .unwrap_or(NonZeroUsize::MIN)
}
