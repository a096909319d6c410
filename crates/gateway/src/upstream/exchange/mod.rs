//! Exchanges with an endpoint over HTTP/1.1 or HTTP/2, with their errors and limits.
//!
//! - `http1`, `http2`: connections that carry exchanges.
//! - `request_body`, `upload`, `collect`: bodies sent, sent over HTTP/2, and bodies read completely.
//! - `content_length`: its checks; `grpc_call`: unary gRPC calls; `error`: errors and timeouts.

pub(super) mod collect;
mod content_length;
pub(super) mod error;
pub(crate) mod grpc_call;
pub(super) mod http1;
pub(super) mod http2;
pub(super) mod request_body;
mod upload;
