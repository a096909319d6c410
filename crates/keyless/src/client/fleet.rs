//! The servers as the whole process sees them: which are up, which are not believed any more.

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
    /// What it says of servers when the last one goes, once.
    all_down_reported: AtomicBool,
}

struct Server {
    name: String,
    /// A quick look at what the state says: connections of other event loops close when they see it.
    distrusted: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Keys that it has said it does not hold, which has been reported.
    missing: HashSet<Ski>,
    /// Event loops that have a connection.
    connections: usize,
    /// Its absence has been reported.
    reported: bool,
    distrusted_until: Option<Instant>,
    /// How long the last time was.
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

    /// How many servers have a connection.
    pub(super) fn up(&self) -> usize {
        self.servers.iter().filter(|server| server.state().connections > 0).count()
    }

    /// A server does not hold a key, which is said once.
    pub(super) fn key_missing(&self, server: usize, key: Ski) {
        let server = &self.servers[server];
        if server.state().missing.insert(key) {
            tracing::warn!(server = server.name, %key, "the key server does not hold this certificate's key");
        }
    }

    /// An event loop has a connection.
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

    /// An event loop has lost its connection.
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

    /// An event loop could not connect.
    pub(super) fn unreachable(&self, server: usize, reason: &str) {
        let server = &self.servers[server];
        let first = {
            let mut state = server.state();
            state.connections == 0 && !std::mem::replace(&mut state.reported, true)
        };
        if first {
            tracing::warn!(server = server.name, reason, "key server cannot be reached; trying again");
            self.report_all_down();
        }
    }

    /// A server has said what no correct one says.
    pub(super) fn violated(&self, server: usize, violation: &Violation) {
        let name = &self.servers[server].name;
        tracing::warn!(server = name, %violation, "key server breaks the protocol; its connection is closed");
        metrics::violation(name);
    }

    /// A server has returned a wrong result: a faulty machine, another key under this name, or an attacker.
    pub(super) fn distrust(&self, now: Instant, server: usize, first: Duration, key: &str) {
        let server = &self.servers[server];
        let distrust = {
            let mut state = server.state();
            // Event loops that were answered wrongly at the same time report the same fault.
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
            "key server has returned a WRONG RESULT; it is taken out of service: check the machine and its keys"
        );
        metrics::wrong(&server.name);
    }

    /// Whether the server must not be asked now.
    pub(super) fn is_distrusted(&self, server: usize) -> bool {
        self.servers[server].distrusted.load(Ordering::Relaxed)
    }

    /// How long the server must not be asked.
    pub(super) fn distrusted_for(&self, now: Instant, server: usize) -> Option<Duration> {
        let server = &self.servers[server];
        let until = server.state().distrusted_until?;
        let left = until.checked_duration_since(now).filter(|left| !left.is_zero());
        server.distrusted.store(left.is_some(), Ordering::Relaxed);
        left
    }

    fn report_all_down(&self) {
        if self.up() == 0 && !self.all_down_reported.swap(true, Ordering::Relaxed) {
            tracing::error!("no key server can be reached; handshakes wait until one can, or fail");
        }
    }
}

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
