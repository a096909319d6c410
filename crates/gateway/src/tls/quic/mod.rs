//! TLS of QUIC connections.
//!
//! - `quic_start`: the TLS state that connections start with, until their filter chain is known.
//! - `quic_tls`: the TLS state of a filter chain.

pub(super) mod quic_start;
pub(super) mod quic_tls;
