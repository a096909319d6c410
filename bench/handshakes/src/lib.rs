//! Cost of TLS for the server, compared with widely used servers.
//!
//! ```text
//!  core 1: load (closed loop, one thread) ──TLS──> core 0: nginx · HAProxy · Envoy · hitch · Quadrille
//!            counts, latencies                              CPU clock of the process tree
//!            plain upstream <──HTTP──────────────────  where the server forwards bytes
//!                        └────────── rounds, interleaved: A B C D  B C D A … ──────────┘
//!                                              report (page, picture, tables, JSON)
//! ```
//!
//! - `quadrille_profile::load` makes handshakes and counts the negotiated results; [`h2load`] makes requests on open
//!   connections, and cross-checks the handshakes.
//! - [`rival`] configures each server; [`contestants`] starts them, [`server`] keeps one running on its core.
//! - [`cpu`] and [`memory`] read a process tree's resource use from the kernel.
//! - [`rounds`], [`curve`], [`requests`], [`http3`], [`idle`], [`provider`], [`overload`], [`fair`] and [`cross_check`] are
//!   the experiments; [`report`] presents their results.

pub mod certificate;
pub mod contestants;
pub mod cpu;
pub mod cross_check;
pub mod curve;
pub mod fair;
pub mod h2load;
pub mod http3;
pub mod idle;
pub mod machine;
pub mod memory;
pub mod overload;
pub mod pin;
pub mod process_tree;
pub mod provider;
pub mod report;
pub mod requests;
pub mod rival;
pub mod rounds;
pub mod scenario;
pub mod server;
pub mod statistics;
pub mod throttle;
pub mod upstream;
