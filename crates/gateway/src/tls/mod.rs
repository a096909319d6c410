//! TLS on BoringSSL: contexts, certificate selection, the private-key bridge to the engine, and the streams.

pub(crate) mod certificate;
mod client_check;
pub(crate) mod clock;
mod context;
mod departure;
pub(crate) mod early;
mod hello;
mod key_method;
pub(crate) mod opening;
pub(crate) mod remote_key;
pub(crate) mod resumption;
mod returning;
mod selection;
mod stream;
mod transport;

pub(crate) use client_check::Refusal;
pub(crate) use context::ChainTls;
pub(crate) use key_method::{KeyFailure, KeyOperation, KeyTiming};
pub(crate) use returning::{Kind, Outcome, Returning};
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
