//! TLS streams: the client stream, its write buffer, and the transport below.
//!
//! - `client_stream`: the stream that HTTP uses, with or without TLS.
//! - `write_buffer`: collects small writes into full records.
//! - `transport`: lies between BoringSSL and the socket, reads ahead, and sends when it is flushed.

pub(super) mod client_stream;
pub(super) mod transport;
pub(super) mod write_buffer;
