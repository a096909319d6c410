//! Detection of clients that disconnect while their private-key operation is queued. It would otherwise go unnoticed
//! until the operation completes, and under load be computed for nothing.

use crate::tls::handshake_state::Peer;
use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};
use tokio::io::Interest;

/// Returns the future's output, or `None` if the client closes its side of the connection first. A handshake cannot
/// continue after that: the client still has to send its Finished.
pub(crate) async fn or_client_disconnect<F: Future>(peer: &Peer, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut departure = pin!(departure(peer));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => departure.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// Completes when the client has closed. It must not consume the socket's readiness, as data sent meanwhile is read
/// later. Out-of-band data is not requested from the kernel, so of this interest only the close remains.
async fn departure(peer: &Peer) {
    match peer {
        Peer::Tcp(tcp) => _ = tcp.ready(Interest::PRIORITY).await,
        // A QUIC client disconnects silently, or with a frame that ends the connection and with it the handshake.
        Peer::Quic { .. } => std::future::pending().await,
    }
}
