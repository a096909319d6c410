//! Stores for sessions with ids (TLS 1.2 and below).

mod layered;
mod memory;
mod remote;
mod uses;

pub use layered::Layered;
pub use memory::MemoryStore;
pub use remote::RedisStore;
pub use uses::{Claim, UseId};

use std::{future::Future, pin::Pin, sync::Arc};
use zeroize::Zeroizing;

/// A session id chosen by the server: 32 random bytes.
pub type SessionId = [u8; 32];

/// A session as serialised by the TLS library, including the master secret. Zeroised when the last copy is dropped.
pub type Session = Arc<Zeroizing<Vec<u8>>>;

/// Stores sessions and returns them until they expire.
pub trait SessionStore: Send + Sync {
    /// Looks up a session. Returns the result at once if it is known, otherwise within the store's deadline.
    fn get(&self, id: &SessionId) -> Lookup;

    /// Stores a session, if that is possible without waiting.
    fn put(&self, id: &SessionId, session: Session);

    /// Claims the single use of early data identified by `id`. Among all processes that share the store, the first
    /// gets `true`; none does if the store cannot decide.
    fn claim(&self, id: &UseId) -> Claim;

    /// Prepares the store on a thread that will use it soon.
    fn warm(&self) {}

    /// Returns the store's statistics.
    fn statistics(&self) -> StoreStatistics {
        StoreStatistics::default()
    }
}

/// The result of a lookup, immediate or pending.
pub enum Lookup {
    /// The session was found.
    Hit(Session),
    /// The session was not found.
    Miss(Miss),
    /// The lookup is in progress elsewhere.
    Pending(Pin<Box<dyn Future<Output = Result<Session, Miss>> + Send>>),
}

/// Reason that there is no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Miss {
    /// The session is not stored: it expired, was evicted, or never existed.
    Unknown,
    /// The deadline passed without a response.
    Timeout,
    /// Lookups are suspended, or the lookup failed.
    Unavailable,
    /// The stored value was not sealed by this fleet for this id.
    Damaged,
}

/// Counters since the store was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatistics {
    /// Sessions that are kept in this process.
    pub sessions: u64,
    /// Sessions written to another store.
    pub written: u64,
    /// Sessions that could not be written.
    pub lost: u64,
    /// Whether lookups are suspended because the store does not respond.
    pub suspended: bool,
}
