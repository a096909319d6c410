//! Requests on open connections, through each server to the same upstream, made by h2load.
//!
//! [`workload`] describes the requests, [`rounds`] measures them, and [`proxied`] measures the handshake of a
//! connection whose single request is forwarded to the upstream.

pub mod proxied;
pub mod rounds;
pub mod workload;
