//! Connecting to endpoints: TCP, PROXY header, TLS.

use super::proxy_header::{local_header, proxy_header};
use crate::{
    connection::Connection,
    tls::Transport,
    upstream::{
        balance::server::Server,
        cluster::Upstream,
        tls::alpn::{self, Alpn},
    },
};
use quadrille_config::model::UpstreamProtocol;
use std::{
    io,
    pin::Pin,
    sync::atomic::Ordering,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
};
use tokio_boring::SslStream;

/// A connection to an endpoint, with TLS or without.
#[derive(Debug)]
pub(crate) enum ServerStream {
    Plain(TcpStream),
    /// TLS with read-ahead, which sends the records of one turn together.
    Tls(SslStream<Transport>),
}

impl Upstream {
    /// Opens a connection for a client's request, within the upstream's connect timeout.
    ///
    /// # Errors
    /// Returns `TimedOut` after the timeout, or the error of TCP or TLS.
    pub(crate) async fn connect(
        &self,
        server: &Server,
        client: &Connection,
        alpn: Alpn,
    ) -> io::Result<ServerStream> {
        let header = proxy_header(self.model.proxy_protocol, client.client, client.local);
        let connecting = self.open(server, &header, alpn, None);
        match tokio::time::timeout(self.model.timeouts.connect, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "connect timeout")),
        }
    }

    /// Opens a connection for the gateway itself, within the upstream's connect timeout. Returns whether it uses
    /// HTTP/2.
    ///
    /// # Errors
    /// Returns the errors of [`Self::connect`].
    pub(crate) async fn connect_own(&self, server: &Server) -> io::Result<(ServerStream, bool)> {
        let header = local_header(self.model.proxy_protocol);
        let opening = self.open(server, &header, self.alpn(server), None);
        let stream = match tokio::time::timeout(self.model.timeouts.connect, opening).await {
            Ok(opened) => opened?,
            Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "connect timeout")),
        };
        let is_http2 = self.speaks_http2(server, &stream);
        Ok((stream, is_http2))
    }

    /// Opens a connection that begins with this header, without a timeout. `name` replaces the name for TLS.
    pub(crate) async fn open(
        &self,
        server: &Server,
        header: &[u8],
        alpn: Alpn,
        name: Option<&str>,
    ) -> io::Result<ServerStream> {
        let mut tcp = server.address.connect(&self.model.source_addresses).await?;
        tcp.write_all(header).await?;
        match self.tls(server) {
            None => Ok(ServerStream::Plain(tcp)),
            Some(tls) => Ok(ServerStream::Tls(tls.connect(server, name, Transport::new(tcp), alpn).await?)),
        }
    }

    /// Returns the HTTP version for an endpoint, unless it is negotiated by ALPN.
    fn protocol(&self, server: &Server) -> UpstreamProtocol {
        match self.model.protocol {
            UpstreamProtocol::OfRequest if server.http2 => UpstreamProtocol::Http2,
            UpstreamProtocol::OfRequest => UpstreamProtocol::Http1,
            protocol => protocol,
        }
    }

    /// Returns the ALPN protocols for HTTP connections to an endpoint.
    pub(crate) fn alpn(&self, server: &Server) -> Alpn {
        match self.protocol(server) {
            UpstreamProtocol::Auto if self.speaks_tls(server) => Alpn::Both,
            UpstreamProtocol::Auto | UpstreamProtocol::Http1 | UpstreamProtocol::OfRequest => Alpn::Http1,
            UpstreamProtocol::Http2 => Alpn::Http2,
        }
    }

    /// Returns whether a further HTTP connection is expected to use HTTP/2: by configuration, or like the last one.
    pub(crate) fn is_known_as_http2(&self, server: &Server) -> bool {
        match self.alpn(server) {
            Alpn::Http2 => true,
            Alpn::Both => self.chose_http2.load(Ordering::Relaxed),
            Alpn::Http1 | Alpn::None => false,
        }
    }

    /// Records the protocol of an HTTP connection.
    pub(crate) fn note_protocol(&self, is_http2: bool) {
        self.chose_http2.store(is_http2, Ordering::Relaxed);
    }

    /// Returns whether an HTTP connection uses HTTP/2.
    pub(crate) fn speaks_http2(&self, server: &Server, stream: &ServerStream) -> bool {
        stream.chose_http2().unwrap_or(self.protocol(server) == UpstreamProtocol::Http2)
    }
}

impl ServerStream {
    /// Returns the number of bytes that have left the record buffer; 0 without one.
    pub(crate) fn sent(&self) -> u64 {
        match self {
            Self::Plain(_) => 0,
            Self::Tls(tls) => tls.get_ref().sent(),
        }
    }

    /// Returns whether the server has selected HTTP/2; `None` if nothing was negotiated.
    fn chose_http2(&self) -> Option<bool> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(tls) => tls.ssl().selected_alpn_protocol().and_then(alpn::is_http2),
        }
    }
}

impl AsyncRead for ServerStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(context, out),
            Self::Tls(tls) => Pin::new(tls).poll_read(context, out),
        }
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Self::Tls(tls) => Pin::new(tls).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            // A single slice is cheaper for the kernel.
            Self::Plain(tcp) => match slices {
                [only] => Pin::new(tcp).poll_write(context, only),
                several => Pin::new(tcp).poll_write_vectored(context, several),
            },
            Self::Tls(tls) => Pin::new(tls).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Self::Tls(tls) => Pin::new(tls).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(context),
        }
    }
}
