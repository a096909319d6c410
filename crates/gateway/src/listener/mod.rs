//! Listeners: sockets, the filter chain that a connection belongs to, and the way of a connection from accept to what serves it.

pub(crate) mod accept;
pub(crate) mod filter_chain;
pub(crate) mod matcher;
mod preamble;
pub(crate) mod socket;
