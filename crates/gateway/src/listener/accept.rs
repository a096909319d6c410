//! Accepting connections: from a socket to a filter chain. Each connection has one task, on the event loop that
//! accepted it.

use super::{
    accepting_chain::AcceptingChain,
    acceptor::{self, Acceptor},
    connection_error::ConnectionError,
    eviction::{self, Occupant, OccupiedPlace},
    filter_chain::{ActiveListener, ChainConfig, FilterChain, ListenerConfig},
    handshake,
    matcher::{Addresses, Look},
    protocol_detection,
    proxy_protocol::{self, Ends},
    redirection::Redirection,
    serve::{self, Worker},
};
use crate::{
    admission::{Holder, Place, Transfers, Yielding},
    connection::Connection,
    memory::{self, Stage},
    process::file_limits,
    telemetry::{memory::refused, metrics},
    tls::{
        Transport,
        client_hello::{self, ClientHelloInfo},
    },
};
use quadrille_config::model::ProxyProtocolIn;
use socket2::SockRef;
use std::{
    io,
    net::{self, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{net::TcpStream, sync::watch};

/// Accepts connections until the listener closes, and then those that the kernel has accepted already.
pub(crate) async fn accept_all(active: Arc<ActiveListener>, mut acceptor: Acceptor, worker: Worker) {
    let mut closing = active.closing.subscribe();
    loop {
        if memory::stage() == Stage::Full {
            refused("connections");
            tokio::select! {
                () = memory::until(|stage| stage < Stage::Full) => {}
                () = async { drop(closing.wait_for(|&closing| closing).await) } => {}
            }
        }
        tokio::select! {
            accepted = acceptor.accept(&active) => {
                let room = match accepted {
                    Ok((tcp, peer)) => {
                        let room = !worker.descriptors.is_reserved(&tcp);
                        take(tcp, peer, &active, &worker, Some(&mut closing)).await;
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
            // Unlike `changed`, this also sees a drain that began before this task.
            () = async { drop(closing.wait_for(|&closing| closing).await) } => break,
        }
    }
    // Accepts directly: tokio only knows of connections reported before this turn of its loop.
    let socket = acceptor.into_inner();
    while let Ok((tcp, peer)) = acceptor::accept(&socket) {
        take(tcp, peer, &active, &worker, None).await;
    }
}

/// Spawns a task for a connection, or closes it before it is registered with the event loop. While the listener is
/// open, waits until the connection has a place.
async fn take(
    tcp: net::TcpStream,
    peer: SocketAddr,
    active: &Arc<ActiveListener>,
    worker: &Worker,
    closing: Option<&mut watch::Receiver<bool>>,
) {
    worker.admission.measure();
    let kept = match is_turned_away(&tcp, peer, active, worker) {
        // Resets the connection at once, so that the kernel keeps no state that waits for the client.
        true => SockRef::from(&tcp).set_linger(Some(Duration::ZERO)).map(|()| None),
        false => TcpStream::from_std(tcp).map(Some),
    };
    let tcp = match kept {
        Ok(Some(tcp)) => tcp,
        Ok(None) => return metrics::handshake_failed("refused"),
        Err(error) => return tracing::warn!(%error, "connection lost"),
    };
    let here = worker.open.enter();
    let place = match closing {
        Some(closing) => wait_for_place(peer, active, &here.occupant, closing).await,
        None => None,
    };
    spawn(tcp, peer, active, worker, (here, place));
}

/// Returns a place for a connection, or `None` once the listener closes: then the kernel has accepted it already.
async fn wait_for_place(
    peer: SocketAddr,
    active: &Arc<ActiveListener>,
    occupant: &Arc<Occupant>,
    closing: &mut watch::Receiver<bool>,
) -> Option<Place> {
    let holder = Arc::clone(occupant) as Arc<dyn Holder>;
    if let Some(place) = active.connections.enter(peer.ip(), Arc::clone(&holder)) {
        return Some(place);
    }
    tokio::select! {
        place = active.connections.wait(peer.ip(), &holder) => Some(place),
        () = async { drop(closing.wait_for(|&closing| closing).await) } => None,
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
        && worker.admission.rejects(peer.ip(), || {
            client_hello::wants_full_handshake(tcp).then(|| config.waits_for_compute())
        })
}

/// Delays the next attempt instead of spinning. Returns false if file descriptors are exhausted.
async fn cannot_accept(error: &io::Error, worker: &Worker) -> bool {
    if file_limits::are_exhausted(error) {
        return false;
    }
    if let Some(omitted) = worker.descriptors.warning.is_due() {
        tracing::warn!(%error, omitted, "cannot accept a connection");
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    true
}

/// Guard that counts one open connection.
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

fn spawn(
    tcp: TcpStream,
    peer: SocketAddr,
    active: &Arc<ActiveListener>,
    worker: &Worker,
    (here, place): (OccupiedPlace, Option<Place>),
) {
    let (active, worker) = (Arc::clone(active), worker.clone());
    let occupant = Arc::clone(&here.occupant);
    let serving = tokio::spawn(async move {
        let occupant = &here.occupant;
        let redirected = active.config().model.redirected;
        let (active, redirection) = worker.destinations.arrive(&tcp, active, redirected);
        let mut open = (OpenConnection::new(&active), place);
        let listener = active.config();
        let holder = Arc::clone(occupant) as Arc<dyn Holder>;
        let Some(mut handshaking) = active.handshakes.enter(peer.ip(), holder) else {
            active.counters.overflow.add();
            return metrics::handshake_failed("too_many_handshakes");
        };
        let began = Instant::now();
        let newcomer = Newcomer { peer, redirection, began };
        let transport = Transport::accepted(tcp, Transfers::new(&worker.admission, peer.ip()));
        let Some(matched) = match_filter_chain(transport, &active, &listener, &newcomer).await else {
            return;
        };
        let MatchedConnection { chain, config, protocols, mut transport, addresses } = matched;
        let Addresses { client, local, .. } = addresses;
        let Ok(_of_client) = active.clients.enter(client.ip()) else {
            active.counters.overflow.add();
            return metrics::handshake_failed("too_many_connections");
        };
        // A proxy may have announced another client.
        let places = open.1.iter_mut().chain([&mut handshaking]);
        places.for_each(|place| place.belongs_to(client.ip()));
        transport.belongs_to(client.ip());
        let original_destination = redirection.as_ref().and_then(Redirection::server);
        let Some(tls) = &config.tls else {
            drop(handshaking);
            let mut connection = Connection::plain(client, local, &config.timeouts);
            connection.original_destination = original_destination;
            let chain = accepting_chain(active, chain, config, protocols, addresses);
            return serve::serve_plain(transport, connection, chain, &worker, occupant).await;
        };
        let deadline = config.timeouts.handshake_deadline;
        let visit = worker.admission.visit(client.ip(), began, deadline);
        occupant.shakes_hands(&visit);
        let ends = (client, local);
        let accepting = handshake::accept(transport, tls, &chain, &config, ends, began, Arc::clone(&visit));
        let shaken = Yielding::new(&visit, Box::pin(accepting));
        let limit = config.timeouts.handshake.saturating_sub(began.elapsed());
        let outcome = tokio::time::timeout(limit, shaken).await;
        drop(handshaking);
        match outcome {
            Ok(Ok((tls, mut connection))) => {
                connection.original_destination = original_destination;
                let chain = accepting_chain(active, chain, config, protocols, addresses);
                serve::serve_tls(tls, connection, chain, &worker, occupant).await;
            }
            Ok(Err(error)) => error.record(peer, &chain),
            Err(_) => ConnectionError::Timeout.record(peer, &chain),
        }
        drop((worker, here));
    });
    occupant.is_served_by(serving.abort_handle());
}

fn accepting_chain(
    listener: Arc<ActiveListener>,
    chain: Arc<FilterChain>,
    config: Arc<ChainConfig>,
    protocols: Vec<String>,
    addresses: Addresses,
) -> AcceptingChain {
    AcceptingChain { listener, chain, config, protocols, addresses, quic_closing: None }
}

/// A connection from which nothing has been read.
struct Newcomer {
    peer: SocketAddr,
    redirection: Option<Redirection>,
    began: Instant,
}

/// A connection whose filter chain is known.
struct MatchedConnection {
    chain: Arc<FilterChain>,
    config: Arc<ChainConfig>,
    protocols: Vec<String>,
    transport: Transport,
    addresses: Addresses,
}

/// Reads as much as is needed to determine the filter chain.
async fn match_filter_chain(
    mut transport: Transport,
    active: &Arc<ActiveListener>,
    listener: &ListenerConfig,
    newcomer: &Newcomer,
) -> Option<MatchedConnection> {
    let looked = find_filter_chain(&mut transport, active, listener, newcomer).await;
    match looked {
        Ok((chain, protocols, addresses)) => {
            chain.counters.connections.add();
            let config = chain.config();
            Some(MatchedConnection { chain, config, protocols, transport, addresses })
        }
        Err(error) => {
            match error {
                ConnectionError::NoChain => active.counters.no_chain.add(),
                _ => active.counters.broken.add(),
            }
            error.log(newcomer.peer);
            None
        }
    }
}

type FoundChain = (Arc<FilterChain>, Vec<String>, Addresses);

async fn find_filter_chain(
    transport: &mut Transport,
    active: &Arc<ActiveListener>,
    listener: &ListenerConfig,
    newcomer: &Newcomer,
) -> Result<FoundChain, ConnectionError> {
    let peer = newcomer.peer;
    let local = match newcomer.redirection {
        Some(redirection) => redirection.destination,
        None => local_address(transport.tcp(), active.address).map_err(|_| ConnectionError::Closed)?,
    };
    let until = newcomer.began + listener.inspection();
    let announced = listener.model.proxy_protocol == ProxyProtocolIn::Required;
    let Ends { client, local } = match announced {
        true => {
            let read = proxy_protocol::read(transport, peer, local, &listener.model.trusted_proxies);
            let read = tokio::time::timeout_at(until.into(), Box::pin(read)).await;
            read.map_err(|_| ConnectionError::Timeout)?.map_err(ConnectionError::ProxyHeader)?
        }
        false => Ends { client: peer, local },
    };
    let addresses = Addresses { peer, client, local };
    let (chain, protocols) = match listener.matcher.only_chain() {
        Some(only) => (only, Vec::new()),
        None => {
            let look = listener.matcher.look(local);
            let hello = inspect(transport, look, until, listener.model.inspection.continues).await?;
            let chain = listener.matcher.find_chain(&hello, &addresses).ok_or(ConnectionError::NoChain)?;
            (chain, hello.protocols)
        }
    };
    let chain = listener.chains.get(chain).ok_or(ConnectionError::NoChain)?;
    Ok((Arc::clone(chain), protocols, addresses))
}

/// Inspects the client's first bytes as far as `look` requires. If they are incomplete at the timeout, the connection
/// may continue as one without TLS and without known properties.
async fn inspect(
    transport: &mut Transport,
    look: Look,
    until: Instant,
    continues: bool,
) -> Result<ClientHelloInfo, ConnectionError> {
    if look.is_nothing() {
        // Avoids a timer where nothing is awaited.
        return Ok(ClientHelloInfo::default());
    }
    let looking = async {
        let mut hello = match look.tls {
            true => client_hello::peek(transport).await?,
            false => ClientHelloInfo::default(),
        };
        if look.http && !hello.tls {
            hello.protocols.extend(protocol_detection::http_version(transport).await?.map(str::to_owned));
        }
        Ok::<_, io::Error>(hello)
    };
    match tokio::time::timeout_at(until.into(), Box::pin(looking)).await {
        Ok(hello) => hello.map_err(|_| ConnectionError::Closed),
        Err(_) if continues => Ok(ClientHelloInfo::default()),
        Err(_) => Err(ConnectionError::Timeout),
    }
}

/// Returns the address that the client connected to; it is known in advance unless the listener is bound to all
/// addresses.
fn local_address(tcp: &TcpStream, listening: SocketAddr) -> io::Result<SocketAddr> {
    if listening.ip().is_unspecified() || listening.port() == 0 { tcp.local_addr() } else { Ok(listening) }
}
