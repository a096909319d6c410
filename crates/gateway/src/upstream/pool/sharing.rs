//! Sharing of connections to HTTP/2 servers that are being opened: requests that arrive meanwhile wait for them, instead
//! of opening one each.

use super::{ConnectionPool, Exchange, Lease, Peer, opening::Turn};
use crate::{
    connection::Connection,
    upstream::{
        balance::server::Server, cluster::Upstream, connect::peer_key::PeerKey,
        exchange::http2::Http2Exchange,
    },
};
use std::{io, sync::Arc};

/// Maximum number of connections that a request waits for. Each may turn out to have no room for it.
const ROUNDS: usize = 3;

/// Guard of a connection that a request opens. If it is abandoned, one of the waiting requests opens another.
struct OpeningGuard<'a> {
    pool: &'a ConnectionPool,
    key: &'a PeerKey,
    number: u64,
}

impl ConnectionPool {
    /// Returns a place on a connection to an HTTP/2 server that is being opened, by this request if by no other.
    pub(super) async fn share(
        self: &Arc<Self>,
        key: PeerKey,
        upstream: &Arc<Upstream>,
        server: &Server,
        client: &Connection,
    ) -> io::Result<Lease> {
        let mut rounds = 0;
        let number = loop {
            match self.turn(&key, upstream, rounds < ROUNDS) {
                Turn::Open(number) => break number,
                Turn::Wait(opened) => match opened.await {
                    Ok(Ok(exchange)) => return Ok(Lease::of_http2(exchange)),
                    Ok(Err((kind, message))) => return Err(io::Error::new(kind, message)),
                    // The connection was abandoned, or has less room than expected.
                    Err(_) => rounds += 1,
                },
            }
            if let Some(exchange) = self.take(&key) {
                return Ok(Lease { exchange, reused: true });
            }
        };
        let opening = OpeningGuard { pool: self, key: &key, number };
        let opened = self.open(key.clone(), upstream, server, client).await;
        opening.tell_waiting(opened.as_ref().err());
        opened
    }

    fn turn(&self, key: &PeerKey, upstream: &Arc<Upstream>, may_wait: bool) -> Turn {
        let mut peers = self.lock();
        let peer = peers.entry(key.clone()).or_insert_with(|| Peer::new(upstream));
        let places = peer.places();
        if may_wait { peer.openings.join(places) } else { Turn::Open(peer.openings.begin()) }
    }
}

impl OpeningGuard<'_> {
    /// Passes places on the opened connection to the waiting requests, or the error.
    fn tell_waiting(self, error: Option<&io::Error>) {
        let mut peers = self.pool.lock();
        let Some(peer) = peers.get_mut(self.key) else { return };
        for waiting in peer.openings.end(self.number) {
            // A request without a place looks for another connection.
            let opened = match error {
                None => peer.take_http2().map(Ok),
                Some(error) => Some(Err((error.kind(), error.to_string()))),
            };
            if let Some(opened) = opened {
                drop(waiting.send(opened));
            }
        }
    }
}

impl Drop for OpeningGuard<'_> {
    fn drop(&mut self) {
        if let Some(peer) = self.pool.lock().get_mut(self.key) {
            drop(peer.openings.end(self.number));
        }
    }
}

impl Lease {
    fn of_http2(exchange: Http2Exchange) -> Self {
        Self { exchange: Exchange::Http2(exchange), reused: true }
    }
}
