//! TLS on BoringSSL: contexts, certificate selection, the private-key bridge to the engine, and the streams.

pub(crate) mod acme_challenge;
pub(crate) mod alt_names;
mod before_selection;
pub(crate) mod certificate;
pub(crate) mod certificate_selection;
mod client_authentication;
mod client_capabilities;
mod client_disconnect;
pub(crate) mod client_hello;
mod context;
pub(crate) mod early_data;
mod handshake_state;
pub(crate) mod key_exchange;
mod key_method;
mod key_overflow;
pub(crate) mod parameters;
pub(crate) mod pem;
mod quic;
mod quic_start;
pub(crate) mod remote_key;
mod resumption;
pub(crate) mod resumption_backend;
mod selection;
pub(crate) mod session_clock;
mod spill;
pub(crate) mod stapling;
mod stream;
mod transport;
mod write_buffer;

pub(crate) use context::{ChainTls, Identities};
pub(crate) use handshake_state::{ClientRejection, HandshakeState, KeyFailure, ResumptionState};
pub(crate) use quic::QuicTls;
pub(crate) use quic_start::{Arrival, ChainFinder, QuicStart};
pub(crate) use selection::Alert;
pub(crate) use stream::{ClientStream, Inner};
pub(crate) use transport::Transport;

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

/// Runs what BoringSSL calls back. A panic would cross C frames and abort the process; it becomes `otherwise` instead,
/// and only this handshake fails.
fn contained<T>(otherwise: T, callback: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(callback)).unwrap_or(otherwise)
}

/// The future's result; `otherwise` if it panics, because it is polled below BoringSSL's frames.
async fn without_panic<T>(otherwise: T, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut otherwise = Some(otherwise);
    poll_fn(|context| {
        let poll = std::panic::AssertUnwindSafe(|| future.as_mut().poll(context));
        std::panic::catch_unwind(poll).unwrap_or_else(|_| otherwise.take().map_or(Poll::Pending, Poll::Ready))
    })
    .await
}
