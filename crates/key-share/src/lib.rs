//! Bridge between BoringSSL's handshake and an externally computed key exchange.
//!
//! BoringSSL computes the server's key share inside of `SSL_do_handshake`, which cannot suspend there. It is
//! therefore computed earlier: in the certificate selection callback BoringSSL has read the ClientHello, and can
//! wait.
//!
//! ```text
//!  select_certificate callback: ClientHello ── predict ──> ClientShare ──> the engine ──> ServerShare
//!                               "retry" ...                                                   │
//!  select_certificate callback: handshake hint  <────────────────── hand_over ────────────────┘
//!  resolve_ecdhe_secret:        uses the hint if it is for the chosen group, or else computes
//! ```
//!
//! The hint belongs to the connection, and only to a TLS 1.3 handshake in the group that it names
//! ([reasons](../../../docs/decisions/key-exchange.md)). If the engine rejects a share, such as a point of small
//! order, BoringSSL gets no hint, and sends its own alert.

mod client_hello;
mod hint;

pub use client_hello::predict;
pub use hint::hand_over;
