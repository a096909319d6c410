//! Listeners: sockets, filter chains, and the path of a connection from accept to its handler.
//!
//! - `socket`, `opened_sockets`, `retained_sockets`: one socket per event loop, those of a configuration, and
//!   duplicates for a successor process.
//! - `acceptor`, `accept`: one task per connection; `packet_filter`: networks that the kernel drops; `eviction`:
//!   idle connections that close when file descriptors run short.
//! - `redirection`, `proxy_protocol`, `matcher`: the original destination, the announced client, the filter chain.
//! - `protocol_detection`, `handshake`, `serve`: from the first bytes to `http` or `tcp`; `connection_error`:
//!   failures.
//! - `quic`: the path of QUIC connections.
//! - `filter_chain`: an `ActiveListener` exists as long as its socket; a reload swaps its `ListenerConfig` with the
//!   `FilterChain`s. `accepting_chain`: a chain as one of its connections has it.

pub(crate) mod accept;
mod accepting_chain;
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
