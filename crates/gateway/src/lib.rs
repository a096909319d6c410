//! The Quadrille gateway: TLS in front, HTTP or TCP behind, and the private-key operations somewhere else.
//!
//! ```text
//!  socket ── accept ── preamble ── TLS handshake ──────── HTTP (pingora-proxy) or TCP ── upstream
//!  (one per worker)   (PROXY,      │ certificate by SNI        route, answer, forward
//!                      plain HTTP)  │ key operation ──> engine
//!
//!  configuration file ─┐
//!  command line ───────┴─> model ──> plan ──> site (swapped whole on reload)
//! ```
//!
//! Every worker thread has its own event loop, sockets and upstream pool; they share the engine and the sites.

mod admin;
mod connection;
mod http;
mod keyserver;
mod listener;
mod process;
mod reload;
mod server;
mod tcp;
mod telemetry;
mod tls;
mod upstream;
mod worker;

use quadrille_config::{self as config, model};

mod problem {
    pub(crate) use quadrille_config::Problem;
}

pub use admin::{Page, Pages, View};
pub use keyserver::{KeyServerBound, serve_keys};
pub use process::background::give_way;
pub use reload::control::{Applied, Control, Made, Updates, control};
pub use server::{Bound, MoreFiles, Origin, Reread, check, serve};
pub use telemetry::{
    access_log::TARGET as ACCESS_LOG_TARGET,
    statistics::{ChainStatistics, ListenerStatistics, Statistics, UpstreamStatistics},
};
