//! A near store in front of a far one.

use super::{Claim, Lookup, Session, SessionId, SessionStore, StoreStatistics, UseId};
use std::sync::Arc;

/// Looks up sessions in `near` first, then in `far`. A session found in `far` is kept in `near`, because a client
/// that resumed once often does so again.
pub struct Layered<N, F> {
    near: Arc<N>,
    far: F,
}

impl<N, F> Layered<N, F> {
    /// Creates a store that looks up in this order.
    pub fn new(near: N, far: F) -> Self {
        Self { near: Arc::new(near), far }
    }
}

impl<N: SessionStore + 'static, F: SessionStore> SessionStore for Layered<N, F> {
    fn get(&self, id: &SessionId) -> Lookup {
        if let Lookup::Hit(session) = self.near.get(id) {
            return Lookup::Hit(session);
        }
        let (near, id) = (Arc::clone(&self.near), *id);
        match self.far.get(&id) {
            Lookup::Pending(asked) => Lookup::Pending(Box::pin(async move {
                asked.await.inspect(|session| near.put(&id, Arc::clone(session)))
            })),
            now => now,
        }
    }

    fn put(&self, id: &SessionId, session: Session) {
        self.near.put(id, Arc::clone(&session));
        self.far.put(id, session);
    }

    fn claim(&self, id: &UseId) -> Claim {
        self.far.claim(id)
    }

    fn warm(&self) {
        self.far.warm();
    }

    fn statistics(&self) -> StoreStatistics {
        StoreStatistics { sessions: self.near.statistics().sessions, ..self.far.statistics() }
    }
}
