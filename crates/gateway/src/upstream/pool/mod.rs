//! Connection pool of an event loop: idle connections to endpoints for further requests.
//!
//! - `opening`, `sharing`: connections to HTTP/2 servers that are being opened, for several requests.

mod opening;
mod sharing;

use super::{
    balance::server::Server,
    cluster::Upstream,
    connect::peer_key::PeerKey,
    exchange::{
        error::{ExchangeError, Limits},
        http1::{Http1Body, Http1Connection, Place, Shelf},
        http2::{Http2Body, Http2Connection, Http2Exchange, MOST_EXCHANGES},
        request_body::RequestBody,
    },
    tls::alpn::Alpn,
};
use crate::{connection::Connection, memory::Holder};
use bytes::Bytes;
use futures_util::{FutureExt, future::Either};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use opening::Openings;
use quadrille_config::model::ProxyProtocolOut;
use std::{
    collections::{HashMap, VecDeque},
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

#[cfg(test)]
mod tests;

/// Time for which a request waits for a busy connection when the pool's limit of open connections is reached, before
/// it gets a new one.
const PATIENCE: Duration = Duration::from_millis(3);

/// Interval of closing connections that have been idle too long, were closed by the peer, or whose endpoint was
/// removed.
const SWEEP: Duration = Duration::from_secs(1);

/// Number of peers beyond which no idle connections are kept for peers that depend on clients.
const MOST_PEERS: usize = 4096;

/// Connection pool of an event loop.
pub(crate) struct ConnectionPool {
    peers: Mutex<Peers>,
    /// Whether a task times out waiting requests: one timer serves all of them.
    has_impatience: AtomicBool,
}

/// Accessed several times per request, and therefore hashed faster than by default, but still with a random seed.
type Peers = HashMap<PeerKey, Peer, foldhash::fast::RandomState>;

struct Peer {
    upstream: Weak<Upstream>,
    /// Idle connections, most recently used last.
    #[expect(clippy::vec_box, reason = "they are moved often, and are large")]
    idle: Vec<Box<Http1Connection>>,
    /// Number of open HTTP/1.1 connections, idle or not.
    open: usize,
    /// Waiting requests, with the start of their wait.
    waiting: VecDeque<(oneshot::Sender<Box<Http1Connection>>, Instant)>,
    http2: Vec<Http2Connection>,
    openings: Openings,
}

/// A connection for one request.
pub(crate) struct Lease {
    exchange: Exchange,
    /// Whether it has carried requests before, so that the server may be about to close it.
    pub(crate) reused: bool,
}

enum Exchange {
    Http1(Box<Http1Connection>),
    Http2(Http2Exchange),
}

impl ConnectionPool {
    /// Creates an empty pool, which a task of this event loop sweeps.
    pub(crate) fn new() -> Arc<Self> {
        let pool = Arc::new(Self { peers: Mutex::default(), has_impatience: AtomicBool::new(false) });
        let swept = Arc::downgrade(&pool);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                let Some(pool) = swept.upgrade() else { return };
                pool.sweep(Instant::now());
            }
        });
        pool
    }

    /// Returns a connection to an endpoint for one request of this client. `fresh` requires a new one.
    ///
    /// # Errors
    /// Returns the errors of [`Upstream::connect`].
    pub(crate) async fn lease(
        self: &Arc<Self>,
        upstream: &Arc<Upstream>,
        server: &Server,
        client: &Connection,
        fresh: bool,
    ) -> io::Result<Lease> {
        let key = PeerKey::new(upstream, server, client);
        if !fresh {
            if let Some(exchange) = self.take(&key) {
                return Ok(Lease { exchange, reused: true });
            }
            if upstream.is_known_as_http2(server) {
                return Box::pin(self.share(key, upstream, server, client)).await;
            }
            if let Some(freed) = self.queue(&key, upstream.model().pool.get())
                && let Ok(connection) = freed.await
            {
                return Ok(Lease { exchange: Exchange::Http1(connection), reused: true });
            }
        }
        // Boxed, as most requests do not get here and need no memory for it.
        Box::pin(self.open(key, upstream, server, client)).await
    }

    async fn open(
        self: &Arc<Self>,
        key: PeerKey,
        upstream: &Arc<Upstream>,
        server: &Server,
        client: &Connection,
    ) -> io::Result<Lease> {
        let place = self.place(key.clone(), upstream);
        let stream = upstream.connect(server, client, upstream.alpn(server)).await?;
        let is_http2 = upstream.speaks_http2(server, &stream);
        upstream.note_protocol(is_http2);
        let exchange = if is_http2 {
            let connection = Http2Connection::new(stream).await?;
            let exchange = connection.exchange();
            self.keep(key, upstream, connection);
            Exchange::Http2(exchange)
        } else {
            Exchange::Http1(Http1Connection::new(stream, place))
        };
        Ok(Lease { exchange, reused: false })
    }

    /// Keeps a connection for further exchanges. A connection that is not kept ends with its first exchange.
    fn keep(&self, key: PeerKey, upstream: &Arc<Upstream>, connection: Http2Connection) {
        let mut peers = self.lock();
        let many = peers.len() > MOST_PEERS;
        let peer = peers.entry(key).or_insert_with(|| Peer::new(upstream));
        if !(many && peer.is_of_clients_choice()) {
            peer.http2.push(connection);
        }
    }

    /// Opens a connection that does not return to a pool, for an upgrade.
    ///
    /// # Errors
    /// Returns the errors of [`Upstream::connect`].
    pub(crate) async fn separate(
        self: &Arc<Self>,
        upstream: &Arc<Upstream>,
        server: &Server,
        client: &Connection,
    ) -> io::Result<Lease> {
        let stream = upstream.connect(server, client, Alpn::Http1).await?;
        let place = self.place_of(PeerKey::separate(server, client));
        Ok(Lease { exchange: Exchange::Http1(Http1Connection::new(stream, place)), reused: false })
    }

    fn place(self: &Arc<Self>, key: PeerKey, upstream: &Arc<Upstream>) -> Place {
        self.lock().entry(key.clone()).or_insert_with(|| Peer::new(upstream)).open += 1;
        self.place_of(key)
    }

    fn place_of(self: &Arc<Self>, key: PeerKey) -> Place {
        let pool: Weak<Self> = Arc::downgrade(self);
        Place { pool, key }
    }

    /// Takes an idle connection, or one with capacity.
    fn take(&self, key: &PeerKey) -> Option<Exchange> {
        loop {
            let mut peers = self.lock();
            let peer = peers.get_mut(key)?;
            if let Some(exchange) = peer.take_http2() {
                return Some(Exchange::Http2(exchange));
            }
            let mut connection = peer.idle.pop()?;
            // Dropping a connection takes the lock again.
            drop(peers);
            if connection.is_ready() {
                return Some(Exchange::Http1(connection));
            }
        }
    }

    /// Queues the request for a connection that becomes free soon, if the limit of open connections is reached.
    fn queue(
        self: &Arc<Self>,
        key: &PeerKey,
        most: usize,
    ) -> Option<oneshot::Receiver<Box<Http1Connection>>> {
        let mut peers = self.lock();
        let peer = peers.get_mut(key).filter(|peer| peer.open >= most)?;
        let (sender, freed) = oneshot::channel();
        peer.waiting.push_back((sender, Instant::now()));
        drop(peers);
        if !self.has_impatience.swap(true, Ordering::Relaxed) {
            tokio::spawn(Arc::clone(self).release_impatient());
        }
        Some(freed)
    }

    /// Ends the wait of requests after [`PATIENCE`], until none waits.
    async fn release_impatient(self: Arc<Self>) {
        loop {
            tokio::time::sleep(PATIENCE).await;
            let now = Instant::now();
            let mut any_peer = false;
            for peer in self.lock().values_mut() {
                let is_patient = |(sender, since): &(oneshot::Sender<_>, Instant)| {
                    !sender.is_closed() && now.saturating_duration_since(*since) < PATIENCE
                };
                peer.waiting.retain(is_patient);
                any_peer |= !peer.waiting.is_empty();
            }
            if !any_peer {
                return self.has_impatience.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Closes connections that are no longer needed.
    fn sweep(&self, now: Instant) {
        let mut closed = Vec::new();
        let mut peers = self.lock();
        peers.retain(|key, peer| {
            let upstream = peer.upstream.upgrade();
            let limit = upstream.as_ref().map_or(Duration::ZERO, |upstream| upstream.model().timeouts.idle);
            let healthy = upstream.is_some_and(|upstream| upstream.has_healthy(&key.address));
            let is_due = |since: Instant| !healthy || now.saturating_duration_since(since) >= limit;
            let (keep, close): (Vec<_>, Vec<_>) = std::mem::take(&mut peer.idle)
                .into_iter()
                .partition(|connection| !is_due(connection.idle_since));
            peer.idle = keep;
            closed.extend(close);
            peer.http2.retain_mut(|connection| {
                !connection.is_over() && (connection.exchanges() > 0 || !is_due(connection.used))
            });
            peer.open > 0 || !peer.http2.is_empty()
        });
        // Some may have been closed by their servers.
        let idle: Vec<_> = peers.values_mut().flat_map(|peer| std::mem::take(&mut peer.idle)).collect();
        drop(peers);
        drop(closed);
        for mut connection in idle {
            if connection.is_ready() {
                self.put_back(connection);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Peers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peer {
    fn new(upstream: &Arc<Upstream>) -> Self {
        Self {
            upstream: Arc::downgrade(upstream),
            idle: Vec::new(),
            open: 0,
            waiting: VecDeque::new(),
            http2: Vec::new(),
            openings: Openings::default(),
        }
    }

    /// Returns a place on an HTTP/2 connection.
    fn take_http2(&mut self) -> Option<Http2Exchange> {
        let connection = self.http2.iter_mut().find_map(|one| one.has_room().then_some(one))?;
        connection.used = Instant::now();
        Some(connection.exchange())
    }

    /// Returns the number of places on a connection to this HTTP/2 server, as far as it is known.
    fn places(&self) -> usize {
        self.http2.last().map_or(MOST_EXCHANGES as usize, Http2Connection::places)
    }

    /// Returns whether clients determine the endpoint or its name, or have exclusive connections, so that the number
    /// of peers is unlimited.
    fn is_of_clients_choice(&self) -> bool {
        self.upstream.upgrade().is_some_and(|upstream| {
            let model = upstream.model();
            model.original_destination.is_some()
                || model.host_from_request
                || model.proxy_protocol != ProxyProtocolOut::Off
        })
    }

    /// Passes a free connection to a waiting request, or keeps it; returns it if there are enough.
    fn put_back(&mut self, mut connection: Box<Http1Connection>) -> Result<(), Box<Http1Connection>> {
        while let Some((waiting, _)) = self.waiting.pop_front() {
            match waiting.send(connection) {
                Ok(()) => return Ok(()),
                Err(refused) => connection = refused,
            }
        }
        let most = self.upstream.upgrade().map_or(0, |upstream| upstream.model().pool.get());
        if self.idle.len() >= most {
            return Err(connection);
        }
        self.idle.push(connection);
        Ok(())
    }
}

impl Shelf for ConnectionPool {
    fn put_back(&self, connection: Box<Http1Connection>) {
        let mut peers = self.lock();
        let many = peers.len() > MOST_PEERS;
        let refused = match peers.get_mut(&connection.place.key) {
            Some(peer) if many && peer.is_of_clients_choice() => Err(connection),
            Some(peer) => peer.put_back(connection),
            None => Err(connection),
        };
        // Dropping a connection takes the lock again.
        drop(peers);
        drop(refused);
    }

    fn closed(&self, key: &PeerKey) {
        if let Some(peer) = self.lock().get_mut(key) {
            peer.open -= 1;
        }
    }
}

impl Lease {
    /// Sends a request, and waits for the header of its response. Informational HTTP/1.1 responses before it are
    /// forwarded.
    ///
    /// # Errors
    /// Returns the reason for a missing response.
    pub(crate) fn send(
        self,
        request: Request<RequestBody>,
        limits: Limits,
        informational: impl Fn(StatusCode, &HeaderMap),
    ) -> impl Future<Output = Result<Response<ResponseBody>, ExchangeError>> {
        match self.exchange {
            Exchange::Http1(connection) => {
                let sent = connection.send(request, limits, informational);
                Either::Left(sent.map(|sent| Ok(sent?.map(ResponseBody::Http1))))
            }
            Exchange::Http2(exchange) => {
                let sent = exchange.send(request, limits);
                Either::Right(sent.map(|sent| Ok(sent?.map(ResponseBody::Http2))))
            }
        }
    }

    pub(crate) fn is_http2(&self) -> bool {
        matches!(self.exchange, Exchange::Http2(_))
    }
}

/// Body of a response.
pub(crate) enum ResponseBody {
    Http1(Http1Body),
    Http2(Http2Body),
}

impl ResponseBody {
    /// Attributes unread data to an exchange.
    pub(crate) fn belongs_to(&self, holder: &Arc<Holder>) {
        if let Self::Http2(body) = self {
            body.belongs_to(holder);
        }
    }

    /// Returns the connection after a 101, and the data received after the response's header.
    pub(crate) fn into_stream(self) -> Option<(super::ServerStream, Bytes)> {
        match self {
            Self::Http1(body) => body.into_stream(),
            Self::Http2(_) => None,
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ExchangeError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ExchangeError>>> {
        match self.get_mut() {
            Self::Http1(body) => Pin::new(body).poll_frame(context),
            Self::Http2(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_end_stream(),
            Self::Http2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(body) => body.size_hint(),
            Self::Http2(body) => body.size_hint(),
        }
    }
}
