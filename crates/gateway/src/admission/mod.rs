//! Which handshakes go on when there are more than this machine can do in time.
//!
//! Without this, they would be done first come, first served, each so late that its client has left.
//! [`Controller`](controller::Controller) decides, and is pure; here it is connected to the clock, the log and the
//! metrics. Every handshake asks once, when its ClientHello has been read and nothing of it has been computed yet.

mod acquaintances;
mod backlog;
mod congestion;
mod controller;
mod engine_watch;
mod event_loop;
mod in_turn;
mod network;
mod shares;
mod shut_out;
#[cfg(test)]
mod simulation;
mod turns;

pub(crate) use controller::Refusal;
pub(crate) use engine_watch::EngineWatch;
pub(crate) use event_loop::{EventLoop, Visit};
pub(crate) use in_turn::{InTurn, give_turns};

use crate::telemetry::metrics;
use backlog::Pending;
use controller::{Controller, Work};
use quadrille_engine::KeyType;
use shut_out::ShutOut;
use std::{
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// While handshakes are refused, the log hears of it this often.
const LOGGED_EVERY: Duration = Duration::from_secs(1);

/// Admission to one process.
pub(crate) struct Admission {
    state: Mutex<State>,
    /// Keyed at random, so that no client can choose whose place in the tables it gets.
    hasher: RandomState,
    epoch: Instant,
    /// Whether a queue stands, as far as the last handshake knew.
    overloaded: AtomicBool,
    /// Grows when those who are shut out become others.
    shut_out_version: AtomicU64,
    /// The engine's backend for what is too much for it.
    overflow: OnceLock<&'static str>,
}

struct State {
    controller: Controller,
    shut_out: ShutOut,
    /// Since the log heard of it.
    refused: u64,
    logged: Option<Duration>,
}

/// How overloaded the process is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) overloaded: bool,
    /// How long a private-key operation would wait if it came now.
    pub(crate) key_wait: Duration,
    /// How long a connection that is ready waits for its turn, on the slowest event loop.
    pub(crate) loop_delay: Duration,
    /// Networks whose connections the kernel drops.
    pub(crate) shut_out: usize,
}

/// A private-key operation in the engine, for as long as somebody waits for it.
pub(crate) struct PendingOperation {
    admission: Arc<Admission>,
    pending: Pending,
}

impl Admission {
    /// For so many event loops and compute threads.
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

    /// This backend computes what is too much for the compute threads.
    pub(crate) fn expect_overflow(&self, backend: &'static str) {
        let _ = self.overflow.set(backend);
    }

    /// How overloaded the process is now.
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

    /// Counts a refusal, and tells the log of those since it heard last.
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
            "more handshakes than can be done in time: some are refused"
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

/// What a handshake will cost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cost {
    Resumed,
    /// A private-key operation of this type, which waits for a compute thread if it is `queued`.
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
