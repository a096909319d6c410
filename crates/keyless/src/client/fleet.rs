//! Process-wide state of the servers: availability and distrust.

use super::metrics;
use crate::{
    Address,
    wire::{Ski, Violation},
};
use std::{
    collections::HashSet,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// All servers, by index.
pub(super) struct Fleet {
    servers: Vec<Server>,
    /// Whether the loss of the last server has been reported.
    all_down_reported: AtomicBool,
}

struct Server {
    name: String,
    /// Cached from the state: connections of other event loops close when they see it.
    distrusted: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Keys that the server lacks, already reported.
    missing: HashSet<Ski>,
    /// Number of event loops with a connection.
    connections: usize,
    /// Whether its absence has been reported.
    reported: bool,
    distrusted_until: Option<Instant>,
    /// Duration of the last distrust.
    distrust: Duration,
}

/// Longest distrust.
const MAX_DISTRUST: Duration = Duration::from_secs(3600);

impl Fleet {
    pub(super) fn new(servers: &[Address]) -> Self {
        let server = |address: &Address| Server {
            name: address.to_string(),
            distrusted: AtomicBool::new(false),
            state: Mutex::default(),
        };
        let servers: Vec<_> = servers.iter().map(server).collect();
        servers.iter().for_each(|server| metrics::up(&server.name, false));
        Self { servers, all_down_reported: AtomicBool::new(false) }
    }

    pub(super) fn name(&self, server: usize) -> &str {
        &self.servers[server].name
    }

    /// Number of connected servers.
    pub(super) fn up(&self) -> usize {
        self.servers.iter().filter(|server| server.state().connections > 0).count()
    }

    /// Reports once that a server does not hold a key.
    pub(super) fn key_missing(&self, server: usize, key: Ski) {
        let server = &self.servers[server];
        if server.state().missing.insert(key) {
            tracing::warn!(server = server.name, %key, "the key server does not hold this certificate's key");
        }
    }

    /// Records a connection of an event loop.
    pub(super) fn connected(&self, server: usize) {
        let server = &self.servers[server];
        let first = {
            let mut state = server.state();
            state.connections += 1;
            state.reported = false;
            state.connections == 1
        };
        if first {
            tracing::info!(server = server.name, "key server is up");
            metrics::up(&server.name, true);
            self.all_down_reported.store(false, Ordering::Relaxed);
        }
    }

    /// Records the loss of an event loop's connection.
    pub(super) fn disconnected(&self, server: usize, reason: &str) {
        let server = &self.servers[server];
        let last = {
            let mut state = server.state();
            state.connections = state.connections.saturating_sub(1);
            state.reported |= state.connections == 0;
            state.connections == 0
        };
        if last {
            tracing::warn!(server = server.name, reason, "key server is lost");
            metrics::up(&server.name, false);
            self.report_all_down();
        }
    }

    /// Records a failed connection attempt of an event loop.
    pub(super) fn unreachable(&self, server: usize, reason: &str) {
        let server = &self.servers[server];
        let first = {
            let mut state = server.state();
            state.connections == 0 && !std::mem::replace(&mut state.reported, true)
        };
        if first {
            tracing::warn!(server = server.name, reason, "key server is unreachable; retrying");
            self.report_all_down();
        }
    }

    /// Records a protocol violation by a server.
    pub(super) fn violated(&self, server: usize, violation: &Violation) {
        let name = &self.servers[server].name;
        tracing::warn!(server = name, %violation, "key server violated the protocol; connection closed");
        metrics::violation(name);
    }

    /// Records a wrong result: a faulty machine, another key under this name, or an attacker.
    pub(super) fn distrust(&self, now: Instant, server: usize, first: Duration, key: &str) {
        let server = &self.servers[server];
        let distrust = {
            let mut state = server.state();
            // Wrong results on several event loops at the same time are the same fault.
            if state.distrusted_until.is_some_and(|until| until > now) {
                return;
            }
            let again = state.distrusted_until.is_some_and(|until| now < until + MAX_DISTRUST);
            state.distrust = if again { (2 * state.distrust).min(MAX_DISTRUST) } else { first };
            state.distrusted_until = Some(now + state.distrust);
            server.distrusted.store(true, Ordering::Relaxed);
            state.distrust
        };
        tracing::error!(
            server = server.name,
            key,
            out_for = ?distrust,
            "key server returned a WRONG RESULT and is taken out of service: check the machine and its keys"
        );
        metrics::wrong(&server.name);
    }

    /// Returns whether the server is distrusted now.
    pub(super) fn is_distrusted(&self, server: usize) -> bool {
        self.servers[server].distrusted.load(Ordering::Relaxed)
    }

    /// Remaining time of the distrust.
    pub(super) fn distrusted_for(&self, now: Instant, server: usize) -> Option<Duration> {
        let server = &self.servers[server];
        let until = server.state().distrusted_until?;
        let left = until.checked_duration_since(now).filter(|left| !left.is_zero());
        server.distrusted.store(left.is_some(), Ordering::Relaxed);
        left
    }

    fn report_all_down(&self) {
        if self.up() == 0 && !self.all_down_reported.swap(true, Ordering::Relaxed) {
            tracing::error!("no key server is reachable; handshakes wait for one, or fail");
        }
    }
}

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
