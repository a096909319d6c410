//! The Quadrille gateway: terminates TLS, forwards HTTP or TCP, and computes private-key operations on separate
//! threads.
//!
//! ```text
//!  listener                     tls                          http or tcp                     upstream
//!  socket ── accept ── filter ── handshake ───────────────── route, respond, forward ─────── endpoint
//!  (one per       (PROXY  chain   │ certificate by SNI
//!  worker)         header)        │ key operation ──> engine
//!
//!  configuration file ─┐
//!  command line ───────┴─> config's model ──> reload: snapshot ──> listeners (replaced atomically)
//! ```
//!
//! On SIGUSR2 a new process takes over the listening sockets (`handover`), and this one drains.
//!
//! Every worker thread has its own event loop, sockets and upstream pool; all share the engine and the listeners.

mod access;
mod admin;
mod admission;
mod configuration_source;
mod connection;
mod fraction;
mod handover;
mod header_list;
mod held_bytes;
mod host_map;
mod http;
mod http2;
mod keyserver;
mod listener;
mod memory;
mod process;
mod quic;
mod reload;
mod server;
mod sets;
mod tcp;
mod telemetry;
mod tls;
mod traces;
mod upstream;
mod worker;

pub use crate::http::{ExplainedRequest, ExplainedStep, RouteExplanation, explain_route};
pub use admin::{AdminPages, AdminView, Page};
pub use configuration_source::{
    ConfigurationSource, ReadConfiguration, ReopenAccessLog, SetAccessLog, WatchedFiles,
};
pub use keyserver::{KeyServerBound, serve_keys};
pub use process::background::lower_priority;
pub use reload::control::{Applied, Control, ListenerDrain, RebuiltParts, Updates, control};
pub use server::{Bound, Checked, check, serve};
pub use telemetry::{
    access_log::{LINE as ACCESS_LOG_LINE, TARGET as ACCESS_LOG_TARGET},
    log_level::LogLevel,
    statistics::{ChainStatistics, KeyWork, ListenerStatistics, Statistics, UpstreamStatistics, key_work},
};
pub use tls::certificate::alt_names::verify_server_names;
