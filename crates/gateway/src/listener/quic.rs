//! QUIC connections of a listener: admission, handshake and serving.

use super::{
    accept::OpenConnection,
    accepting_chain::AcceptingChain,
    connection_error::{self, ConnectionError},
    eviction::Occupant,
    filter_chain::{ActiveListener, ChainConfig, FilterChain, ListenerConfig},
    handshake,
    matcher::Addresses,
    serve::{self, Worker},
};
use crate::{
    admission::{ClientPlace, Holder, LoopAdmission, Place, Transfers, Visit},
    http::{self, HttpConnection},
    memory::{self, Stage},
    quic::{Closed, Code, Endpoint, Host, Link, Opening},
    telemetry::{memory::refused, metrics},
    tls::{Alert, Arrival, ChainFinder, ClientRejection, QuicTls, client_hello},
};
use std::{
    future::poll_fn,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    task::Poll,
    time::{Duration, Instant},
};
use tokio::{sync::watch, time::timeout};

/// Maximum number of handshakes in progress on one event loop without address validation. Beyond it, clients are sent
/// a Retry: a flood from spoofed addresses costs no handshakes, and other clients one round trip.
const MOST_UNPROVEN: usize = 64;

/// Time for a closed connection to send its remaining packets.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Serves an event loop's connections until the listener closes and they have ended.
pub(crate) async fn serve_datagrams(active: Arc<ActiveListener>, endpoint: Endpoint, worker: Worker) {
    let mut closing = active.quic_closing();
    let host = Listening { active, worker, closing: closing.clone(), unproven: Arc::default() };
    endpoint.run(host, async move { drop(closing.wait_for(|&closing| closing).await) }).await;
}

/// QUIC state of a listener on one event loop.
struct Listening {
    active: Arc<ActiveListener>,
    worker: Worker,
    closing: watch::Receiver<bool>,
    /// One reference for each client whose address is not validated, and our own.
    unproven: Arc<()>,
}

/// An accepted connection with its places and counters.
struct Admitted {
    active: Arc<ActiveListener>,
    newcomer: Arc<Newcomer>,
    ends: (SocketAddr, SocketAddr),
    open: (OpenConnection, Place, Option<ClientPlace>),
    closing: watch::Receiver<bool>,
    handshaking: (Place, Option<Arc<()>>),
    occupant: Arc<Occupant>,
}

/// A client whose filter chain is found by its ClientHello.
struct Newcomer {
    listener: Arc<ListenerConfig>,
    admission: Arc<LoopAdmission>,
    addresses: Addresses,
    began: Instant,
    /// Set once the ClientHello was read; `None` if no chain matches.
    found: OnceLock<Option<Found>>,
    occupant: Arc<Occupant>,
}

/// Filter chain of a connection.
#[derive(Clone)]
struct Found {
    chain: Arc<FilterChain>,
    config: Arc<ChainConfig>,
    tls: Arc<QuicTls>,
    /// ALPN protocols offered by the client, if they were inspected.
    protocols: Vec<String>,
}

impl ChainFinder for Newcomer {
    fn find(&self, hello: &[u8]) -> Result<(Arc<QuicTls>, Arc<Visit>), Alert> {
        let found = self.find_chain(hello).inspect_err(|_| _ = self.found.set(None))?;
        found.chain.counters.connections.add();
        let deadline = found.config.timeouts.handshake_deadline;
        let visit = self.admission.visit(self.addresses.client.ip(), self.began, deadline);
        self.occupant.shakes_hands(&visit);
        let tls = Arc::clone(&found.tls);
        let _ = self.found.set(Some(found));
        Ok((tls, visit))
    }
}

