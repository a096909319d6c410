//! The Quadrille gateway: TLS in front, HTTP or TCP behind, and the private-key operations somewhere else.
//!
//! ```text
//!  listener                     tls                          http or tcp                     upstream
//!  socket ── accept ── filter ── handshake ───────────────── route, answer, forward ──────── server
//!  (one per       (PROXY  chain   │ certificate by SNI
//!  worker)         header)        │ key operation ──> engine
//!
//!  configuration file ─┐
//!  command line ───────┴─> config's model ──> reload: snapshot ──> listeners (swapped whole)
//! ```
//!
//! On SIGUSR2 a new process takes the listening sockets over (`handover`), and this one drains.
//!
//! Every worker thread has its own event loop, sockets and upstream pool; they share the engine and the listeners.

mod access;
mod admin;
mod admission;
mod configuration_source;
mod connection;
mod handover;
mod host_map;
mod http;
mod keyserver;
mod listener;
mod process;
mod quic;
mod reload;
mod server;
mod share;
mod tcp;
mod telemetry;
mod tls;
mod traces;
mod upstream;
mod worker;

pub use admin::{AdminPages, AdminView, Page};
pub use configuration_source::{
    ConfigurationSource, ReadConfiguration, ReopenAccessLog, SetAccessLog, WatchedFiles,
};
pub use keyserver::{KeyServerBound, serve_keys};
pub use process::background::lower_priority;
pub use reload::control::{Applied, Control, ListenerDrain, RebuiltParts, Updates, control};
pub use server::{Bound, check, serve};
pub use telemetry::{
    access_log::TARGET as ACCESS_LOG_TARGET,
    statistics::{ChainStatistics, KeyWork, ListenerStatistics, Statistics, UpstreamStatistics, key_work},
};
pub use tls::alt_names::verify_server_names;
