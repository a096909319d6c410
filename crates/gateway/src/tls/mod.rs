//! TLS on BoringSSL: contexts, certificate selection, the private-key bridge to the engine, and the streams.
//!
//! - `context`: the contexts of a filter chain; `parameters`, `pem`: names of versions and groups, and PEM files.
//! - `client_hello`: parsing before the filter chain is known; `server_name`: the form of names in it.
//! - `handshake`: BoringSSL's callbacks; `handshake_state`: the state that the callbacks of one handshake share.
//! - `certificate`, `key`: certificates, and keys on key servers.
//! - `resumption`: tickets and sessions; `resumption_backend`: the ticket keys and session store of the process.
//! - `stream`, `quic`: TLS over TCP and in QUIC.

pub(crate) mod certificate;
pub(crate) mod client_hello;
mod context;
pub(crate) mod handshake;
mod handshake_state;
pub(crate) mod key;
pub(crate) mod parameters;
pub(crate) mod pem;
mod quic;
pub(crate) mod resumption;
pub(crate) mod resumption_backend;
pub(crate) mod server_name;
mod stream;

pub(crate) use context::{ChainTls, Identities};
pub(crate) use handshake::alert::Alert;
pub(crate) use handshake_state::{ClientRejection, HandshakeState, KeyFailure, ResumptionState};
pub(crate) use quic::{
    quic_start::{Arrival, ChainFinder, QuicStart},
    quic_tls::QuicTls,
};
pub(crate) use stream::{
    client_stream::{ClientStream, Inner},
    transport::Transport,
};

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

/// Runs a callback of BoringSSL. A panic would cross C frames and abort the process; it is replaced by `otherwise`,
/// and only this handshake fails.
fn contained<T>(otherwise: T, callback: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(callback)).unwrap_or(otherwise)
}

/// Returns the future's result, or `otherwise` if it panics, because it is polled below BoringSSL's frames.
async fn without_panic<T>(otherwise: T, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut otherwise = Some(otherwise);
    poll_fn(|context| {
        let poll = std::panic::AssertUnwindSafe(|| future.as_mut().poll(context));
        std::panic::catch_unwind(poll).unwrap_or_else(|_| otherwise.take().map_or(Poll::Pending, Poll::Ready))
    })
    .await
}
