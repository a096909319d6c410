//! A connection, with TLS or without, in the form that pingora reads and writes.

use super::{Transport, early_data};
use crate::connection::Connection;
use async_trait::async_trait;
use boring::ssl::SslRef;
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, TimingDigest,
    UniqueID, UniqueIDType, raw_connect::ProxyDigest, tls::SslDigest,
};
use pingora_http::ResponseHeader;
use std::{
    any::Any,
    future::Future,
    io,
    os::fd::AsRawFd,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    time::{Sleep, sleep_until},
};
use tokio_boring::SslStream;

/// A connection over which HTTP can be spoken.
#[derive(Debug)]
pub(crate) struct ClientStream {
    inner: Inner,
    http2: bool,
    connection: Arc<Connection>,
    digests: Digests,
    /// Bytes of the HTTP/2 preface that are still to come.
    preface: usize,
    /// Set while a header is incomplete and nothing comes.
    alarm: Option<Pin<Box<Sleep>>>,
}

/// `PRI * HTTP/2.0 SM` with its line ends (RFC 9113 section 3.4).
const HTTP2_PREFACE: usize = 24;

/// What the client's bytes go through.
#[derive(Debug)]
pub(crate) enum Inner {
    Tls(SslStream<Transport>),
    Plain(Transport),
}

/// What pingora passes on to the code that sees only requests.
#[derive(Debug)]
struct Digests {
    ssl: Option<Arc<SslDigest>>,
    proxy: Arc<ProxyDigest>,
    socket: Arc<SocketDigest>,
}

impl Inner {
    fn transport(&self) -> &Transport {
        match self {
            Self::Tls(tls) => tls.get_ref(),
            Self::Plain(transport) => transport,
        }
    }

    fn ssl(&self) -> Option<&SslRef> {
        match self {
            Self::Tls(tls) => Some(tls.ssl()),
            Self::Plain(_) => None,
        }
    }
}

impl ClientStream {
    /// `http2` says what is spoken; `context` is what the code that sees only requests finds in its `ProxyDigest`.
    pub(crate) fn new(
        inner: Inner,
        connection: Arc<Connection>,
        http2: bool,
        context: Box<dyn Any + Send + Sync>,
    ) -> pingora_error::Result<Self> {
        let socket = SocketDigest::from_raw_fd(inner.transport().tcp().as_raw_fd());
        let _ = socket.peer_addr.set(Some(connection.client.into()));
        let _ = socket.local_addr.set(Some(connection.local.into()));
        let ssl = inner
            .ssl()
            .map(|_| Arc::new(SslDigest::new(connection.cipher, connection.version, None, None, Vec::new())));
        // The one slot for data of ours that reaches HTTP/2 requests too.
        let proxy = ProxyDigest::new(Box::new(ResponseHeader::build(200, Some(0))?), Some(context));
        let digests = Digests { ssl, proxy: Arc::new(proxy), socket: Arc::new(socket) };
        if http2 {
            connection.header_clock.start();
        }
        let preface = if http2 { HTTP2_PREFACE } else { 0 };
        Ok(Self { inner, http2, connection, digests, preface, alarm: None })
    }

    fn received(&mut self, count: usize) {
        let clock = &self.connection.header_clock;
        if self.preface == 0 {
            clock.bytes();
        } else {
            self.preface = self.preface.saturating_sub(count);
            if self.preface == 0 {
                clock.stop();
            }
        }
    }

    /// Nothing has come: an error once the header is overdue.
    fn poll_overdue(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(due) = self.connection.header_clock.due() else {
            self.alarm = None;
            return Poll::Pending;
        };
        let due = due.into();
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if alarm.deadline() != due {
            alarm.as_mut().reset(due);
        }
        ready!(alarm.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the request header took too long")))
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        match Pin::new(&mut self.inner).poll_read(context, out) {
            Poll::Pending => self.poll_overdue(context),
            ready => {
                self.received(out.filled().len() - before);
                if self.connection.early.load(Ordering::Relaxed) {
                    let early = self.inner.ssl().is_some_and(early_data::in_progress);
                    self.connection.early.store(early, Ordering::Relaxed);
                }
                ready
            }
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[async_trait]
impl Shutdown for ClientStream {
    async fn shutdown(&mut self) {
        if let Err(error) = AsyncWriteExt::shutdown(&mut self.inner).await {
            tracing::debug!(%error, "close_notify was not sent");
        }
    }
}

impl UniqueID for ClientStream {
    fn id(&self) -> UniqueIDType {
        self.inner.transport().tcp().as_raw_fd()
    }
}

impl Ssl for ClientStream {
    fn get_ssl(&self) -> Option<&SslRef> {
        self.inner.ssl()
    }

    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.digests.ssl.clone()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        Some(if self.http2 { ALPN::H2 } else { ALPN::H1 })
    }
}

impl GetTimingDigest for ClientStream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for ClientStream {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        Some(Arc::clone(&self.digests.proxy))
    }
}

impl GetSocketDigest for ClientStream {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        Some(Arc::clone(&self.digests.socket))
    }
}

impl Peek for ClientStream {}

impl AsyncRead for Inner {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tls(tls) => Pin::new(tls).poll_read(context, out),
            Self::Plain(transport) => Pin::new(transport).poll_read(context, out),
        }
    }
}

impl AsyncWrite for Inner {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Tls(tls) => Pin::new(tls).poll_write(context, bytes),
            Self::Plain(transport) => Pin::new(transport).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tls(tls) => Pin::new(tls).poll_flush(context),
            Self::Plain(transport) => Pin::new(transport).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(context),
            Self::Plain(transport) => Pin::new(transport).poll_shutdown(context),
        }
    }
}
