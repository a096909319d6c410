//! Listeners: sockets, filter chains, and the way of a connection from accept to what serves it.

pub(crate) mod accept;
pub(crate) mod acceptor;
mod connection_error;
pub(crate) mod eviction;
pub(crate) mod filter_chain;
mod handshake;
pub(crate) mod matcher;
pub(crate) mod opened_sockets;
mod packet_filter;
mod protocol_detection;
mod proxy_protocol;
pub(crate) mod quic;
pub(crate) mod redirection;
mod retained_sockets;
pub(crate) mod serve;
pub(crate) mod socket;
