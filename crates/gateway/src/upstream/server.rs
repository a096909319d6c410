//! A server of an upstream: where it is, what it is called, and what is known of it.

use super::{address::ServerAddress, endpoint::Endpoint, outliers::Outcomes};
use std::{
    net::SocketAddr,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

/// One server, as chosen.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) address: ServerAddress,
    /// The host as it was written: the default for SNI and certificate checks.
    pub(crate) host: Arc<str>,
    /// The way to it, as in [`quadrille_config::model::Server`].
    pub(super) transport: usize,
    /// Where requests decide which version of HTTP is spoken: whether it is HTTP/2.
    pub(super) http2: bool,
    /// Counts as one of its requests, where that matters, for as long as anybody has it.
    pub(super) load: Option<Arc<LoadGuard>>,
}

impl From<&Endpoint> for Server {
    fn from(endpoint: &Endpoint) -> Self {
        let Endpoint { address, host, transport, .. } = endpoint;
        Self {
            address: address.clone(),
            host: Arc::clone(host),
            transport: *transport,
            http2: false,
            load: None,
        }
    }
}

impl Server {
    /// What is known of it, where the upstream counts its requests.
    pub(super) fn state(&self) -> Option<&ServerState> {
        self.load.as_ref().map(|load| &*load.0)
    }

    /// The server at an address, such as where a connection was going.
    pub(crate) fn at(address: SocketAddr) -> Self {
        let host = address.ip().to_string().into();
        Self { address: address.into(), host, transport: 0, http2: false, load: None }
    }

    /// The same server for a request that came over HTTP/2 or later, or did not.
    pub(super) fn asked_over_http2(self, http2: bool) -> Self {
        Self { http2, ..self }
    }

    /// The same server under the name by which the client called it.
    pub(crate) fn called(self, host: &str) -> Self {
        Self { host: host.into(), ..self }
    }
}

/// What is known of a server. It outlives reloads, as long as the server keeps its address and host.
#[derive(Debug, Default)]
pub(super) struct ServerState {
    unhealthy: AtomicBool,
    /// Health checks in a row whose outcome was not as `unhealthy` says.
    contrary: AtomicUsize,
    /// Requests, or connections in TCP mode, that are under way; counted where the balancing asks for it.
    active: AtomicUsize,
    /// What became of requests; known where the upstream looks at it.
    pub(super) outcomes: Outcomes,
}

impl ServerState {
    /// As far as is known: a server that was not checked is healthy.
    pub(super) fn is_healthy(&self) -> bool {
        !self.unhealthy.load(Ordering::Relaxed)
    }

    /// Whether it gets requests: healthy, and not left out for a while.
    pub(super) fn is_available(&self, now: impl FnOnce() -> Instant) -> bool {
        self.is_healthy() && !self.outcomes.is_out(now)
    }

    /// Takes note of a health check's outcome; true if the server's health has changed, for which so many like it in a
    /// row are needed. One call at a time.
    pub(super) fn observe(&self, healthy: bool, needed: NonZeroUsize) -> bool {
        if healthy == self.is_healthy() {
            self.contrary.store(0, Ordering::Relaxed);
            return false;
        }
        let contrary = self.contrary.load(Ordering::Relaxed) + 1;
        let changes = contrary >= needed.get();
        self.contrary.store(if changes { 0 } else { contrary }, Ordering::Relaxed);
        if changes {
            self.unhealthy.store(!healthy, Ordering::Relaxed);
        }
        changes
    }

    /// What is under way.
    pub(super) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// One more is under way, for as long as the value lives.
    pub(super) fn begin(self: &Arc<Self>) -> LoadGuard {
        self.active.fetch_add(1, Ordering::Relaxed);
        LoadGuard(Arc::clone(self))
    }
}

/// A request, or a connection in TCP mode, that counts towards its server's load.
#[derive(Debug)]
pub(super) struct LoadGuard(Arc<ServerState>);

impl Drop for LoadGuard {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, NonZeroUsize, ServerState};

    #[test]
    fn health_changes_after_as_many_outcomes_in_a_row_as_are_asked_for() {
        let (state, needed) = (ServerState::default(), NonZeroUsize::new(2).expect("two"));
        assert!(state.is_healthy(), "nothing is known");
        assert!(!state.observe(false, needed) && !state.observe(true, needed), "not in a row");
        assert!(!state.observe(false, needed) && state.is_healthy());
        assert!(state.observe(false, needed) && !state.is_healthy());
        assert!(!state.observe(false, needed), "known already");
        assert!(state.observe(true, NonZeroUsize::MIN) && state.is_healthy());
    }

    #[test]
    fn what_is_over_is_no_load() {
        let state = Arc::new(ServerState::default());
        let (one, other) = (state.begin(), state.begin());
        assert_eq!(state.active(), 2);
        drop((one, other));
        assert_eq!(state.active(), 0);
    }
}
