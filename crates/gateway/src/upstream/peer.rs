//! How pingora reaches a server.

use super::{
    client_tls::ClientTls,
    cluster::Upstream,
    proxy_header::{ProxyHeaderConnector, proxy_header},
    server::Server,
    upgrade::UpgradeConnector,
};
use crate::{connection::Connection, process::digest::digest};
use pingora_core::{protocols::ALPN, upstreams::peer::HttpPeer};
use quadrille_config::model::{ProxyProtocolOut, UpstreamProtocol};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

impl Upstream {
    /// The peer for one request. An upgrade (WebSocket) needs HTTP/1.1.
    pub(crate) fn peer(&self, server: &Server, connection: &Connection, upgrade: bool) -> Box<HttpPeer> {
        match &self.tls {
            Some(tls) if upgrade => self.upgrading(Arc::clone(tls), server, connection),
            _ => self.pooled(server, connection, upgrade),
        }
    }

    /// A connection of its own.
    fn upgrading(&self, tls: Arc<ClientTls>, server: &Server, connection: &Connection) -> Box<HttpPeer> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut peer = HttpPeer::new(server.address, false, String::new());
        self.limit(&mut peer);
        // Should the server refuse to upgrade: not for the pool, which could not tell it from others.
        peer.options.idle_timeout = Some(Duration::ZERO);
        peer.group_key = NEXT.fetch_add(1, Ordering::Relaxed);
        let header = proxy_header(self.model.proxy_protocol, connection.client, connection.local);
        peer.options.custom_l4 = Some(Arc::new(UpgradeConnector { tls, server: server.clone(), header }));
        Box::new(peer)
    }

    fn limit(&self, peer: &mut HttpPeer) {
        let (options, timeouts) = (&mut peer.options, &self.model.timeouts);
        options.connection_timeout = Some(timeouts.connect);
        options.total_connection_timeout = Some(timeouts.connect);
        options.read_timeout = Some(timeouts.read);
        options.write_timeout = Some(timeouts.write);
        options.idle_timeout = Some(timeouts.idle);
    }

    fn pooled(&self, server: &Server, connection: &Connection, upgrade: bool) -> Box<HttpPeer> {
        let tls = self.model.tls.as_ref();
        let name = tls.and_then(|tls| tls.server_name.clone()).unwrap_or_else(|| server.host.to_string());
        let mut peer =
            HttpPeer::new(server.address, tls.is_some(), if tls.is_some() { name } else { String::new() });
        self.limit(&mut peer);
        let options = &mut peer.options;
        options.ca = self.ca.clone();
        options.alpn = match self.model.protocol {
            _ if upgrade => ALPN::H1,
            UpstreamProtocol::Auto if tls.is_some() => ALPN::H2H1,
            UpstreamProtocol::Auto | UpstreamProtocol::Http1 => ALPN::H1,
            UpstreamProtocol::Http2 => ALPN::H2,
        };
        options.verify_cert = tls.is_none_or(|tls| tls.verify);
        options.verify_hostname = tls.is_none_or(|tls| tls.verify && tls.verify_name);
        let mut announced = None;
        if self.model.proxy_protocol != ProxyProtocolOut::Off {
            let header = proxy_header(self.model.proxy_protocol, connection.client, connection.local);
            options.custom_l4 = Some(Arc::new(ProxyHeaderConnector(header)));
            announced = Some(connection.client);
        }
        // A connection that has announced one client must not carry another's requests, and one that was verified
        // against some CAs must not stand in for others: pingora's own key of the pool knows neither.
        peer.group_key = digest(&(self.ca_digest, announced));
        Box::new(peer)
    }
}
