//! A TLS connection in the form that pingora reads and writes.

use super::{Transport, early};
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
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
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
    /// Bytes of the HTTP/2 preface that are still to come.
    preface: usize,
    /// Set while a header is incomplete and nothing comes.
    alarm: Option<Pin<Box<Sleep>>>,
}

/// `PRI * HTTP/2.0 SM` with its line ends (RFC 9113 section 3.4).
const HTTP2_PREFACE: usize = 24;

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
        let http2 = tls.ssl().selected_alpn_protocol() == Some(b"h2");
        if http2 {
            connection.header_clock.start();
        }
        let preface = if http2 { HTTP2_PREFACE } else { 0 };
        Ok(Self { tls, connection, digests, preface, alarm: None })
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

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        match Pin::new(&mut self.tls).poll_read(context, out) {
            Poll::Pending => self.poll_overdue(context),
            ready => {
                self.received(out.filled().len() - before);
                if self.connection.early.load(Ordering::Relaxed) {
                    self.connection.early.store(early::in_progress(self.tls.ssl()), Ordering::Relaxed);
                }
                ready
            }
        }
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
