//! Connections to the API server, with TLS by BoringSSL.

use crate::{
    access::{Access, Identity, identity},
    stream::ApiStream,
};
use boring::{
    error::ErrorStack,
    pkey::PKey,
    ssl::{SslConnector, SslMethod},
    x509::{X509, store::X509StoreBuilder},
};
use http::{Uri, uri::Scheme};
use hyper_util::rt::TokioIo;
use kube::Config;
use socket2::{SockRef, TcpKeepalive};
use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::net::TcpStream;

/// Makes connections to the API server.
#[derive(Clone)]
pub(crate) struct ApiConnector {
    pub(crate) access: Access,
}

impl tower::Service<Uri> for ApiConnector {
    type Response = TokioIo<ApiStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let access = self.access.clone();
        Box::pin(async move {
            let connecting = tokio::time::timeout(LONGEST_ATTEMPT, connect(&access, &uri));
            let connected = connecting.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            let failed =
                |error: io::Error| io::Error::new(error.kind(), format!("connecting to {uri}: {error}"));
            connected.map(TokioIo::new).map_err(failed)
        })
    }
}

async fn connect(access: &Access, uri: &Uri) -> io::Result<ApiStream> {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let is_tls = uri.scheme() == Some(&Scheme::HTTPS);
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let tcp = TcpStream::connect((host, port)).await?;
    tcp.set_nodelay(true)?;
    // Detects a server that vanished without closing the connection.
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(PROBES).with_retries(3);
    let socket = SockRef::from(&tcp);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(LONGEST_SILENCE))?;
    if !is_tls {
        return Ok(ApiStream { io: Box::new(tcp), is_http2: false });
    }
    let config = access.read().map_err(io::Error::other)?;
    let name = config.tls_server_name.as_deref().unwrap_or(host);
    let settings = connector(&config)?.configure().map_err(opaque)?;
    let stream = tokio_boring::connect(settings, name, tcp).await;
    let stream = stream.map_err(|error| io::Error::other(format!("TLS as `{name}`: {error}")))?;
    let is_http2 = stream.ssl().selected_alpn_protocol() == Some(b"h2");
    Ok(ApiStream { io: Box::new(stream), is_http2 })
}

/// Returns the settings of TLS: the CAs of the access, or those of the system, and its client certificate.
fn connector(config: &Config) -> io::Result<SslConnector> {
    let mut builder = SslConnector::builder(SslMethod::tls()).map_err(opaque)?;
    quadrille_signature_algorithms::verify_all_servers(&mut builder).map_err(opaque)?;
    builder.set_alpn_protos(b"\x02h2\x08http/1.1").map_err(opaque)?;
    if let Some(certificates) = &config.root_cert {
        let mut store = X509StoreBuilder::new().map_err(opaque)?;
        for certificate in certificates {
            store.add_cert(X509::from_der(certificate).map_err(opaque)?).map_err(opaque)?;
        }
        builder.set_cert_store_builder(store);
    }
    if let Some(Identity { chain, key }) = identity(config)? {
        let chain = quadrille_pem::certificates(&chain);
        let chain = chain
            .map_err(|damage| io::Error::other(format!("kubeconfig: `client-certificate`: {damage}")))?;
        let mut chain = chain.into_iter();
        let own =
            chain.next().ok_or_else(|| io::Error::other("kubeconfig: `client-certificate` is empty"))?;
        builder.set_certificate(&own).map_err(opaque)?;
        for certificate in chain {
            builder.add_extra_chain_cert(certificate).map_err(opaque)?;
        }
        let key = PKey::private_key_from_pem(&key).map_err(opaque)?;
        builder.set_private_key(&key).map_err(opaque)?;
        builder.check_private_key().map_err(opaque)?;
    }
    Ok(builder.build())
}

/// Keeps the error's text, which never contains key material.
fn opaque(error: ErrorStack) -> io::Error {
    io::Error::other(error.to_string())
}

const LONGEST_ATTEMPT: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(15);
const PROBES: Duration = Duration::from_secs(5);
const LONGEST_SILENCE: Duration = Duration::from_secs(30);
