//! QUIC (RFC 9000) below HTTP/3: sockets, connection IDs, address validation, and connections, driven by quiche.
//!
//! ```text
//!  socket ── endpoint ──── table of connection ids ──── link ── request streams ── http::client::http3
//!  (one for     │  new ones, accepted by the host         │
//!  each loop)   └─ datagrams of other loops' connections   └─ datagrams, in bursts
//! ```
//!
//! quiche neither reads sockets nor starts tasks: every event loop of the gateway has its own endpoint, and every
//! connection one task on it, as with TCP.
//!
//! - `socket`, `shard`: UDP sockets, and the division of a listener between event loops.
//! - `endpoint`: dispatch by the `table` of connection IDs; `connection_id` names the event loop.
//! - `retry_token`, `amplification`: unvalidated addresses; `keys`: the root of derived keys.
//! - `forwarded`: datagrams of connections that the previous process has.
//! - `link`, `transmission`: a connection under quiche, and its output.
//! - `requests`, `streams`, `stream_state`, `priority`: requests of HTTP/3.

mod amplification;
mod connection_id;
mod endpoint;
mod forwarded;
mod keys;
mod link;
mod priority;
mod requests;
mod retry_token;
mod shard;
mod socket;
mod stream_state;
mod streams;
mod table;
mod transmission;

pub(crate) use connection_id::Lineage;
pub(crate) use endpoint::{Endpoint, Host, Opening};
pub(crate) use keys::QuicKeys;
pub(crate) use link::{Closed, Link};
pub(crate) use requests::Received;
pub(crate) use shard::{Shard, ShardHandle, shards};
pub(crate) use socket::bind_all;
pub(crate) use streams::{RequestBytes, ResponseStream, StreamError};

/// Error code of a stream or connection (RFC 9114 section 8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    NoError = 0x100,
    InternalError = 0x102,
    ExcessiveLoad = 0x107,
    RequestRejected = 0x10b,
    RequestCancelled = 0x10c,
    MessageError = 0x10e,
}

impl Code {
    fn value(self) -> u64 {
        self as u64
    }
}
