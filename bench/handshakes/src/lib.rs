//! What a full TLS handshake costs the server, side by side with the servers people run today.
//!
//! ```text
//!  core 1: load (closed loop, one thread) ──TLS──> core 0: nginx · HAProxy · Envoy · Quadrille
//!            counts, latencies                              CPU clock of the process tree
//!                        └────────── rounds, interleaved: A B C D  B C D A … ──────────┘
//!                                              report (table, JSON)
//! ```
//!
//! - `quadrille_profile::load` makes handshakes and counts what the peer really did.
//! - [`rival`] knows how to configure and start each server; [`server`] keeps it running on its core.
//! - [`cpu`] and [`memory`] ask the kernel what a process tree has used.
//! - [`rounds`] and [`idle`] are the two experiments; [`report`] says what they found.

pub mod certificate;
pub mod cpu;
pub mod idle;
mod keyless;
pub mod memory;
pub mod process_tree;
pub mod report;
pub mod rival;
pub mod rounds;
pub mod scenario;
pub mod server;
pub mod statistics;
