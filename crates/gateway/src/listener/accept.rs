//! From a socket to a filter chain: one task for each connection, on the event loop that accepted it.

use super::{
    acceptor::Acceptor,
    connection_error::ConnectionError,
    eviction,
    filter_chain::{AcceptingChain, ActiveListener, ChainConfig, FilterChain, ListenerConfig},
    handshake,
    proxy_protocol::{self, Ends},
    serve::{self, Worker},
};
use crate::{
    admission::InTurn,
    connection::Connection,
    process::descriptors,
    telemetry::metrics,
    tls::{Transport, client_hello},
};
use quadrille_config::model::ProxyProtocolIn;
use socket2::SockRef;
use std::{
    io,
    net::{self, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::net::TcpStream;

/// Accepts until the listener closes, and then what the kernel had already accepted.
pub(crate) async fn accept_all(active: Arc<ActiveListener>, mut acceptor: Acceptor, worker: Worker) {
    let mut closing = active.closing.subscribe();
    loop {
        let accepted = async {
            let permit = Arc::clone(&active.connections).acquire_owned().await;
            (acceptor.accept(&active).await, permit)
        };
        tokio::select! {
            (accepted, permit) = accepted => {
                let room = match accepted {
                    Ok((tcp, peer)) => {
                        let room = !worker.descriptors.is_reserved(&tcp);
                        take(tcp, peer, &active, &worker, permit.ok());
                        room
                    }
                    Err(error) => cannot_accept(&error, &worker).await,
                };
                if !room {
                    tokio::select! {
                        () = eviction::make_room(&worker.open, &worker.descriptors) => {}
                        () = async { drop(closing.wait_for(|&closing| closing).await) } => {}
                    }
                }
            },
            // Not `changed`: the drain may have begun before this task did.
            () = async { drop(closing.wait_for(|&closing| closing).await) } => break,
        }
    }
    // The kernel is asked itself: tokio only knows of connections that it was told of before this turn of its loop.
    let socket = acceptor.into_inner();
    while let Ok((tcp, peer)) = socket.accept() {
        take(tcp, peer, &active, &worker, None);
    }
}

/// Keeps a connection, or turns it away: then it has cost no place in the event loop.
fn take(
    tcp: net::TcpStream,
    peer: SocketAddr,
    active: &Arc<ActiveListener>,
    worker: &Worker,
    permit: Option<Permit>,
) {
    worker.admission.measure();
    let kept = tcp.set_nonblocking(true).and_then(|()| {
        if is_turned_away(&tcp, peer, active, worker) {
            // Reset at once, so that nothing of it is left to wait for the client.
            SockRef::from(&tcp).set_linger(Some(Duration::ZERO))?;
            return Ok(None);
        }
        TcpStream::from_std(tcp).map(Some)
    });
    match kept {
        Ok(Some(tcp)) => spawn(tcp, peer, active, worker, permit),
        Ok(None) => metrics::handshake_failed("refused"),
        Err(error) => tracing::warn!(%error, "a connection is lost"),
    }
}

fn is_turned_away(
    tcp: &net::TcpStream,
    peer: SocketAddr,
    active: &Arc<ActiveListener>,
    worker: &Worker,
) -> bool {
    if !worker.admission.is_overloaded() {
        return false;
    }
    let config = active.config();
    config.knows_clients_by_address()
        && worker.admission.turns_away(peer.ip(), || {
            client_hello::wants_full_handshake(tcp).then(|| config.waits_for_compute())
        })
}

/// Waits rather than spin; false if there are no file descriptors.
async fn cannot_accept(error: &io::Error, worker: &Worker) -> bool {
    if descriptors::are_exhausted(error) {
        return false;
    }
    if worker.descriptors.may_log(Instant::now()) {
        tracing::warn!(%error, "cannot accept a connection");
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    true
}

/// Counts one open connection for as long as it lives.
pub(super) struct OpenConnection(Arc<ActiveListener>);

impl OpenConnection {
    pub(super) fn new(active: &Arc<ActiveListener>) -> Self {
        metrics::connection_opened();
        active.counters.accepted.add();
        active.counters.active.add();
        Self(Arc::clone(active))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        metrics::connection_closed();
        self.0.counters.active.subtract();
    }
}

pub(super) type Permit = tokio::sync::OwnedSemaphorePermit;

fn spawn(
    tcp: TcpStream,
    peer: SocketAddr,
    active: &Arc<ActiveListener>,
    worker: &Worker,
    permit: Option<Permit>,
) {
    let (active, worker) = (Arc::clone(active), worker.clone());
    let here = worker.open.enter();
    let place = Arc::clone(&here.place);
    let serving = tokio::spawn(async move {
        let _open = (OpenConnection::new(&active), permit);
        let listener = active.config();
        let Ok(handshaking) = Arc::clone(&active.handshakes).try_acquire_owned() else {
            active.counters.overflow.add();
            return metrics::handshake_failed("too_many_handshakes");
        };
        let began = Instant::now();
        let Some(matched) = match_filter_chain(tcp, peer, &active, &listener, began).await else { return };
        let MatchedConnection { chain, config, protocols, transport, client, local } = matched;
        let Some(tls) = &config.tls else {
            drop(handshaking);
            let connection = Connection::plain(client, local, &config.timeouts);
            let chain = AcceptingChain { listener: active, chain, config, protocols, quic_closing: None };
            return serve::serve_plain(transport, connection, chain, &worker, &here.place).await;
        };
        let deadline = config.timeouts.handshake_deadline;
        let visit = worker.admission.visit(client.ip(), began, deadline);
        let ends = (client, local);
        let accepting = handshake::accept(transport, tls, &chain, &config, ends, began, Arc::clone(&visit));
        let shaken = InTurn::new(&visit, Box::pin(accepting));
        let limit = config.timeouts.handshake.saturating_sub(began.elapsed());
        let outcome = tokio::time::timeout(limit, shaken).await;
        drop(handshaking);
        match outcome {
            Ok(Ok((tls, connection))) => {
                let chain = AcceptingChain { listener: active, chain, config, protocols, quic_closing: None };
                serve::serve_tls(tls, connection, chain, &worker, &here.place).await;
            }
            Ok(Err(error)) => error.record(peer, &chain),
            Err(_) => ConnectionError::Timeout.record(peer, &chain),
        }
        drop((worker, here));
    });
    place.is_served_by(serving.abort_handle());
}

/// A connection of which it is known how it is served.
struct MatchedConnection {
    chain: Arc<FilterChain>,
    config: Arc<ChainConfig>,
    protocols: Vec<String>,
    transport: Transport,
    client: SocketAddr,
    local: SocketAddr,
}

/// Reads as much as it takes to know the chain.
async fn match_filter_chain(
    tcp: TcpStream,
    peer: SocketAddr,
    active: &Arc<ActiveListener>,
    listener: &ListenerConfig,
    began: Instant,
) -> Option<MatchedConnection> {
    let mut transport = Transport::new(tcp);
    let announced = listener.model.proxy_protocol == ProxyProtocolIn::Required;
    let look = async {
        let local = local_address(transport.tcp(), active.address).map_err(|_| ConnectionError::Closed)?;
        let Ends { client, local } = match announced {
            true => {
                let read = proxy_protocol::read(&mut transport, peer, local, &listener.model.trusted_proxies);
                read.await.map_err(ConnectionError::ProxyHeader)?
            }
            false => Ends { client: peer, local },
        };
        let (chain, protocols) = match listener.matcher.only_chain() {
            Some(only) => (only, Vec::new()),
            None => {
                let hello = client_hello::peek(&mut transport).await.map_err(|_| ConnectionError::Closed)?;
                let chain = listener.matcher.find_chain(&hello).ok_or(ConnectionError::NoChain)?;
                (chain, hello.protocols)
            }
        };
        let chain = listener.chains.get(chain).ok_or(ConnectionError::NoChain)?;
        Ok((Arc::clone(chain), protocols, client, local))
    };
    let nothing_to_read = !announced && listener.matcher.only_chain().is_some();
    let looked = match nothing_to_read {
        // No clock for what takes no time.
        true => look.await,
        false => {
            let limit = listener.inspection().saturating_sub(began.elapsed());
            tokio::time::timeout(limit, Box::pin(look)).await.unwrap_or(Err(ConnectionError::Timeout))
        }
    };
    match looked {
        Ok((chain, protocols, client, local)) => {
            chain.counters.connections.add();
            let config = chain.config();
            Some(MatchedConnection { chain, config, protocols, transport, client, local })
        }
        Err(error) => {
            match error {
                ConnectionError::NoChain => active.counters.no_chain.add(),
                _ => active.counters.broken.add(),
            }
            error.log(peer);
            None
        }
    }
}

/// Where the client connected to: known beforehand unless the listener is on all addresses.
fn local_address(tcp: &TcpStream, listening: SocketAddr) -> io::Result<SocketAddr> {
    if listening.ip().is_unspecified() || listening.port() == 0 { tcp.local_addr() } else { Ok(listening) }
}
