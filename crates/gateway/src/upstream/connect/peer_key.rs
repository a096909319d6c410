//! Keys of interchangeable connections to endpoints.

use crate::{
    connection::Connection,
    upstream::{address::ServerAddress, balance::server::Server, cluster::Upstream},
};
use quadrille_config::model::ProxyProtocolOut;
use std::{net::SocketAddr, sync::Arc};

/// Key of interchangeable connections to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PeerKey {
    /// Memory address of the upstream; the peer's weak reference prevents reuse of the memory. A connection verified
    /// by one upstream's rules must not be used for another.
    upstream: usize,
    pub(crate) address: ServerAddress,
    /// Host, which the certificate was verified for.
    host: Arc<str>,
    /// Index of the transport: requests for TLS must not use plaintext, and vice versa.
    transport: usize,
    /// Whether HTTP/2 is requested, if the version depends on the request.
    http2: bool,
    /// Client announced by a PROXY header, whose connection must not carry other clients' requests.
    announced: Option<SocketAddr>,
}

impl PeerKey {
    /// Returns the key for this client's connections.
    pub(crate) fn new(upstream: &Arc<Upstream>, server: &Server, client: &Connection) -> Self {
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

    /// Returns the key of a connection that is not shared.
    pub(crate) fn separate(server: &Server, client: &Connection) -> Self {
        Self {
            upstream: 0,
            address: server.address.clone(),
            host: Arc::clone(&server.host),
            transport: server.transport,
            http2: false,
            announced: Some(client.client),
        }
    }

    /// Returns a key for tests, without an upstream, for this host.
    #[cfg(test)]
    pub(crate) fn of_host(host: &str) -> Self {
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
