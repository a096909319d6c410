//! The keys that are served just now, and how others take their place.

use super::{keys::Keys, metrics};
use arc_swap::{ArcSwap, Guard};
use quadrille_engine::Engine;
use std::sync::{Arc, Mutex, PoisonError};

/// The keys, for all threads.
pub(super) struct KeyStore {
    engine: Engine,
    served: ArcSwap<Keys>,
    /// Of those who change the keys, or the directory: one at a time, or a key would be lost.
    changes: Mutex<()>,
}

impl KeyStore {
    /// None yet.
    pub(super) fn new(engine: Engine) -> Self {
        Self { engine, served: ArcSwap::default(), changes: Mutex::default() }
    }

    /// What is served now.
    pub(super) fn load(&self) -> Guard<Arc<Keys>> {
        self.served.load()
    }

    /// The same, to be kept.
    pub(super) fn load_full(&self) -> Arc<Keys> {
        self.served.load_full()
    }

    /// Puts other keys in the place of those that are served.
    pub(super) fn change<E>(&self, change: impl FnOnce(&Keys) -> Result<Keys, E>) -> Result<(), E> {
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = change(&self.served.load())?;
        keys.iter().for_each(|stored| self.engine.prepare(&stored.key));
        metrics::keys(keys.iter().count());
        self.served.store(Arc::new(keys));
        Ok(())
    }
}
