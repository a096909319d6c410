//! Listeners with their filter chains: the state that a reload swaps, and the state that it retains.

use super::retained_sockets::RetainedSockets;
use crate::{
    admission::{ClientPlaces, Places},
    handover::ListenerSockets,
    http::HttpSettings,
    listener::matcher::FilterChainMatcher,
    tcp::TcpSettings,
    telemetry::{
        sampling::Sampling,
        statistics::{ChainCounters, ListenerCounters, ListenerStatistics},
    },
    tls::{ChainTls, QuicStart, QuicTls},
};
use arc_swap::ArcSwap;
use quadrille_config::model::{AccessRules, ChainMatch, Listener, ProxyProtocolIn, Timeouts};
use std::{
    io,
    net::SocketAddr,
    os::unix::net::UnixDatagram,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, watch};

/// A listener, for as long as its socket is open.
pub(crate) struct ActiveListener {
    /// Configured address.
    pub(crate) address: SocketAddr,
    /// Bound address; the port differs from `address` where the kernel has chosen it.
    pub(crate) bound: SocketAddr,
    /// Whether it has TCP sockets. A listener without may share its address with one that has.
    tcp: bool,
    /// Whether it has sockets.
    has_sockets: bool,
    pub(super) config: ArcSwap<ListenerConfig>,
    /// Places for open connections.
    pub(crate) connections: Arc<Places>,
    /// Places for handshakes in progress.
    pub(crate) handshakes: Arc<Places>,
    /// Open connections by client.
    pub(crate) clients: Arc<ClientPlaces>,
    /// Becomes true when no more connections are to be accepted.
    pub(crate) closing: watch::Sender<bool>,
    /// Set while event loops have UDP sockets of the listener; closes them.
    quic: Mutex<Option<watch::Sender<bool>>>,
    retained_sockets: Mutex<RetainedSockets>,
    pub(crate) counters: ListenerCounters,
}

/// Configuration that a reload swaps.
pub(crate) struct ListenerConfig {
    pub(crate) model: Listener,
    /// The filter chains in the model's order, the default chain last.
    pub(crate) chains: Vec<Arc<FilterChain>>,
    pub(crate) matcher: FilterChainMatcher,
    /// Settings for new QUIC connections, if any of the chains serves them.
    pub(crate) quic: Option<Arc<QuicStart>>,
}

/// A filter chain, for as long as its listener has it. Its connections see the changes of a reload.
pub(crate) struct FilterChain {
    name: String,
    accepts: ChainMatch,
    pub(super) config: ArcSwap<ChainConfig>,
    pub(super) removed: AtomicBool,
    pub(super) removal: Notify,
    pub(crate) counters: ChainCounters,
}

/// Configuration of a filter chain.
pub(crate) struct ChainConfig {
    /// TLS settings; `None` for plaintext.
    pub(crate) tls: Option<Arc<ChainTls>>,
    /// TLS settings of HTTP/3, if it is served.
    pub(crate) quic: Option<Arc<QuicTls>>,
    pub(crate) handler: Handler,
    /// Rules for clients that may connect.
    pub(crate) access: Vec<AccessRules>,
    pub(crate) timeouts: Timeouts,
    pub(crate) sampling: Arc<Sampling>,
}

/// Handler of a connection's bytes.
pub(crate) enum Handler {
    Http(Arc<HttpSettings>),
    Tcp(TcpSettings),
}

/// A filter chain prepared for activation.
pub(crate) struct PreparedChain {
    pub(crate) chain: Arc<FilterChain>,
    pub(crate) config: Arc<ChainConfig>,
}

/// A listener prepared for activation.
pub(crate) struct PreparedListener {
    pub(crate) model: Listener,
    pub(crate) chains: Vec<PreparedChain>,
    pub(crate) matcher: FilterChainMatcher,
    pub(crate) quic: Option<Arc<QuicStart>>,
}

