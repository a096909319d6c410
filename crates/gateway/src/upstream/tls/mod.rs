//! TLS towards endpoints: credentials, ALPN, and sessions to resume.
//!
//! `credentials` opens TLS connections, resuming `client_sessions`; `alpn` offers the protocols.

pub(super) mod alpn;
pub(super) mod client_sessions;
pub(super) mod credentials;
