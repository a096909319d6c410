//! State shared by the streams, the gateway's reload and the admin pages.

use crate::{refusals::Refusals, resource_store::ResourceStore, stats::XdsStats};
use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// The resources and the statistics of all control planes.
pub(crate) struct State {
    store: Mutex<ResourceStore>,
    /// Kinds of warnings that were already logged.
    warned: Mutex<BTreeSet<String>>,
    refusals: Mutex<Refusals>,
    pub(crate) stats: XdsStats,
    /// Time at which the process started to connect to control planes.
    pub(crate) started: Instant,
}

impl State {
    pub(crate) fn new(store: ResourceStore) -> Self {
        Self {
            store: Mutex::new(store),
            warned: Mutex::default(),
            refusals: Mutex::default(),
            stats: XdsStats::default(),
            started: Instant::now(),
        }
    }

    pub(crate) fn warned(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.warned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, ResourceStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
