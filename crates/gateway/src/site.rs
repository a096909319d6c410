//! A listener as it is served: what a reload swaps, and what stays.

use crate::{http::Routes, model::Listener, sampling::Sampling, tls::ListenerTls};
use arc_swap::ArcSwap;
use std::{net::SocketAddr, sync::Arc};
use tokio::sync::{Semaphore, watch};

/// One listener for as long as its socket is open.
pub(crate) struct Listening {
    /// The address that was asked for.
    pub(crate) address: SocketAddr,
    site: ArcSwap<Site>,
    /// Connections that may still be accepted.
    pub(crate) connections: Arc<Semaphore>,
    /// Handshakes that may still begin.
    pub(crate) handshakes: Arc<Semaphore>,
    /// Becomes true when no more connections are to be accepted.
    pub(crate) closing: watch::Sender<bool>,
}

/// What a reload swaps.
pub(crate) struct Site {
    pub(crate) listener: Listener,
    pub(crate) tls: ListenerTls,
    pub(crate) routes: Routes,
    pub(crate) sampling: Sampling,
}

impl Listening {
    pub(crate) fn new(site: Site) -> Self {
        let limits = &site.listener.limits;
        let permits = |limit: usize| Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        Self {
            address: site.listener.address,
            connections: permits(limits.connections),
            handshakes: permits(limits.handshakes),
            closing: watch::Sender::new(false),
            site: ArcSwap::from_pointee(site),
        }
    }

    /// Those of `running` that a configuration with these addresses keeps, in its order. Several listeners may have
    /// the same address if the kernel chooses the port: they are kept in their order.
    pub(crate) fn kept(
        running: &[Arc<Self>],
        addresses: impl Iterator<Item = SocketAddr>,
    ) -> Vec<Option<Arc<Self>>> {
        let mut left: Vec<_> = running.iter().map(Some).collect();
        let mut keep = |address| {
            let is_it = |slot: &&mut Option<&Arc<Self>>| slot.is_some_and(|known| known.address == address);
            left.iter_mut().find(is_it).and_then(Option::take).cloned()
        };
        addresses.map(&mut keep).collect()
    }

    pub(crate) fn site(&self) -> Arc<Site> {
        self.site.load_full()
    }

    pub(crate) fn renew(&self, site: Site) {
        site.tls.activate();
        self.site.store(Arc::new(site));
    }
}
