//! Resumption of TLS sessions by any gateway of a fleet.
//!
//! ```text
//!            one process                                  the fleet
//!  Tickets: ring of ticket keys  <── merge, publish ──>  Redis: the ring, sealed with the fleet secret
//!           (files, or rotation)
//!  SessionStore: memory          <── look up, store ──>  Redis: sessions by id, each sealed for its id
//!  Records                       <── read, write ──────>  Redis: records written by one member at a time, under a lease
//! ```
//!
//! The crate is independent of TLS: it keeps keys ([`TicketKey`], [`Ring`], [`Tickets`]) and opaque sessions
//! ([`SessionStore`]); the gateway passes both to BoringSSL. Decisions that depend on time take `now`: the [`Ring`]
//! as time since the Unix epoch, because machines must agree on it, the [`Breaker`] as an
//! [`Instant`](std::time::Instant).
//!
//! Redis is not trusted: data that was not sealed with the [`FleetSecret`] is ignored. It is not required either: if
//! it fails or misbehaves, the worst case is a full handshake.
//!
//! - `keys`: the ring and its documents, pure; `tickets`: the ring of the process and its sources; `fleet`: the
//!   ring in Redis, changed by compare-and-set.
//! - `store`: sessions by ID, in memory, in Redis, or in one before the other; `breaker` protects it.
//! - `records`: data that one member writes at a time; `secret` seals everything; `redis`: connections of each
//!   thread.

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
pub use keys::{KeyError, Ring, Schedule, Scheduled, TicketKey, UnixTime};
pub use records::{Lease, Record, Records, SILENCE, Version};
pub use redis::{Redis, RedisAddress, RedisOptions};
pub use secret::{FleetSecret, SecretError};
pub use store::{
    Claim, Layered, Lookup, MemoryStore, Miss, RedisStore, Session, SessionId, SessionStore, StoreStatistics,
    UseId,
};
pub use tickets::Tickets;
