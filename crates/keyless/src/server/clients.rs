//! Connected clients: state shared by all connections of one client.

use super::{
    Identity, Limits,
    admission::{Bucket, BusyConnections, Shares},
    audit::Audit,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

/// Maximum number of connections of one client.
const MAX_CONNECTIONS: usize = 1024;

pub(super) struct Clients {
    pub(super) shares: Shares,
    known: Mutex<HashMap<Identity, Weak<Client>>>,
}

/// One client with all its connections.
pub(super) struct Client {
    /// Name in logs and metrics.
    pub(super) name: String,
    pub(super) busy: BusyConnections,
    pub(super) audit: Audit,
    /// Number of accepted operations without a reply.
    in_flight: AtomicUsize,
    bucket: Mutex<Option<Bucket>>,
}

impl Clients {
    pub(super) fn new(window: usize) -> Self {
        Self { shares: Shares::new(window), known: Mutex::default() }
    }

    /// Adds a connection of this client; `None` if it has too many.
    pub(super) fn enter(&self, identity: &Identity) -> Option<Arc<Client>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = known.get(identity).and_then(Weak::upgrade) {
            return (Arc::strong_count(&client) <= MAX_CONNECTIONS).then_some(client);
        }
        known.retain(|_, client| client.strong_count() > 0);
        let name = identity.to_string();
        let client = Arc::new(Client {
            audit: Audit::new(name.clone()),
            name,
            busy: BusyConnections::default(),
            in_flight: AtomicUsize::new(0),
            bucket: Mutex::default(),
        });
        known.insert(identity.clone(), Arc::downgrade(&client));
        Some(client)
    }
}

impl Client {
    /// Returns whether one more operation is within the rate.
    pub(super) fn within_rate(&self, now: Instant, limits: &Limits) -> bool {
        let Some(rate) = limits.rate else { return true };
        let mut bucket = self.bucket();
        let kept = bucket.take().filter(|bucket| bucket.rate() == rate.get() as f64);
        bucket.insert(kept.unwrap_or_else(|| Bucket::new(now, rate))).take(now)
    }

    /// Returns whether one more operation may be accepted.
    pub(super) fn has_room(&self, limits: &Limits) -> bool {
        self.in_flight.load(Ordering::Relaxed) < limits.in_flight.get()
    }

    pub(super) fn taken(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self, count: usize) {
        self.in_flight.fetch_sub(count, Ordering::Relaxed);
    }

    fn bucket(&self) -> MutexGuard<'_, Option<Bucket>> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
