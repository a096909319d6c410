//! Connections to endpoints: how they are opened, and which requests may share one.
//!
//! - `connector`: TCP or a Unix socket, then the `proxy_header`, then TLS.
//! - `peer_key`: the properties that interchangeable connections have in common.

pub(super) mod connector;
pub(super) mod peer_key;
pub(super) mod proxy_header;
