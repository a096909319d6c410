//! Client connections: HTTP/1.1 and HTTP/2 over a byte stream, HTTP/3 over QUIC.
//!
//! - `http1`, `http2`, `http3`: the drivers of connections, one for each version.
//! - `shared_stream`: the stream that an HTTP library shares with its driver.
//! - `stream_resets`: detection of clients that open streams only to reset them.
//! - `drain_watch`: shutdown of a connection whose filter chain is removed.

pub(super) mod drain_watch;
pub(super) mod http1;
pub(super) mod http2;
pub(super) mod http3;
pub(super) mod shared_stream;
pub(super) mod stream_resets;
