//! Connections to control planes.

use std::{
    future::Future,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::transport::{Channel, Endpoint, Uri};

/// A connection.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A pending connection.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send>>;

/// Connector for control planes. A caller that needs TLS provides one that negotiates `h2` by ALPN.
pub trait Connect: Send + Sync {
    /// Opens a new connection.
    fn connect(&self) -> Connecting;
}

/// Plain TCP to `host:port`.
#[derive(Clone, Debug)]
pub struct Tcp(pub String);

/// A Unix socket, such as that of Istio's agent.
#[derive(Clone, Debug)]
pub struct Unix(pub PathBuf);

impl Connect for Tcp {
    fn connect(&self) -> Connecting {
        let address = self.0.clone();
        Box::pin(async move {
            let stream = tokio::net::TcpStream::connect(&address).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}

impl Connect for Unix {
    fn connect(&self) -> Connecting {
        let path = self.0.clone();
        Box::pin(async move {
            let stream = tokio::net::UnixStream::connect(&path).await;
            let stream = stream.map_err(|error| named(&path, &error))?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}

/// A control plane.
#[derive(Clone)]
pub struct ControlPlane {
    /// Name for display: its cluster's name or address.
    pub name: String,
    /// The `:authority` of requests.
    pub authority: String,
    /// Connector for its connections.
    pub connect: Arc<dyn Connect>,
    /// `initial_metadata`: headers of each stream.
    pub metadata: Vec<(String, String)>,
    /// Maximum time for a connection attempt.
    pub connect_timeout: Duration,
}

impl ControlPlane {
    /// Opens a new HTTP/2 connection.
    pub(crate) async fn channel(&self) -> Result<Channel, tonic::transport::Error> {
        let authority: http::uri::Authority =
            self.authority.parse().unwrap_or_else(|_| http::uri::Authority::from_static("xds"));
        let origin = Uri::builder().scheme("http").authority(authority).path_and_query("/").build();
        let endpoint = Endpoint::from(origin.unwrap_or_default())
            .connect_timeout(self.connect_timeout)
            // Detects a peer that vanished without closing the connection, also on an idle stream.
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true);
        endpoint.connect_with_connector(Connector(self.connect.clone())).await
    }
}

#[derive(Clone)]
struct Connector(Arc<dyn Connect>);

impl tower::Service<Uri> for Connector {
    type Response = hyper_util::rt::TokioIo<Box<dyn Io>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connecting = self.0.connect();
        Box::pin(async move { Ok(hyper_util::rt::TokioIo::new(connecting.await?)) })
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
