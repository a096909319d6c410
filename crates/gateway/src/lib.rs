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

mod accept;
mod access_log;
mod admin;
mod background;
mod bind;
mod certificate;
mod choice;
mod compute;
mod connection;
mod control;
mod dashboard;
mod digest;
mod http;
mod in_force;
mod kept;
mod keyless;
mod keyserver;
mod metrics;
mod plan;
mod preamble;
mod resumption;
mod sampling;
mod server;
mod site;
mod statistics;
mod tcp;
mod tls;
mod upstream;
mod watch;
mod worker;

use quadrille_config::{self as config, model};

mod problem {
    pub(crate) use quadrille_config::Problem;
}

pub use access_log::TARGET as ACCESS_LOG_TARGET;
pub use admin::{Page, Pages, View};
pub use background::give_way;
pub use control::{Applied, Control, Made, Updates, control};
pub use keyserver::{KeyServerBound, serve_keys};
pub use server::{Bound, MoreFiles, Origin, Reread, check, serve};
pub use statistics::{ChainStatistics, ListenerStatistics, Statistics, UpstreamStatistics};