impl ChainConfig {
    /// Returns whether both request client certificates alike, so that authenticated clients may stay connected.
    pub(super) fn asks_clients_the_same(&self, other: &Self) -> bool {
        match (&self.tls, &other.tls) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one.asks_clients_the_same(other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// Returns whether it requests client certificates.
    pub(super) fn asks_clients(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.asks_clients())
    }

    /// Returns whether clients that `before` accepted without a certificate may be unauthenticated here.
    pub(super) fn asks_clients_more_than(&self, before: &Self) -> bool {
        self.asks_clients() && !self.asks_clients_the_same(before)
    }

    /// Returns whether a client accepted by one could have been accepted by the other.
    pub(super) fn protects_the_same(&self, other: &Self) -> bool {
        match (&self.tls, &other.tls) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one.protects_the_same(other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// Returns whether the handlers apply the same rules to a request.
    pub(super) fn guards_the_same(&self, other: &Self) -> bool {
        match (&self.handler, &other.handler) {
            (Handler::Http(one), Handler::Http(other)) => one.guards_the_same(other),
            (Handler::Http(http), Handler::Tcp(_)) | (Handler::Tcp(_), Handler::Http(http)) => {
                !http.compares_chains()
            }
            (Handler::Tcp(_), Handler::Tcp(_)) => true,
        }
    }

    /// Returns whether a chain with this TLS and handler serves the same names.
    pub(crate) fn same_names(&self, tls: Option<&Arc<ChainTls>>, handler: &Handler) -> bool {
        let same_tls = match (&self.tls, tls) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        };
        same_tls
            && match (&self.handler, handler) {
                (Handler::Http(before), Handler::Http(now)) => before.router.table() == now.router.table(),
                (Handler::Tcp(_), Handler::Tcp(_)) => true,
                _ => false,
            }
    }
}

impl FilterChain {
    pub(crate) fn new(name: &str, accepts: &ChainMatch, config: Arc<ChainConfig>) -> Self {
        Self {
            name: name.to_owned(),
            accepts: accepts.clone(),
            config: ArcSwap::new(config),
            removed: AtomicBool::new(false),
            removal: Notify::new(),
            counters: ChainCounters::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether it is the same chain, regardless of its configuration.
    pub(crate) fn has_identity(&self, name: &str, accepts: &ChainMatch) -> bool {
        self.name == name && self.accepts == *accepts
    }

    pub(crate) fn config(&self) -> Arc<ChainConfig> {
        self.config.load_full()
    }

    /// Requests its connections to drain.
    fn remove(&self) {
        self.removed.store(true, Ordering::Release);
        self.removal.notify_waiters();
    }
}

impl PreparedListener {
    /// Swaps the configuration of the chains.
    fn activate(self) -> ListenerConfig {
        let chains = self.chains.into_iter().map(|PreparedChain { chain, config }| {
            let before = chain.config.swap(config);
            let now = chain.config.load();
            let ends_quic = before.quic.is_some() && now.quic.is_none();
            if ends_quic || !now.asks_clients_the_same(&before) {
                chain.removal.notify_waiters();
            }
            drop(now);
            chain
        });
        let chains = chains.collect();
        ListenerConfig { model: self.model, chains, matcher: self.matcher, quic: self.quic }
    }
}

impl ListenerConfig {
    /// Prepares an event-loop thread for handshakes of this listener.
    pub(crate) fn warm(&self) {
        let tls = self.chains.iter().find_map(|chain| chain.config().tls.clone());
        if let Some(tls) = tls {
            tls.resumption().warm();
        }
    }

    /// Returns whether the source address of a connection is the client's, and all chains serve TLS with a handshake
    /// deadline. Clients may then be rejected before anything is read.
    pub(crate) fn knows_clients_by_address(&self) -> bool {
        let has_deadline = |chain: &Arc<FilterChain>| {
            let config = chain.config.load();
            config.tls.is_some() && config.timeouts.handshake_deadline.is_some()
        };
        self.model.proxy_protocol != ProxyProtocolIn::Required && self.chains.iter().all(has_deadline)
    }

    /// Returns whether every full handshake waits for a compute thread.
    pub(crate) fn waits_for_compute(&self) -> bool {
        let waits = |chain: &Arc<FilterChain>| {
            chain.config.load().tls.as_ref().is_some_and(|tls| tls.waits_for_compute())
        };
        self.chains.iter().all(waits)
    }

    /// Returns the time limit for finding the chain of a connection.
    pub(crate) fn inspection(&self) -> Duration {
        match &self.model.chains[..] {
            [only] if self.matcher.only_chain().is_some() => only.timeouts.handshake,
            _ => self.model.inspection.timeout,
        }
    }
}

impl ActiveListener {
    pub(crate) fn new(prepared: PreparedListener, bound: SocketAddr) -> Self {
        let limits = &prepared.model.limits;
        Self {
            address: prepared.model.address,
            bound,
            tcp: prepared.model.tcp,
            has_sockets: prepared.model.bound,
            connections: Places::new(limits.connections),
            handshakes: Places::new(limits.handshakes),
            clients: ClientPlaces::new(limits.connections_per_client),
            closing: watch::Sender::new(false),
            quic: Mutex::new(None),
            retained_sockets: Mutex::default(),
            counters: ListenerCounters::default(),
            config: ArcSwap::from_pointee(prepared.activate()),
        }
    }

    /// Returns the listeners of `running` that these configured listeners retain, in their order. Several may have
    /// the same address if the kernel chooses the port; these keep their order.
    pub(crate) fn retained<'a>(
        running: &[Arc<Self>],
        listeners: impl Iterator<Item = &'a Listener>,
    ) -> Vec<Option<Arc<Self>>> {
        let mut left: Vec<_> = running.iter().map(Some).collect();
        let mut keep = |listener: &Listener| {
            let is_it = |left: &&mut Option<&Arc<Self>>| {
                left.is_some_and(|known| {
                    (known.address, known.tcp, known.has_sockets)
                        == (listener.address, listener.tcp, listener.bound)
                })
            };
            left.iter_mut().find(is_it).and_then(Option::take).cloned()
        };
        listeners.map(&mut keep).collect()
    }

    pub(crate) fn config(&self) -> Arc<ListenerConfig> {
        self.config.load_full()
    }

    /// Returns whether it has sockets; otherwise other listeners hand connections over to it.
    pub(crate) fn is_bound(&self) -> bool {
        self.has_sockets
    }

    /// Swaps the configuration; connections of chains that are not in it drain.
    pub(crate) fn update(&self, prepared: PreparedListener) {
        let before = self.config();
        self.connections.set_limit(prepared.model.limits.connections);
        self.handshakes.set_limit(prepared.model.limits.handshakes);
        self.clients.set_most(prepared.model.limits.connections_per_client);
        let config = prepared.activate();
        for chain in &before.chains {
            if !config.chains.iter().any(|kept| Arc::ptr_eq(kept, chain)) {
                chain.remove();
            }
        }
        self.config.store(Arc::new(config));
    }

    /// Returns the statistics.
    pub(crate) fn statistics(&self) -> ListenerStatistics {
        let config = self.config();
        let name = &config.model.name;
        ListenerStatistics {
            name: if name.is_empty() { self.address.to_string() } else { name.clone() },
            address: self.address.to_string(),
            accepted: self.counters.accepted.get(),
            active: self.counters.active.get(),
            no_chain: self.counters.no_chain.get(),
            overflow: self.counters.overflow.get(),
            broken: self.counters.broken.get(),
            chains: config.chains.iter().map(|chain| chain.counters.read(chain.name())).collect(),
        }
    }

    /// Returns whether it has UDP sockets.
    pub(crate) fn has_quic(&self) -> bool {
        self.quic().is_some()
    }

    /// Records that UDP sockets were opened.
    pub(crate) fn open_quic(&self) {
        *self.quic() = Some(watch::Sender::new(false));
    }

    /// Retains duplicates of the event loops' sockets for a successor process.
    pub(crate) fn retain(&self, sockets: RetainedSockets) {
        self.retained_sockets().add(sockets);
    }

    /// Returns its sockets for a successor process, and the sockets that [`Self::hand_over`] takes then.
    ///
    /// # Errors
    /// Returns an error if file descriptors are exhausted.
    pub(crate) fn share(&self) -> io::Result<(ListenerSockets, Vec<UnixDatagram>)> {
        self.retained_sockets().share(self.address)
    }

    /// Hands the sockets over: the successor process serves.
    pub(crate) fn hand_over(&self, ends: Vec<UnixDatagram>) {
        self.retained_sockets().hand_over(ends);
        self.close();
    }

    fn retained_sockets(&self) -> MutexGuard<'_, RetainedSockets> {
        self.retained_sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops accepting QUIC connections; open ones are requested to close.
    pub(crate) fn close_quic(&self) {
        self.retained_sockets().forget_quic();
        if let Some(closing) = self.quic().take() {
            closing.send_replace(true);
            self.config().chains.iter().for_each(|chain| chain.removal.notify_waiters());
        }
    }

    /// Returns a receiver that becomes true when QUIC connections are no longer accepted; without QUIC, it is true
    /// already.
    pub(crate) fn quic_closing(&self) -> watch::Receiver<bool> {
        self.quic().as_ref().map_or_else(|| watch::Sender::new(true).subscribe(), watch::Sender::subscribe)
    }

    fn quic(&self) -> MutexGuard<'_, Option<watch::Sender<bool>>> {
        self.quic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops accepting connections; open ones drain.
    pub(crate) fn close(&self) {
        // The kernel resets connections waiting in a socket only when its last descriptor is closed.
        *self.retained_sockets() = RetainedSockets::default();
        self.closing.send_replace(true);
        self.close_quic();
        self.discourage();
    }

    /// Drains open connections; connections accepted later are closed after their first request.
    pub(crate) fn discourage(&self) {
        for chain in &self.config().chains {
            chain.remove();
        }
    }
}
