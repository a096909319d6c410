//! A TLS connection in the form that pingora reads and writes.

use super::Transport;
use crate::connection::Connection;
use async_trait::async_trait;
use boring::ssl::SslRef;
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, TimingDigest,
    UniqueID, UniqueIDType, raw_connect::ProxyDigest, tls::SslDigest,
};
use pingora_http::ResponseHeader;
use std::{
    future::Future,
    io,
    os::fd::AsRawFd,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    time::{Sleep, sleep_until},
};
use tokio_boring::SslStream;

/// A TLS connection whose handshake is done.
#[derive(Debug)]
pub(crate) struct TlsStream {
    tls: SslStream<Transport>,
    connection: Arc<Connection>,
    digests: Digests,
    /// Runs while a request's header is incomplete.
    overdue: Option<Pin<Box<Sleep>>>,
}

/// What pingora passes on to the code that sees only requests.
#[derive(Debug)]
struct Digests {
    ssl: Arc<SslDigest>,
    proxy: Arc<ProxyDigest>,
    socket: Arc<SocketDigest>,
}

impl TlsStream {
    pub(crate) fn new(tls: SslStream<Transport>, connection: Arc<Connection>) -> pingora_error::Result<Self> {
        let socket = SocketDigest::from_raw_fd(tls.get_ref().tcp().as_raw_fd());
        let _ = socket.peer_addr.set(Some(connection.client.into()));
        let _ = socket.local_addr.set(Some(connection.local.into()));
        let ssl = SslDigest::new(connection.cipher, connection.version, None, None, Vec::new());
        // The one slot for data of ours that reaches HTTP/2 requests too.
        let proxy = ProxyDigest::new(
            Box::new(ResponseHeader::build(200, Some(0))?),
            Some(Box::new(Arc::clone(&connection))),
        );
        let digests = Digests { ssl: Arc::new(ssl), proxy: Arc::new(proxy), socket: Arc::new(socket) };
        Ok(Self { tls, connection, digests, overdue: None })
    }
}

impl TlsStream {
    /// Whether a header has begun long ago; if not yet, the task wakes when it will be. There is a timer only while a
    /// header comes in pieces.
    fn is_overdue(&mut self, context: &mut Context<'_>) -> bool {
        let Some(deadline) = self.connection.header_clock.deadline() else {
            self.overdue = None;
            return false;
        };
        let timer = self.overdue.get_or_insert_with(|| Box::pin(sleep_until(deadline.into())));
        timer.as_mut().poll(context).is_ready()
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_overdue(context) {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "request header took too long")));
        }
        let before = out.filled().len();
        let poll = Pin::new(&mut self.tls).poll_read(context, out);
        if out.filled().len() > before {
            self.connection.header_clock.bytes();
        }
        poll
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tls).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_shutdown(context)
    }
}

#[async_trait]
impl Shutdown for TlsStream {
    async fn shutdown(&mut self) {
        if let Err(error) = AsyncWriteExt::shutdown(&mut self.tls).await {
            tracing::debug!(%error, "close_notify was not sent");
        }
    }
}

impl UniqueID for TlsStream {
    fn id(&self) -> UniqueIDType {
        self.tls.get_ref().tcp().as_raw_fd()
    }
}

impl Ssl for TlsStream {
    fn get_ssl(&self) -> Option<&SslRef> {
        Some(self.tls.ssl())
    }

    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        Some(Arc::clone(&self.digests.ssl))
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        match self.tls.ssl().selected_alpn_protocol() {
            Some(b"h2") => Some(ALPN::H2),
            Some(b"http/1.1") => Some(ALPN::H1),
            _ => None,
        }
    }
}

impl GetTimingDigest for TlsStream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for TlsStream {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        Some(Arc::clone(&self.digests.proxy))
    }
}

impl GetSocketDigest for TlsStream {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        Some(Arc::clone(&self.digests.socket))
    }
}

impl Peek for TlsStream {}
