//! TLS sessions that any gateway of a fleet resumes.
//!
//! ```text
//!            one process                                  the fleet
//!  Tickets: ring of ticket keys  <── merge, publish ──>  Redis: the ring, sealed with the fleet secret
//!           (files, or rotation)
//!  SessionStore: memory          <── look up, store ──>  Redis: sessions by id, each sealed for its id
//!  Records                       <── read, write ──────>  Redis: what one member at a time writes, under a lease
//! ```
//!
//! It knows no TLS: it keeps keys ([`TicketKey`], [`Ring`], [`Tickets`]) and opaque sessions ([`SessionStore`]); the
//! gateway gives both to BoringSSL. What decides by time takes `now`: the [`Ring`] as time since the Unix epoch,
//! because machines must agree on it, the [`Breaker`] as an [`Instant`](std::time::Instant).
//!
//! Redis is never trusted: what comes from there was sealed by somebody with the [`FleetSecret`], or it is ignored. And
//! it is never needed: whatever it does, the worst is a full handshake.

mod breaker;
mod error;
mod fleet;
mod keys;
mod records;
mod redis;
mod secret;
mod store;
mod tickets;

pub use breaker::Breaker;
pub use error::FleetError;
pub use fleet::Fleet;
pub use keys::{KeyError, Ring, Schedule, Scheduled, TicketKey, UnixTime, unix_now};
pub use records::{Lease, Record, Records, SILENCE, Version};
pub use redis::{Redis, RedisAddress, RedisOptions};
pub use secret::{FleetSecret, SecretError};
pub use store::{
    Claim, Layered, Lookup, MemoryStore, Miss, RedisStore, Session, SessionId, SessionStore, StoreStatistics,
    UseId,
};
pub use tickets::Tickets;
