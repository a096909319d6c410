//! Where sessions with ids (TLS 1.2 and below) are kept.

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

/// A session's id, as the server chose it: 32 random bytes.
pub type SessionId = [u8; 32];

/// A session as the TLS library serialised it, master secret included. It is wiped with the last copy.
pub type Session = Arc<Zeroizing<Vec<u8>>>;

/// Keeps sessions, and gives them back for a while.
pub trait SessionStore: Send + Sync {
    /// Asks for a session. At best the answer is there at once; else it comes within the store's deadline.
    fn get(&self, id: &SessionId) -> Lookup;

    /// Keeps a session, if that is possible without waiting.
    fn put(&self, id: &SessionId, session: Session);

    /// Claims the one use of early data that `id` stands for. Of all who share the store, the first gets `true`, and
    /// nobody if the store cannot tell.
    fn claim(&self, id: &UseId) -> Claim;

    /// Called on a thread that will ask soon.
    fn warm(&self) {}

    /// How it goes.
    fn statistics(&self) -> StoreStatistics {
        StoreStatistics::default()
    }
}

/// An answer, now or later.
pub enum Lookup {
    /// It is there.
    Hit(Session),
    /// It is not.
    Miss(Miss),
    /// Somebody else has been asked.
    Pending(Pin<Box<dyn Future<Output = Result<Session, Miss>> + Send>>),
}

/// Why there is no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Miss {
    /// Nobody has it: it expired, was pushed out, or never was.
    Unknown,
    /// No answer before the deadline.
    Timeout,
    /// Nobody is asked at the moment, or asking failed.
    Unavailable,
    /// What was there was not sealed by this fleet for this id.
    Damaged,
}

/// Counted since the store was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatistics {
    /// Sessions that are kept in this process.
    pub sessions: u64,
    /// Sessions written elsewhere.
    pub written: u64,
    /// Sessions that could not be written.
    pub lost: u64,
    /// Whether asking is suspended because nobody answers.
    pub suspended: bool,
}
