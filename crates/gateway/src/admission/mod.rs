//! Admission control: decides which handshakes continue when there are more than this machine can complete in time.
//!
//! Without it, handshakes would be processed in FIFO order, each so late that its client has left.
//! [`Controller`](controller::Controller) decides, and is pure; this module connects it to the clock, the log and the
//! metrics. Every handshake is decided once, when its ClientHello has been read and before any computation.
//!
//! - `controller`: the decision, by the `backlog` of private-key operations, the `congestion` of queues, the
//!   `shares` of networks and names, and `recent_clients`. `simulation` tests it at four times a machine's
//!   capacity.
//! - `blocklist`: networks whose connections the kernel drops; `network`: the prefix that counts as one client.
//! - `event_loop`, `engine_watch`: the interfaces to the rest of the gateway and to the engine.
//! - `places`: bounded places for connections, fair by network; `client_places`: those of each client.
//! - `step_queue`: steps that tasks take after all others on their event loop. `yielding`: handshakes on a busy event
//!   loop. `transfers`: connections that transfer much data.

mod backlog;
mod blocklist;
mod client_places;
mod congestion;
mod controller;
mod engine_watch;
mod loop_admission;
mod network;
mod places;
mod recent_clients;
mod shares;
#[cfg(test)]
mod simulation;
mod step_queue;
mod transfers;
mod yielding;

pub(crate) use client_places::{ClientPlace, ClientPlaces, TooMany};
pub(crate) use controller::Refusal;
pub(crate) use engine_watch::EngineWatch;
pub(crate) use loop_admission::{LoopAdmission, Visit};
pub(crate) use places::{Holder, Place, Places};
pub(crate) use transfers::Transfers;
pub(crate) use yielding::{Yielding, run_yielding};

use crate::telemetry::metrics;
use backlog::Pending;
use blocklist::ShutOut;
use controller::{Controller, Work};
use quadrille_engine::KeyType;
use std::{
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Interval of log messages while handshakes are rejected.
const LOGGED_EVERY: Duration = Duration::from_secs(1);

/// Admission control of a process.
pub(crate) struct Admission {
    state: Mutex<State>,
    /// Randomly keyed, so that clients cannot choose their slots in the tables.
    hasher: RandomState,
    epoch: Instant,
    /// Whether there was a standing queue at the last decision.
    overloaded: AtomicBool,
    /// Incremented when the set of shut-out networks changes.
    shut_out_version: AtomicU64,
    /// Backend that computes the engine's excess operations.
    overflow: OnceLock<&'static str>,
}

struct State {
    controller: Controller,
    shut_out: ShutOut,
    /// Number of rejections since the last log message.
    refused: u64,
    logged: Option<Duration>,
}

/// Overload of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) overloaded: bool,
    /// Queueing delay of a private-key operation submitted now.
    pub(crate) key_wait: Duration,
    /// Delay of a ready connection on the slowest event loop.
    pub(crate) loop_delay: Duration,
    /// Number of networks whose connections the kernel drops.
    pub(crate) shut_out: usize,
}

/// Guard of a private-key operation in the engine, held until it completes or is canceled.
pub(crate) struct PendingOperation {
    admission: Arc<Admission>,
    pending: Pending,
}

impl Admission {
    /// Creates admission control for the given numbers of event loops and compute threads.
    pub(crate) fn new(event_loops: usize, compute_threads: usize) -> Arc<Self> {
        let controller = Controller::new(event_loops, compute_threads);
        Arc::new(Self {
            state: Mutex::new(State { controller, shut_out: ShutOut::default(), refused: 0, logged: None }),
            hasher: RandomState::new(),
            epoch: Instant::now(),
            overloaded: AtomicBool::new(false),
            shut_out_version: AtomicU64::new(0),
            overflow: OnceLock::new(),
        })
    }

    /// Sets the backend that computes the excess operations of the compute threads.
    pub(crate) fn expect_overflow(&self, backend: &'static str) {
        let _ = self.overflow.set(backend);
    }

    /// Returns the current overload of the process.
    pub(crate) fn load(&self) -> Load {
        let now = self.now();
        let mut state = self.state();
        let (key_wait, loop_delay) = state.controller.delays(now);
        let shut_out = state.shut_out.networks().count();
        Load { overloaded: state.controller.is_overloaded(now), key_wait, loop_delay, shut_out }
    }

    fn client(&self, address: IpAddr) -> u64 {
        self.hasher.hash_one(network::of(address))
    }

    fn name(&self, name: &str) -> u64 {
        self.hasher.hash_one(name)
    }

    /// Counts a rejection, and logs the number since the last log message.
    fn refused(&self, mut state: MutexGuard<'_, State>, refusal: Refusal, now: Duration) {
        metrics::handshake_refused(refusal.label());
        state.refused += 1;
        if state.logged.is_some_and(|logged| now.saturating_sub(logged) < LOGGED_EVERY) {
            return;
        }
        state.logged = Some(now);
        let refused = std::mem::take(&mut state.refused);
        let (key_wait, loop_delay) = state.controller.delays(now);
        drop(state);
        let reason = refusal.label();
        tracing::warn!(
            refused,
            reason,
            ?key_wait,
            ?loop_delay,
            "overload: rejecting handshakes that would not complete in time"
        );
    }

    fn note_shut_out(&self, changed: bool) {
        if changed {
            self.shut_out_version.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn enter(self: &Arc<Self>, key_type: KeyType, urgent: bool) -> PendingOperation {
        let pending = self.state().controller.enter(key_type, urgent, self.now());
        PendingOperation { admission: Arc::clone(self), pending }
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    fn is_overloaded(&self) -> bool {
        self.overloaded.load(Ordering::Relaxed)
    }

    fn note_overload(&self, overloaded: bool) {
        if self.is_overloaded() != overloaded {
            self.overloaded.store(overloaded, Ordering::Relaxed);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PendingOperation {
    fn drop(&mut self) {
        let now = self.admission.now();
        self.admission.state().controller.leave(self.pending, now);
    }
}

/// Cost of a handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cost {
    Resumed,
    /// A private-key operation of this type, queued for a compute thread if `queued`.
    Full {
        key_type: KeyType,
        queued: bool,
    },
}

impl From<Cost> for Work {
    fn from(cost: Cost) -> Self {
        match cost {
            Cost::Resumed => Self::Resumed,
            Cost::Full { key_type, queued: true } => Self::Queued(key_type),
            Cost::Full { queued: false, .. } => Self::Full,
        }
    }
}
