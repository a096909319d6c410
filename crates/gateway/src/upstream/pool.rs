//! The connections of one event loop to servers: those that are idle wait here for the next request.

use super::{
    alpn::Alpn,
    cluster::Upstream,
    exchange::{ExchangeError, Limits},
    http1::{Http1Body, Http1Connection, Place, Shelf},
    http2::{Http2Body, Http2Connection, Http2Exchange},
    peer_key::PeerKey,
    request_body::RequestBody,
    server::Server,
};
use crate::connection::Connection;
use bytes::Bytes;
use futures_util::{FutureExt, future::Either};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
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

/// How long a request waits for a busy connection to come free, where there are as many as the pool may keep, before it
/// gets one of its own.
const PATIENCE: Duration = Duration::from_millis(3);

/// Between two looks for connections that are idle for too long, that were closed, or whose server is gone.
const SWEEP: Duration = Duration::from_secs(1);

/// With more servers than this, no connections are kept to those that only connections know of.
const MOST_PEERS: usize = 4096;

/// The connections of one event loop.
pub(crate) struct ConnectionPool {
    peers: Mutex<Peers>,
    /// A task looks after those that wait: one timer for all of them.
    has_impatience: AtomicBool,
}

/// Looked up several times for a request, so hashed faster than by default, and with a seed all the same.
type Peers = HashMap<PeerKey, Peer, foldhash::fast::RandomState>;

struct Peer {
    upstream: Weak<Upstream>,
    /// The one that was used last comes last.
    #[expect(clippy::vec_box, reason = "they go in and out all the time, and are large")]
    idle: Vec<Box<Http1Connection>>,
    /// HTTP/1.1 connections, idle or not.
    open: usize,
    /// Requests that wait for one, and since when.
    waiting: VecDeque<(oneshot::Sender<Box<Http1Connection>>, Instant)>,
    http2: Vec<Http2Connection>,
}

/// A connection for one request.
pub(crate) struct Lease {
    exchange: Exchange,
    /// It has carried requests before, so that its server may be about to close it.
    pub(crate) reused: bool,
}

enum Exchange {
    Http1(Box<Http1Connection>),
    Http2(Http2Exchange),
}

impl ConnectionPool {
    /// An empty pool, which a task of this event loop sweeps.
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

    /// A connection to a server for one request of this client. `fresh` asks for one that has carried none yet.
    ///
    /// # Errors
    /// As of [`Upstream::connect`].
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
            if let Some(freed) = self.queue(&key, upstream.model().pool.get())
                && let Ok(connection) = freed.await
            {
                return Ok(Lease { exchange: Exchange::Http1(connection), reused: true });
            }
        }
        // Most requests do not come here, and need no room for it.
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
        let exchange = if upstream.speaks_http2(server, &stream) {
            let connection = Http2Connection::new(stream).await?;
            let exchange = connection.exchange();
            self.keep(key, upstream, connection);
            Exchange::Http2(exchange)
        } else {
            Exchange::Http1(Http1Connection::new(stream, place))
        };
        Ok(Lease { exchange, reused: false })
    }

    /// For further exchanges. One that is not kept ends with its first.
    fn keep(&self, key: PeerKey, upstream: &Arc<Upstream>, connection: Http2Connection) {
        let mut peers = self.lock();
        let many = peers.len() > MOST_PEERS;
        let peer = peers.entry(key).or_insert_with(|| Peer::new(upstream));
        if !(many && peer.is_of_clients_choice()) {
            peer.http2.push(connection);
        }
    }

    /// A connection of its own, which returns to no pool: for an upgrade.
    ///
    /// # Errors
    /// As of [`Upstream::connect`].
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

    /// An open connection that is free.
    fn take(&self, key: &PeerKey) -> Option<Exchange> {
        loop {
            let mut peers = self.lock();
            let peer = peers.get_mut(key)?;
            if let Some(connection) = peer.http2.iter_mut().find(|connection| connection.has_room()) {
                connection.used = Instant::now();
                return Some(Exchange::Http2(connection.exchange()));
            }
            let mut connection = peer.idle.pop()?;
            // Dropping one takes the lock again.
            drop(peers);
            if connection.is_ready() {
                return Some(Exchange::Http1(connection));
            }
        }
    }

    /// A place in the queue for a connection that comes free soon, where as many are open as may be kept.
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

    /// Lets those go on without a connection that have waited for long enough, until nobody waits.
    async fn release_impatient(self: Arc<Self>) {
        loop {
            tokio::time::sleep(PATIENCE).await;
            let now = Instant::now();
            let mut anybody = false;
            for peer in self.lock().values_mut() {
                let is_patient = |(sender, since): &(oneshot::Sender<_>, Instant)| {
                    !sender.is_closed() && now.saturating_duration_since(*since) < PATIENCE
                };
                peer.waiting.retain(is_patient);
                anybody |= !peer.waiting.is_empty();
            }
            if !anybody {
                return self.has_impatience.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Closes what need not be kept.
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
            peer.http2.retain(|connection| {
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
        }
    }

    /// Whether clients decide where servers are, what they are called, or who has the connection for themselves, so that
    /// there may be any number of peers.
    fn is_of_clients_choice(&self) -> bool {
        self.upstream.upgrade().is_some_and(|upstream| {
            let model = upstream.model();
            model.original_destination.is_some()
                || model.host_from_request
                || model.proxy_protocol != ProxyProtocolOut::Off
        })
    }

    /// Gives a free connection to whoever waits for it, or keeps it; back if there are enough.
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
        // Dropping one takes the lock again.
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
    /// Sends a request, and waits for the header of its response. Informational responses before it are passed on, of
    /// HTTP/1.1.
    ///
    /// # Errors
    /// There is none, and why.
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

/// The body of a server's response.
pub(crate) enum ResponseBody {
    Http1(Http1Body),
    Http2(Http2Body),
}

impl ResponseBody {
    /// Behind a 101: the connection, and what came behind the response's header.
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
