//! A selected endpoint: its address, name and state.

use super::{
    endpoint::Endpoint,
    outliers::{self, Outcomes},
};
use crate::upstream::address::ServerAddress;
use std::{
    net::SocketAddr,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};
use tokio::sync::Notify;

/// An endpoint selected for a request.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) address: ServerAddress,
    /// Host as configured: the default for SNI and certificate verification.
    pub(crate) host: Arc<str>,
    /// Index of the transport, as in [`quadrille_config::model::Server`].
    pub(crate) transport: usize,
    /// Whether HTTP/2 is used, if the version depends on the request.
    pub(crate) http2: bool,
    /// Guard that counts an active request, if the load is counted.
    pub(crate) load: Option<Arc<LoadGuard>>,
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
    /// Returns the endpoint's state, if the upstream counts its requests.
    pub(crate) fn state(&self) -> Option<&ServerState> {
        self.load.as_ref().map(|load| &*load.state)
    }

    /// Creates an endpoint at an address, such as an original destination.
    pub(crate) fn at(address: SocketAddr) -> Self {
        let host = address.ip().to_string().into();
        Self { address: address.into(), host, transport: 0, http2: false, load: None }
    }

    /// Sets whether the request uses HTTP/2 or a later version.
    pub(crate) fn asked_over_http2(self, http2: bool) -> Self {
        Self { http2, ..self }
    }

    /// Sets the name that the client has requested.
    pub(crate) fn called(self, host: &str) -> Self {
        Self { host: host.into(), ..self }
    }
}

/// State of an endpoint. It outlives reloads, as long as the endpoint keeps its address and host.
#[derive(Debug, Default)]
pub(crate) struct ServerState {
    unhealthy: AtomicBool,
    /// Number of consecutive health checks whose outcome contradicts `unhealthy`.
    contrary: AtomicUsize,
    /// Number of active requests, or connections in TCP mode; counted if the load balancing requires it.
    active: AtomicUsize,
    /// Whether an operator has taken it out of service.
    draining: AtomicBool,
    /// Time from which its share grows, as [`outliers::moment`]; 0 if it has its whole share.
    slow_since: AtomicU64,
    /// Outcomes of requests, if outlier detection is enabled.
    pub(crate) outcomes: Outcomes,
}

impl ServerState {
    /// Returns whether it is healthy; an endpoint that was not checked is.
    pub(crate) fn is_healthy(&self) -> bool {
        !self.unhealthy.load(Ordering::Relaxed)
    }

    /// Returns whether it receives requests: healthy, in service and not ejected.
    pub(crate) fn is_available(&self, now: impl FnOnce() -> Instant) -> bool {
        self.is_healthy() && !self.is_draining() && !self.outcomes.is_out(now)
    }

    /// Returns whether an operator has taken it out of service.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Takes it out of service, or back into it.
    pub(crate) fn drain(&self, draining: bool, now: Instant) {
        if self.draining.swap(draining, Ordering::Relaxed) && !draining {
            self.begin_slow_start(now);
        }
    }

    /// Lets its share grow from now on, if the upstream has a slow start.
    pub(crate) fn begin_slow_start(&self, now: Instant) {
        self.slow_since.store(outliers::moment(now), Ordering::Relaxed);
    }

    /// Returns the time from which its share grows, as [`outliers::moment`]; 0 if it has its whole share.
    pub(super) fn slow_since(&self) -> u64 {
        self.slow_since.load(Ordering::Relaxed).max(self.outcomes.out_until())
    }

    /// Records the outcome of a health check; returns whether the endpoint's health has changed, which requires
    /// `needed` consecutive outcomes. Calls must not overlap.
    pub(crate) fn observe(&self, healthy: bool, needed: NonZeroUsize) -> bool {
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

    /// Returns the number of active requests.
    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Counts an active request while the guard lives.
    pub(crate) fn begin(self: &Arc<Self>) -> LoadGuard {
        self.active.fetch_add(1, Ordering::Relaxed);
        LoadGuard { state: Arc::clone(self), freed: None }
    }

    /// Counts an active request while the guard lives, unless there are `most`. The end of the request is notified.
    pub(crate) fn try_begin(self: &Arc<Self>, most: NonZeroUsize, freed: &Arc<Notify>) -> Option<LoadGuard> {
        let more = |active| (active < most.get()).then_some(active + 1);
        self.active.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(LoadGuard { state: Arc::clone(self), freed: Some(Arc::clone(freed)) })
    }
}

/// Guard that counts a request, or a connection in TCP mode, towards its endpoint's load.
#[derive(Debug)]
pub(crate) struct LoadGuard {
    state: Arc<ServerState>,
    /// Notified of the end, if the endpoint has a maximum number of active requests.
    freed: Option<Arc<Notify>>,
}

impl Drop for LoadGuard {
    fn drop(&mut self) {
        self.state.active.fetch_sub(1, Ordering::Relaxed);
        if let Some(freed) = &self.freed {
            freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, NonZeroUsize, ServerState};

    #[test]
    fn health_changes_after_as_many_outcomes_in_a_row_as_are_asked_for() {
        let (state, needed) = (ServerState::default(), NonZeroUsize::new(2).expect("two"));
        assert!(state.is_healthy(), "not checked yet");
        assert!(!state.observe(false, needed) && !state.observe(true, needed), "not consecutive");
        assert!(!state.observe(false, needed) && state.is_healthy());
        assert!(state.observe(false, needed) && !state.is_healthy());
        assert!(!state.observe(false, needed), "unhealthy already");
        assert!(state.observe(true, NonZeroUsize::MIN) && state.is_healthy());
    }

    #[test]
    fn a_completed_request_is_not_counted() {
        let state = Arc::new(ServerState::default());
        let (one, other) = (state.begin(), state.begin());
        assert_eq!(state.active(), 2);
        drop((one, other));
        assert_eq!(state.active(), 0);
    }
}
