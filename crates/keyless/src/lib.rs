//! The private key on another machine.
//!
//! ```text
//!  gateway                                         key server
//!   RemoteKey + Operation ──> Client ── frames ──> Server ── policy, limits ──> engine
//!                               │ verified with the public key      │
//!   Answer (a plain future) <───┴──────── replies, any order <──────┘
//! ```
//!
//! - [`wire`]: messages to bytes and back, without I/O. The protocol is described in `wire.md` beside the sources.
//! - [`session`]: the two ends of a connection, without I/O.
//! - [`client`]: one pool for a process, a connection of each event loop to each server, failover, hedged requests.
//!   What it decides, it decides in pure state machines that take `now`.
//! - [`server`]: answers operations through the engine for clients whom a policy knows.
//!
//! It knows no TLS certificates to serve and no configuration files: those are the gateway's.

pub mod client;
mod io;
pub mod server;
pub mod session;
mod tls;
pub mod wire;

pub use quadrille_config::model::key_server::Address;
pub use tls::{Credentials, Trust};
