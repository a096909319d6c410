//! Clients that leave while their private-key operation waits: nothing else would notice before the operation is done,
//! and under load it would be computed for nobody.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};
use tokio::{io::Interest, net::TcpStream};

/// The future's output, or `None` if the client closes its side of the connection first. A handshake cannot go on
/// after that: the client still owes its Finished.
pub(super) async fn or_client_disconnect<F: Future>(tcp: &TcpStream, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut departure = pin!(departure(tcp));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => departure.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// Ends when the client has closed. It must not consume the socket's readiness: what the client has sent meanwhile is
/// read later. Out-of-band data is never asked of the kernel, so what is left of this interest is the close.
async fn departure(tcp: &TcpStream) {
    let _ = tcp.ready(Interest::PRIORITY).await;
}
