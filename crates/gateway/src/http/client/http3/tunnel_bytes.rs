//! An HTTP/3 stream as a byte stream in both directions, after a WebSocket handshake (RFC 9220).

use crate::{
    http::response::tunnel::deliver,
    quic::{RequestBytes, ResponseStream},
    tcp,
};
use bytes::Bytes;
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The byte stream of a client.
pub(super) struct TunnelBytes {
    incoming: RequestBytes,
    received: Bytes,
    outgoing: ResponseStream,
    /// Data that was accepted for sending and waits for the client's window.
    sending: Bytes,
}

/// Maximum number of bytes accepted at a time.
const PIECE: usize = 16 * 1024;

impl TunnelBytes {
    pub(super) fn new(incoming: RequestBytes, outgoing: ResponseStream) -> Self {
        Self { incoming, received: Bytes::new(), outgoing, sending: Bytes::new() }
    }

    fn poll_sent(&mut self, context: &mut Context<'_>, last: bool) -> Poll<io::Result<()>> {
        let Self { outgoing, sending, .. } = self;
        outgoing.poll_data(context, sending, last).map_err(io::Error::other)
    }
}

impl tcp::Stream for TunnelBytes {}

impl AsyncRead for TunnelBytes {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.received.is_empty() {
            match ready!(self.incoming.poll_data(context)) {
                None => return Poll::Ready(Ok(())),
                Some(data) => self.received = data.map_err(io::Error::other)?,
            }
        }
        deliver(&mut self.received, out);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TunnelBytes {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_sent(context, false))?;
        let count = bytes.len().min(PIECE);
        self.sending = Bytes::copy_from_slice(&bytes[..count]);
        // The rest is sent with the next write or with a flush.
        if let Poll::Ready(Err(error)) = self.poll_sent(context, false) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sent(context, false)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sent(context, true)
    }
}
