//! Requests on open connections, through each server to the same upstream, made by h2load.
//!
//! [`workload`] says what is asked for, [`rounds`] measures it, and [`proxied`] measures the handshake of a connection
//! whose one request goes to the upstream.

pub mod proxied;
pub mod rounds;
pub mod workload;
