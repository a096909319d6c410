//! The way between BoringSSL's handshake and a key exchange that is computed elsewhere.
//!
//! BoringSSL computes the server's key share inside of `SSL_do_handshake`, where nothing can wait. So it is computed
//! before: when BoringSSL asks for a certificate it has read the ClientHello, and waits as long as it takes.
//!
//! ```text
//!  select_certificate callback: ClientHello ── predict ──> ClientShare ──> the engine ──> ServerShare
//!                               "retry" ...                                                   │
//!  select_certificate callback: handshake hint  <────────────────── hand_over ────────────────┘
//!  resolve_ecdhe_secret:        takes the hint if it is of the group that it has chosen, or else computes
//! ```
//!
//! The hint belongs to the connection, and only to a handshake of TLS 1.3 in the group that it names
//! ([why like this](../../../docs/decisions/key-exchange.md)). What the engine refuses, a point of small order for
//! instance, BoringSSL gets without a hint, so that the alert is its own.

mod client_hello;
mod hint;

pub use client_hello::predict;
pub use hint::hand_over;
