//! TLS on BoringSSL: contexts, certificate selection, the private-key bridge to the engine, and the streams.

mod context;
mod departure;
mod hello;
mod key_method;
mod returning;
mod selection;
mod stream;
mod transport;

pub(crate) use context::ListenerTls;
pub(crate) use key_method::{KeyFailure, KeyOperation, KeyTiming};
pub(crate) use returning::{Kind, Outcome, Returning};
pub(crate) use stream::TlsStream;
pub(crate) use transport::Transport;

/// Runs what BoringSSL calls back. A panic would cross C frames and abort the process; it becomes `otherwise` instead,
/// and only this handshake fails.
fn contained<T>(otherwise: T, callback: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(callback)).unwrap_or(otherwise)
}
