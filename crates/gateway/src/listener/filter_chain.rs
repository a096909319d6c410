//! A listener as it is served: what a reload swaps, and what stays.

use crate::{
    http::Routes,
    listener::matcher::Choice,
    model::{ChainMatch, Listener, Timeouts},
    telemetry::{
        sampling::Sampling,
        statistics::{ChainCounters, ListenerCounters, ListenerStatistics},
    },
    tls::ChainTls,
    upstream::Shares,
};
use arc_swap::ArcSwap;
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
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
    pub(crate) counters: ListenerCounters,
}

/// What a reload swaps.
pub(crate) struct Site {
    pub(crate) listener: Listener,
    /// In the model's order, the one for the others last.
    pub(crate) slots: Vec<Arc<Slot>>,
    pub(crate) choice: Choice,
}

/// One chain for as long as its listener has it: connections that it has accepted see what a reload changes of it.
pub(crate) struct Slot {
    name: String,
    accepts: ChainMatch,
    served: ArcSwap<Served>,
    gone: AtomicBool,
    pub(crate) counters: ChainCounters,
}

/// A chain as it is served.
pub(crate) struct Served {
    /// `None` is plain text.
    pub(crate) tls: Option<Arc<ChainTls>>,
    pub(crate) inside: Inside,
    pub(crate) timeouts: Timeouts,
    pub(crate) sampling: Arc<Sampling>,
}

/// What happens to what comes in.
pub(crate) enum Inside {
    Http { routes: Arc<Routes>, normalize_path: bool, merge_slashes: bool },
    Tcp(Shares),
}

/// A chain that is to be served.
pub(crate) struct Prepared {
    pub(crate) slot: Arc<Slot>,
    pub(crate) served: Arc<Served>,
}

/// What is to be served on a listener.
pub(crate) struct NewSite {
    pub(crate) listener: Listener,
    pub(crate) chains: Vec<Prepared>,
    pub(crate) choice: Choice,
}

impl Served {
    /// Whether a chain with this TLS and these contents knows the same names.
    pub(crate) fn same_names(&self, tls: Option<&Arc<ChainTls>>, inside: &Inside) -> bool {
        let same_tls = match (&self.tls, tls) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        };
        same_tls
            && match (&self.inside, inside) {
                (Inside::Http { routes: before, .. }, Inside::Http { routes: now, .. }) => {
                    Arc::ptr_eq(before.table(), now.table())
                }
                (Inside::Tcp(_), Inside::Tcp(_)) => true,
                _ => false,
            }
    }
}

impl Slot {
    pub(crate) fn new(name: &str, accepts: &ChainMatch, served: Arc<Served>) -> Self {
        Self {
            name: name.to_owned(),
            accepts: accepts.clone(),
            served: ArcSwap::new(served),
            gone: AtomicBool::new(false),
            counters: ChainCounters::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is the same chain, whatever is served on it.
    pub(crate) fn is(&self, name: &str, accepts: &ChainMatch) -> bool {
        self.name == name && self.accepts == *accepts
    }

    pub(crate) fn served(&self) -> Arc<Served> {
        self.served.load_full()
    }

    /// Whether the configuration has it no longer: its connections end when they can.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}

impl NewSite {
    /// Puts it in the place of what its chains have served.
    fn activate(self) -> Site {
        let slots = self.chains.into_iter().map(|Prepared { slot, served }| {
            slot.served.store(served);
            slot
        });
        Site { listener: self.listener, slots: slots.collect(), choice: self.choice }
    }
}

impl Site {
    /// Called on an event-loop thread that will have its handshakes.
    pub(crate) fn warm(&self) {
        let tls = self.slots.iter().find_map(|slot| slot.served().tls.clone());
        if let Some(tls) = tls {
            tls.resumption().warm();
        }
    }

    /// How long it may take to know which chain a connection belongs to.
    pub(crate) fn inspection(&self) -> Duration {
        match &self.listener.chains[..] {
            [only] if self.choice.only().is_some() => only.timeouts.handshake,
            _ => self.listener.inspection,
        }
    }
}

impl Listening {
    pub(crate) fn new(site: NewSite) -> Self {
        let limits = &site.listener.limits;
        let permits = |limit: usize| Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
        Self {
            address: site.listener.address,
            connections: permits(limits.connections),
            handshakes: permits(limits.handshakes),
            closing: watch::Sender::new(false),
            counters: ListenerCounters::default(),
            site: ArcSwap::from_pointee(site.activate()),
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

    pub(crate) fn renew(&self, site: NewSite) {
        let before = self.site();
        let site = site.activate();
        for slot in &before.slots {
            if !site.slots.iter().any(|kept| Arc::ptr_eq(kept, slot)) {
                slot.gone.store(true, Ordering::Relaxed);
            }
        }
        self.site.store(Arc::new(site));
    }

    /// What has been counted.
    pub(crate) fn statistics(&self) -> ListenerStatistics {
        let site = self.site();
        let name = &site.listener.name;
        ListenerStatistics {
            name: if name.is_empty() { self.address.to_string() } else { name.clone() },
            address: self.address.to_string(),
            accepted: self.counters.accepted.get(),
            active: self.counters.active.get(),
            no_chain: self.counters.no_chain.get(),
            overflow: self.counters.overflow.get(),
            broken: self.counters.broken.get(),
            chains: site.slots.iter().map(|slot| slot.counters.read(slot.name())).collect(),
        }
    }

    /// No more connections; those that there are end when they can.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
        for slot in &self.site().slots {
            slot.gone.store(true, Ordering::Relaxed);
        }
    }
}
