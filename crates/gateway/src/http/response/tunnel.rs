//! Tunnels: bytes in both directions after a request has switched to another protocol, such as WebSocket (RFC 9110
//! section 7.8 over HTTP/1.1, RFC 8441 over HTTP/2).

use crate::{
    http::{body::client_body::ClientBody, exchange::Exchange},
    http2::IncomingStream,
    tcp,
    tls::ClientStream,
    upstream::ServerStream,
};
use bytes::{Buf, Bytes};
use http::{HeaderValue, Response, StatusCode, header, response::Parts};
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A tunnel that is ready to run.
pub(crate) struct Tunnel {
    pub(crate) server: ServerStream,
    /// Data that the endpoint has sent already.
    pub(crate) ahead: Bytes,
    /// The stream of an HTTP/2 or HTTP/3 client.
    pub(crate) client: Option<ClientBody>,
    pub(crate) idle: Duration,
    pub(crate) exchange: Box<Exchange>,
}

/// Builds the response to the client after the endpoint switched protocols.
pub(crate) fn accept(head: Parts, upgrade: Option<HeaderValue>, multiplexed: bool) -> Response<()> {
    let mut response = Response::new(());
    *response.headers_mut() = head.headers;
    let headers = response.headers_mut();
    if multiplexed {
        headers.remove(header::SEC_WEBSOCKET_ACCEPT);
    } else {
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, upgrade.unwrap_or(HeaderValue::from_static("websocket")));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    }
    response
}

impl Tunnel {
    /// Copies bytes until both sides have closed, or nothing was transferred for the idle time.
    pub(crate) async fn run(self, client: impl tcp::Stream) {
        self.copy(client, |_| ()).await;
    }

    /// Runs the tunnel on a connection that carries nothing else.
    pub(crate) async fn run_alone(self, client: impl tcp::Stream) {
        let connection = Arc::clone(&self.exchange.http.connection);
        connection.clock.forward(Instant::now());
        self.copy(client, |at| connection.clock.forward(at.into_std())).await;
    }

    async fn copy(self, mut client: impl tcp::Stream, moved: impl Fn(tokio::time::Instant)) {
        let Self { server, ahead, client: _, idle, mut exchange } = self;
        let mut server = ServerBytes { ahead, stream: server };
        let copied = tcp::copy_both_ways(&mut client, &mut server, idle, moved).await;
        exchange.bytes = usize::try_from(copied.from_server).unwrap_or(usize::MAX);
    }
}

/// An endpoint's stream, preceded by data that was received already.
struct ServerBytes {
    ahead: Bytes,
    stream: ServerStream,
}

impl tcp::Stream for ServerBytes {}

impl tcp::Stream for ClientStream {
    fn sent(&self) -> u64 {
        self.sent()
    }
}

impl tcp::Stream for StreamBytes {}

impl AsyncRead for ServerBytes {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, out);
        }
        deliver(&mut self.ahead, out);
        Poll::Ready(Ok(()))
    }
}

/// Moves as many bytes as fit and returns their number.
pub(crate) fn deliver(received: &mut Bytes, out: &mut ReadBuf<'_>) -> usize {
    let count = received.len().min(out.remaining());
    out.put_slice(&received[..count]);
    received.advance(count);
    count
}

impl AsyncWrite for ServerBytes {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// An HTTP/2 stream as a byte stream in both directions.
pub(crate) struct StreamBytes {
    incoming: IncomingStream,
    received: Bytes,
    outgoing: h2::SendStream<Bytes>,
}

impl StreamBytes {
    pub(crate) fn new(incoming: IncomingStream, outgoing: h2::SendStream<Bytes>) -> Self {
        Self { incoming, received: Bytes::new(), outgoing }
    }
}

impl AsyncRead for StreamBytes {
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

impl AsyncWrite for StreamBytes {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.outgoing.reserve_capacity(bytes.len());
        let mut room = self.outgoing.capacity();
        while room == 0 {
            match ready!(self.outgoing.poll_capacity(context)) {
                Some(capacity) => room = capacity.map_err(io::Error::other)?,
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        }
        let count = room.min(bytes.len());
        let sent = self.outgoing.send_data(Bytes::copy_from_slice(&bytes[..count]), false);
        Poll::Ready(sent.map(|()| count).map_err(io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.outgoing.send_data(Bytes::new(), true).map_err(io::Error::other))
    }
}
