//! Session store in memory: bounded, expiring.

use super::{Claim, Lookup, Miss, Session, SessionId, SessionStore, StoreStatistics, UseId, uses::Uses};
use moka::sync::Cache;
use std::{
    num::NonZeroUsize,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// A store in this process. When full, it evicts the least used sessions (W-TinyLFU).
pub struct MemoryStore {
    sessions: Cache<SessionId, Session>,
    uses: Mutex<Uses>,
}

/// Capacity of each generation of early-data uses, 32 bytes each.
const USES: usize = 100_000;

impl MemoryStore {
    /// Keeps up to `capacity` sessions, each for `lifetime`.
    pub fn new(capacity: NonZeroUsize, lifetime: Duration) -> Self {
        let capacity = u64::try_from(capacity.get()).unwrap_or(u64::MAX);
        let sessions = Cache::builder().max_capacity(capacity).time_to_live(lifetime).build();
        Self { sessions, uses: Mutex::new(Uses::new(USES, Instant::now())) }
    }
}

impl SessionStore for MemoryStore {
    fn get(&self, id: &SessionId) -> Lookup {
        self.sessions.get(id).map_or(Lookup::Miss(Miss::Unknown), Lookup::Hit)
    }

    fn put(&self, id: &SessionId, session: Session) {
        self.sessions.insert(*id, session);
    }

    fn claim(&self, id: &UseId) -> Claim {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        Claim::Now(uses.claim(id, Instant::now()))
    }

    fn statistics(&self) -> StoreStatistics {
        self.sessions.run_pending_tasks();
        StoreStatistics { sessions: self.sessions.entry_count(), ..StoreStatistics::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use zeroize::Zeroizing;

    fn session(byte: u8) -> Session {
        Arc::new(Zeroizing::new(vec![byte; 150]))
    }

    fn holds(store: &MemoryStore, id: u8) -> bool {
        matches!(store.get(&[id; 32]), Lookup::Hit(session) if session[0] == id)
    }

    #[test]
    fn sessions_are_kept_by_id() {
        let store = MemoryStore::new(NonZeroUsize::new(10).unwrap(), Duration::from_secs(60));
        store.put(&[1; 32], session(1));
        store.put(&[2; 32], session(2));
        assert!(holds(&store, 1) && holds(&store, 2) && !holds(&store, 3));
    }

    #[test]
    fn it_is_bounded() {
        let store = MemoryStore::new(NonZeroUsize::new(10).unwrap(), Duration::from_secs(60));
        (0..200).for_each(|id| store.put(&[id; 32], session(id)));
        assert!(store.statistics().sessions <= 10);
    }

    #[test]
    fn sessions_expire() {
        let store = MemoryStore::new(NonZeroUsize::new(10).unwrap(), Duration::from_millis(20));
        store.put(&[1; 32], session(1));
        let end = std::time::Instant::now() + Duration::from_secs(180);
        while holds(&store, 1) {
            assert!(std::time::Instant::now() < end, "it does not expire");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