impl Newcomer {
    /// Finds the chain by the rules for TCP: a matching chain without HTTP/3 is not skipped for one with HTTP/3.
    fn find_chain(&self, hello: &[u8]) -> Result<Found, Alert> {
        let matcher = &self.listener.matcher;
        let (index, protocols) = match matcher.only_chain() {
            Some(only) => (Some(only), Vec::new()),
            None => {
                let hello = client_hello::read(hello);
                (matcher.find_chain(&hello, &self.addresses), hello.protocols)
            }
        };
        let chain = index.and_then(|index| self.listener.chains.get(index)).ok_or(Alert::UnrecognizedName)?;
        let config = chain.config();
        let tls = config.quic.clone().ok_or(Alert::NoApplicationProtocol)?;
        Ok(Found { chain: Arc::clone(chain), config, tls, protocols })
    }

    fn chain(&self) -> Option<&Found> {
        self.found.get()?.as_ref()
    }

    /// Counts and logs a failed connection.
    fn record(&self, failure: ConnectionError, active: &ActiveListener) {
        let only = || self.listener.chains.get(self.listener.matcher.only_chain()?);
        let chain = self.chain().map(|found| &found.chain).or_else(only);
        match (chain, &failure) {
            (Some(chain), _) => return failure.record(self.addresses.client, chain),
            (None, ConnectionError::NoChain) => active.counters.no_chain.add(),
            (None, _) => active.counters.broken.add(),
        }
        failure.log(self.addresses.client);
    }
}

impl Host for Listening {
    type Admitted = Admitted;

    fn asks_for_proof(&self) -> bool {
        Arc::strong_count(&self.unproven) > MOST_UNPROVEN || self.worker.admission.is_overloaded()
    }

    fn admit(&mut self, arrival: &Arrival<'_>) -> Option<Opening<Admitted>> {
        self.worker.admission.measure();
        let began = Instant::now();
        let active = &self.active;
        let listener = active.config();
        let start = listener.quic.as_ref()?;
        // Shut-out clients are rejected for all protocols; the kind of handshake is not known yet.
        if memory::stage() == Stage::Full {
            refused("connections");
            return None;
        }
        let is_proven = arrival.before_retry.is_some();
        let is_shut_out = is_proven
            && self.worker.admission.is_overloaded()
            && listener.knows_clients_by_address()
            && self.worker.admission.rejects(arrival.client.ip(), || None);
        if is_shut_out {
            metrics::handshake_failed("refused");
            return None;
        }
        let (client, occupant) = (arrival.client.ip(), Arc::new(Occupant::new()));
        let Some(place) = active.connections.enter(client, Arc::clone(&occupant) as Arc<dyn Holder>) else {
            metrics::datagram_dropped("limit");
            return None;
        };
        let holder = Arc::clone(&occupant) as Arc<dyn Holder>;
        let Some(handshaking) = active.handshakes.enter(client, holder) else {
            active.counters.overflow.add();
            metrics::handshake_failed("too_many_handshakes");
            return None;
        };
        let Ok(of_client) = active.clients.enter(client) else {
            active.counters.overflow.add();
            metrics::handshake_failed("too_many_connections");
            return None;
        };
        let newcomer = Arc::new(Newcomer {
            listener: Arc::clone(&listener),
            admission: Arc::clone(&self.worker.admission),
            addresses: Addresses { peer: arrival.client, client: arrival.client, local: arrival.local },
            began,
            found: OnceLock::new(),
            occupant: Arc::clone(&occupant),
        });
        let mut connection = match start.accept(arrival, Arc::clone(&newcomer) as Arc<dyn ChainFinder>) {
            Ok(connection) => connection,
            Err(error) => {
                tracing::warn!(%error, "connection lost");
                return None;
            }
        };
        // The sampling of measured handshakes is the same for all chains.
        let chain = listener.chains.first().map(|chain| chain.config());
        let marks = chain.and_then(|chain| chain.sampling.begin(connection.as_mut(), began));
        let unproven = (!is_proven).then(|| Arc::clone(&self.unproven));
        let admitted = Admitted {
            active: Arc::clone(active),
            newcomer,
            ends: (arrival.client, arrival.local),
            open: (OpenConnection::new(active), place, of_client),
            closing: self.closing.clone(),
            handshaking: (handshaking, unproven),
            occupant,
        };
        Some(Opening { connection, marks, admitted })
    }

