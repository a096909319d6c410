//! HTTP/3 beside other servers that speak it: CPU of handshakes, of requests on open connections, and of bytes.
//!
//! [`client`] runs a [`load`], on quiche; [`rounds`] measures servers in turn, and [`one_queue`] how many private-key operations
//! are computed together when clients come by TCP and by QUIC.

pub mod client;
mod connection;
pub mod load;
pub mod one_queue;
pub mod rounds;
