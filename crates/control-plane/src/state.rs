//! What the streams, the gateway's reload and the admin pages share.

use crate::{resource_store::ResourceStore, stats::XdsStats};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The resources and the statistics of all control planes.
pub(crate) struct State {
    store: Mutex<ResourceStore>,
    pub(crate) stats: XdsStats,
}

impl State {
    pub(crate) fn new(store: ResourceStore) -> Self {
        Self { store: Mutex::new(store), stats: XdsStats::default() }
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, ResourceStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