    fn serve(&mut self, link: Link, admitted: Admitted) {
        let (worker, occupant) = (self.worker.clone(), Arc::clone(&admitted.occupant));
        // Owned by the task, which may be evicted before it runs.
        let registered = Registered(link);
        let serving = tokio::spawn(async move {
            let Registered(link) = &registered;
            serve_connection(link, admitted, &worker).await;
            let over = poll_fn(|context| link.poll_drive(context));
            let _ = timeout(LAST_WORDS, over).await;
        });
        occupant.is_served_by(serving.abort_handle());
    }
}

/// Guard that keeps a connection registered with the endpoint while it is served.
struct Registered(Link);

impl Drop for Registered {
    fn drop(&mut self) {
        self.0.forget();
    }
}

/// Serves a connection until it ends or is to be closed, and closes it.
async fn serve_connection(link: &Link, admitted: Admitted, worker: &Worker) {
    let Admitted { active, newcomer, ends, open, closing, handshaking, occupant } = admitted;
    let shaken = shake_hands(link, &newcomer).await;
    drop(handshaking);
    let failure = match (shaken, newcomer.chain()) {
        (Ok(()), Some(found)) if !link.with_tls(|ssl| found.tls.admits(ssl)) => {
            Some(ConnectionError::Rejected(ClientRejection::Pin))
        }
        (Ok(()), _) => None,
        (Err(_), None) if newcomer.found.get().is_some() => Some(ConnectionError::NoChain),
        (Err(Failure::Closed(closed)), _) => {
            Some(link.with_tls(|ssl| connection_error::classify_quic(ssl, closed)))
        }
        (Err(Failure::Timeout), _) => Some(ConnectionError::Timeout),
    };
    if let Some(failure) = failure {
        newcomer.record(failure, &active);
        return link.close(Code::NoError);
    }
    let Some(Found { chain, config, protocols, .. }) = newcomer.chain().cloned() else { return };
    let (began, addresses) = (newcomer.began, newcomer.addresses);
    // A reload may replace the listener's configuration that it refers to.
    drop(newcomer);
    metrics::quic_handshake();
    let marks = link.take_marks();
    let connection =
        link.with_tls(|ssl| handshake::complete(ssl, &chain, &config, ends, began, marks.as_ref()));
    let connection = serve::shared(connection, worker);
    if serve::may_connect(&config, &connection) {
        occupant.speaks_http(&connection);
        let chain = AcceptingChain {
            listener: active,
            chain,
            config,
            protocols,
            addresses,
            quic_closing: Some(closing),
        };
        let pool = Arc::clone(&worker.pool);
        let transfers = Transfers::new(&worker.admission, connection.client.ip());
        let connection = HttpConnection { connection, chain: Arc::new(chain), pool };
        http::serve_http3(link, connection, transfers).await;
    }
    link.close(Code::NoError);
    drop(open);
}

/// Reason for which a handshake has ended incomplete.
enum Failure {
    Closed(Closed),
    Timeout,
}

/// Completes the handshake. The listener's time limit applies until the chain is known, and then the chain's.
async fn shake_hands(link: &Link, newcomer: &Newcomer) -> Result<(), Failure> {
    let since = |limit: Duration| limit.saturating_sub(newcomer.began.elapsed());
    let known = poll_fn(|context| match link.poll_handshake(context) {
        Poll::Ready(shaken) => Poll::Ready(Some(shaken)),
        Poll::Pending if newcomer.chain().is_some() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let mut shaken = timeout(since(newcomer.listener.inspection()), known).await;
    if let (Ok(None), Some(found)) = (&shaken, newcomer.chain()) {
        let limit = since(found.config.timeouts.handshake);
        shaken = timeout(limit, poll_fn(|context| link.poll_handshake(context))).await.map(Some);
    }
    match shaken {
        Ok(Some(shaken)) => shaken.map_err(Failure::Closed),
        Ok(None) | Err(_) => Err(Failure::Timeout),
    }
}
