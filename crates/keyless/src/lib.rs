//! Private keys on another machine: wire protocol, client and key server.
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
//!   Decisions are made in pure state machines that take `now`.
//! - [`server`]: computes operations through the engine for the clients that a policy names.
//!
//! It handles neither server certificates nor configuration files: those belong to the gateway.

pub mod client;
mod io;
pub mod server;
pub mod session;
mod tls;
pub mod wire;

pub use quadrille_config::model::key_server::Address;
pub use tls::{ClientTrust, Credentials, Trust};
