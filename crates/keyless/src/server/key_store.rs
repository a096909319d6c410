//! Store of the served keys, which can be replaced atomically.

use super::{keys::Keys, metrics};
use arc_swap::{ArcSwap, Guard};
use quadrille_engine::Engine;
use std::sync::{Arc, Mutex, PoisonError};

/// Keys, for all threads.
pub(super) struct KeyStore {
    engine: Engine,
    served: ArcSwap<Keys>,
    /// Serialises changes of the keys or the directory; concurrent changes could lose a key.
    changes: Mutex<()>,
}

impl KeyStore {
    /// Creates an empty store.
    pub(super) fn new(engine: Engine) -> Self {
        Self { engine, served: ArcSwap::default(), changes: Mutex::default() }
    }

    /// Current keys.
    pub(super) fn load(&self) -> Guard<Arc<Keys>> {
        self.served.load()
    }

    /// Current keys, as an owned reference.
    pub(super) fn load_full(&self) -> Arc<Keys> {
        self.served.load_full()
    }

    /// Replaces the served keys.
    pub(super) fn change<E>(&self, change: impl FnOnce(&Keys) -> Result<Keys, E>) -> Result<(), E> {
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = change(&self.served.load())?;
        keys.iter().for_each(|stored| self.engine.prepare(&stored.key));
        metrics::keys(keys.iter().count());
        self.served.store(Arc::new(keys));
        Ok(())
    }
}
