//! Which connections to servers may stand for each other.

use super::{address::ServerAddress, cluster::Upstream, server::Server};
use crate::connection::Connection;
use quadrille_config::model::ProxyProtocolOut;
use std::{net::SocketAddr, sync::Arc};

/// Connections to one server that may stand for each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PeerKey {
    /// Where the upstream is in memory; the peer's weak reference keeps the place from being taken by another. What was
    /// verified by one upstream's rules must not serve another.
    upstream: usize,
    pub(super) address: ServerAddress,
    /// The host, whose name the certificate carries.
    host: Arc<str>,
    /// TLS or plain text: what came by one must not go by the other.
    transport: usize,
    /// Which version of HTTP was asked for, where requests decide it.
    http2: bool,
    /// A connection that has announced one client by a PROXY header must not carry another's requests.
    announced: Option<SocketAddr>,
}

impl PeerKey {
    /// Of this client's connections.
    pub(super) fn new(upstream: &Arc<Upstream>, server: &Server, client: &Connection) -> Self {
        let announces = upstream.model().proxy_protocol != ProxyProtocolOut::Off;
        Self {
            upstream: Arc::as_ptr(upstream).addr(),
            address: server.address.clone(),
            host: Arc::clone(&server.host),
            transport: server.transport,
            http2: server.http2,
            announced: announces.then_some(client.client),
        }
    }

    /// Of a connection that stands for no other.
    pub(super) fn separate(server: &Server, client: &Connection) -> Self {
        Self {
            upstream: 0,
            address: server.address.clone(),
            host: Arc::clone(&server.host),
            transport: server.transport,
            http2: false,
            announced: Some(client.client),
        }
    }

    /// For tests: nobody's, and to this host.
    #[cfg(test)]
    pub(super) fn of_host(host: &str) -> Self {
        Self {
            upstream: 0,
            address: SocketAddr::from(([127, 0, 0, 1], 1)).into(),
            host: host.into(),
            transport: 0,
            http2: false,
            announced: None,
        }
    }
}
