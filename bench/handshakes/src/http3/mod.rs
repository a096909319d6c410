//! HTTP/3 compared with other servers that support it: CPU of handshakes, of requests on open connections, and of
//! bytes.
//!
//! [`client`] runs a [`load`], on quiche; [`rounds`] measures servers in turn, and [`one_queue`] the number of
//! private-key operations that are computed together with TCP and QUIC clients.

pub mod client;
mod connection;
pub mod load;
pub mod one_queue;
pub mod rounds;
