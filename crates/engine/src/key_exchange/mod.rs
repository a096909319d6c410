//! Key exchange: the server's answers to clients' key shares (RFC 8446 section 4.2.8), computed in batches.
//!
//! ```text
//!  connections of one event loop ── ClientShare ──> batch of this turn ── the turn ends ──> ServerShare, to each of them
//!                                                                          │
//!             key pairs, made ahead in full passes ── each used once ──────┤
//!             X25519 secrets, in lanes from the crossover on ──────────────┤
//!             ML-KEM-768 encapsulations, one at a time ────────────────────┘
//! ```
//!
//! A share costs less than a change of thread and back, so the event loop's own thread computes the batch, and nothing is
//! shared between threads ([why](../../../docs/decisions/key-exchange.md)).

mod batch;
mod exchange;
mod key_pairs;
mod ml_kem;
mod share;
mod turn;
mod wiped_on_fork;

pub use exchange::Exchange;
pub use share::{ClientShare, Group, ServerShare};
pub(crate) use turn::{compute, push};
