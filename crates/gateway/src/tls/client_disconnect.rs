//! Clients that leave while their private-key operation waits: nothing else would notice before the operation is done,
//! and under load it would be computed for nobody.

use super::handshake_state::Peer;
use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};
use tokio::io::Interest;

/// The future's output, or `None` if the client closes its side of the connection first. A handshake cannot go on
/// after that: the client still owes its Finished.
pub(super) async fn or_client_disconnect<F: Future>(peer: &Peer, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut departure = pin!(departure(peer));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => departure.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// Ends when the client has closed. It must not consume the socket's readiness: what the client has sent meanwhile is
/// read later. Out-of-band data is never asked of the kernel, so what is left of this interest is the close.
async fn departure(peer: &Peer) {
    match peer {
        Peer::Tcp(tcp) => _ = tcp.ready(Interest::PRIORITY).await,
        // A client of QUIC leaves without a word, or with one that ends the connection, and the handshake with it.
        Peer::Quic { .. } => std::future::pending().await,
    }
}
