//! TLS on BoringSSL: contexts, certificate selection, the private-key bridge to the engine, and the streams.

mod context;
mod departure;
mod hello;
mod key_method;
mod selection;
mod stream;
mod transport;
pub(crate) mod turn;

pub(crate) use context::ListenerTls;
pub(crate) use key_method::{KeyFailure, KeyOperation, KeyTiming};
pub(crate) use stream::TlsStream;
pub(crate) use transport::Transport;
