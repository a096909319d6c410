//! Table of connection IDs of an endpoint.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Connections by ID. Clones refer to the same table.
pub(super) struct Table<T>(Arc<Mutex<HashMap<Box<[u8]>, T>>>);

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone> Table<T> {
    /// Returns the connection with this ID.
    pub(super) fn find(&self, id: &[u8]) -> Option<T> {
        self.lock().get(id).cloned()
    }

    /// Adds an ID of this connection; returns false if another connection has it.
    pub(super) fn insert(&self, id: &[u8], connection: T) -> bool {
        let mut table = self.lock();
        if table.contains_key(id) {
            return false;
        }
        table.insert(id.into(), connection);
        true
    }

    /// Removes an ID.
    pub(super) fn remove(&self, id: &[u8]) {
        // The removed value may be the last reference to a connection, which is dropped without holding the lock.
        let gone = self.lock().remove(id);
        drop(gone);
    }

    /// Returns whether there are no IDs.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<[u8]>, T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_connections() {
        let table = Table::default();
        assert!(table.insert(b"one", 1) && table.insert(b"other", 1));
        assert!(!table.clone().insert(b"one", 2), "taken");
        assert_eq!((table.find(b"one"), table.find(b"none")), (Some(1), None));
        table.remove(b"one");
        assert_eq!((table.find(b"one"), table.is_empty()), (None, false));
        table.remove(b"other");
        assert!(table.is_empty());
    }
}
