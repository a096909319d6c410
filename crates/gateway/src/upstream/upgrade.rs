//! Connections for upgrades (WebSocket). Each serves one client and is never used again, so pingora's pool saves them no
//! handshake; their TLS is ours, and resumes.

use super::{client_tls::ClientTls, server::Server};
use async_trait::async_trait;
use pingora_core::{
    connectors::l4::Connect,
    protocols::l4::{
        socket::SocketAddr as PeerAddress,
        stream::Stream,
        virt::{VirtualSockOpt, VirtualSocket, VirtualSocketStream},
    },
};
use pingora_error::{ErrorType, OrErr, Result};
use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
};
use tokio_boring::SslStream;

/// Opens a connection with TLS inside: what pingora gets is plain.
pub(super) struct UpgradeConnector {
    pub(super) tls: Arc<ClientTls>,
    pub(super) server: Server,
    /// The PROXY header that it begins with; may be empty.
    pub(super) header: Vec<u8>,
}

impl fmt::Debug for UpgradeConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpgradeConnector({})", self.server.address)
    }
}

#[async_trait]
impl Connect for UpgradeConnector {
    async fn connect(&self, _: &PeerAddress) -> Result<Stream> {
        let connected = TcpStream::connect(self.server.address).await;
        let mut tcp = connected.or_err(ErrorType::ConnectError, "connecting upstream")?;
        tcp.set_nodelay(true).or_err(ErrorType::SocketError, "setting TCP_NODELAY")?;
        tcp.write_all(&self.header).await.or_err(ErrorType::WriteError, "writing the PROXY header")?;
        let shaken = self.tls.connect(&self.server, tcp).await;
        let tls = shaken.or_err(ErrorType::TLSHandshakeFailure, "with the upstream")?;
        Ok(Stream::from(VirtualSocketStream::new(Box::new(DecryptedStream(tls)))))
    }
}

/// A connection without its TLS.
#[derive(Debug)]
struct DecryptedStream(SslStream<TcpStream>);

impl VirtualSocket for DecryptedStream {
    /// They were set before the handshake.
    fn set_socket_option(&self, _: VirtualSockOpt) -> io::Result<()> {
        Ok(())
    }
}

impl AsyncRead for DecryptedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, out)
    }
}

impl AsyncWrite for DecryptedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
