//! From a socket to what is served on it: one task for each connection, on the event loop that accepted it.

use crate::{
    connection::Connection,
    http::{self, App},
    listener::{
        filter_chain::{Inside, Listening, Served, Site, Slot},
        preamble::{self, Preamble},
    },
    model::ProxyProtocolIn,
    tcp,
    telemetry::{
        metrics::{self, OpenConnection},
        sampling,
    },
    tls::{
        ChainTls, ClientStream, Inner, KeyFailure, KeyOperation, Refusal, Returning, Transport, clock, early,
        opening,
    },
};
use boring::{
    error::ErrorStack,
    ssl::{ErrorCode, NameType, Ssl, SslRef},
};
use pingora_core::{apps::ServerApp, server::ShutdownWatch};
use pingora_proxy::HttpProxy;
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};
use tokio::net::{TcpListener, TcpStream};
use tokio_boring::{SslStream, SslStreamBuilder};

/// While draining: from the end of the handshake to the first byte of the request.
const FIRST_REQUEST: Duration = Duration::from_secs(5);

/// While draining: for a client without TLS that has not said anything yet.
const LAST_FIRST_BYTES: Duration = Duration::from_secs(1);

/// What every connection of one event loop shares.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) proxy: Arc<HttpProxy<http::Proxy>>,
    /// For connections whose handshake ends when the drain has begun: `proxy` would drop them before their request.
    pub(crate) late: Arc<HttpProxy<http::Proxy>>,
    /// Becomes true when the process drains.
    pub(crate) shutdown: ShutdownWatch,
    /// Held by every connection; a drain is over when nobody holds it.
    pub(crate) _alive: tokio::sync::mpsc::Sender<()>,
}

/// Accepts until the listener closes, and then what the kernel had already accepted.
pub(crate) async fn accept_all(listening: Arc<Listening>, listener: TcpListener, worker: Worker) {
    let mut closing = listening.closing.subscribe();
    loop {
        let accepted = async {
            let permit = Arc::clone(&listening.connections).acquire_owned().await;
            (listener.accept().await, permit)
        };
        tokio::select! {
            (accepted, permit) = accepted => match accepted {
                Ok((tcp, peer)) => begin(tcp, peer, &listening, &worker, permit.ok()),
                Err(error) => cannot_accept(&error).await,
            },
            // Not `changed`: the drain may have begun before this task did.
            () = async { drop(closing.wait_for(|&closing| closing).await) } => break,
        }
    }
    // The kernel is asked itself: tokio only knows of connections that it was told of before this turn of its loop.
    let Ok(listener) = listener.into_std() else { return };
    while let Ok((tcp, peer)) = listener.accept() {
        match tcp.set_nonblocking(true).and_then(|()| TcpStream::from_std(tcp)) {
            Ok(tcp) => begin(tcp, peer, &listening, &worker, None),
            Err(error) => tracing::warn!(%error, "a connection is lost in the drain"),
        }
    }
}

/// Out of file descriptors or memory: wait for some to be freed rather than spin.
async fn cannot_accept(error: &io::Error) {
    tracing::warn!(%error, "cannot accept a connection");
    tokio::time::sleep(Duration::from_millis(50)).await;
}

type Permit = tokio::sync::OwnedSemaphorePermit;

fn begin(
    tcp: TcpStream,
    peer: SocketAddr,
    listening: &Arc<Listening>,
    worker: &Worker,
    permit: Option<Permit>,
) {
    let (listening, worker) = (Arc::clone(listening), worker.clone());
    tokio::spawn(async move {
        let _open = (OpenConnection::new(&listening), permit);
        let site = listening.site();
        let Ok(handshaking) = Arc::clone(&listening.handshakes).try_acquire_owned() else {
            listening.counters.overflow.add();
            return metrics::handshake_failed("too_many_handshakes");
        };
        let began = Instant::now();
        let Some(arrival) = arrive(tcp, peer, &listening, &site, began).await else { return };
        let Arrival { slot, served, transport, client, local } = arrival;
        let Some(tls) = &served.tls else {
            drop(handshaking);
            let connection = Connection::plain(slot, client, local, &served.timeouts);
            return serve_plain(transport, connection, &served, &worker).await;
        };
        let shaken = Box::pin(handshake(transport, tls, &slot, &served, (client, local), began));
        let limit = served.timeouts.handshake.saturating_sub(began.elapsed());
        let outcome = tokio::time::timeout(limit, shaken).await;
        drop(handshaking);
        match outcome {
            Ok(Ok((tls, connection))) => serve_tls(tls, connection, &served, &worker).await,
            Ok(Err(failure)) => failure.report(peer, &slot),
            Err(_) => Failure::Timeout.report(peer, &slot),
        }
        drop(worker);
    });
}

/// A connection of which it is known how it is served.
struct Arrival {
    slot: Arc<Slot>,
    served: Arc<Served>,
    transport: Transport,
    client: SocketAddr,
    local: SocketAddr,
}

/// Reads as much as it takes to know the chain.
async fn arrive(
    tcp: TcpStream,
    peer: SocketAddr,
    listening: &Arc<Listening>,
    site: &Site,
    began: Instant,
) -> Option<Arrival> {
    let mut transport = Transport::new(tcp);
    let announced = site.listener.proxy_protocol == ProxyProtocolIn::Required;
    let look = async {
        let local = local_address(transport.tcp(), listening.address).map_err(|_| Failure::Closed)?;
        let preamble = preamble::read(&mut transport, announced, peer, local);
        let Preamble { client, local } = preamble.await.map_err(Failure::Preamble)?;
        let chain = match site.choice.only() {
            Some(only) => only,
            None => {
                let opening = opening::look(&mut transport).await.map_err(|_| Failure::Closed)?;
                site.choice.of(&opening).ok_or(Failure::NoChain)?
            }
        };
        Ok((Arc::clone(site.slots.get(chain).ok_or(Failure::NoChain)?), client, local))
    };
    let nothing_to_read = !announced && site.choice.only().is_some();
    let looked = match nothing_to_read {
        // No clock for what takes no time.
        true => look.await,
        false => {
            let limit = site.inspection().saturating_sub(began.elapsed());
            tokio::time::timeout(limit, Box::pin(look)).await.unwrap_or(Err(Failure::Timeout))
        }
    };
    match looked {
        Ok((slot, client, local)) => {
            slot.counters.connections.add();
            let served = slot.served();
            Some(Arrival { slot, served, transport, client, local })
        }
        Err(failure) => {
            match failure {
                Failure::NoChain => listening.counters.no_chain.add(),
                _ => listening.counters.broken.add(),
            }
            failure.tell(peer);
            None
        }
    }
}

/// Why a connection came to nothing.
enum Failure {
    Timeout,
    Closed,
    NoChain,
    Preamble(preamble::Refused),
    Key(KeyFailure),
    NoCertificate(String),
    BadCertificate(String),
    Refused(Refusal),
    Tls(String),
}

impl Failure {
    /// For the books of the chain.
    fn report(self, peer: SocketAddr, slot: &Slot) {
        let counters = &slot.counters;
        counters.failures.add();
        match &self {
            Self::Timeout => counters.timeouts.add(),
            Self::Closed | Self::Key(KeyFailure::ClientLeft) => counters.closed.add(),
            Self::Key(_) => counters.key_failures.add(),
            Self::NoCertificate(_) => counters.no_certificate.add(),
            Self::BadCertificate(_) => counters.bad_certificate.add(),
            Self::Refused(Refusal::Name) => counters.bad_name.add(),
            Self::Refused(Refusal::Pin) => counters.bad_pin.add(),
            Self::NoChain | Self::Preamble(_) | Self::Tls(_) => {}
        }
        self.tell(peer);
    }

    fn tell(self, peer: SocketAddr) {
        let (label, detail) = match self {
            Self::Timeout => ("timeout", "the client took too long".to_owned()),
            Self::Closed => ("closed", "the client left during the handshake".to_owned()),
            Self::NoChain => ("no_chain", "no chain of the listener accepts such a connection".to_owned()),
            Self::Preamble(refused) => (refused.label(), refused.to_string()),
            Self::Key(KeyFailure::ClientLeft) => {
                ("closed", "the client left while its private-key operation waited".to_owned())
            }
            Self::Key(KeyFailure::Shed) => ("shed", "too many private-key operations wait".to_owned()),
            Self::Key(KeyFailure::Remote(failure)) => ("key_server", failure.to_string()),
            Self::Key(KeyFailure::Failed) => ("key", "the private-key operation failed".to_owned()),
            Self::Refused(Refusal::Name) => {
                ("tls", "the client's certificate has no accepted name".to_owned())
            }
            Self::Refused(Refusal::Pin) => ("tls", "the client's certificate is not pinned".to_owned()),
            Self::NoCertificate(reason) | Self::BadCertificate(reason) | Self::Tls(reason) => ("tls", reason),
        };
        metrics::handshake_failed(label);
        tracing::debug!(client = %peer, reason = label, detail, "no handshake");
    }
}

async fn handshake(
    mut transport: Transport,
    tls: &ChainTls,
    slot: &Arc<Slot>,
    served: &Served,
    ends: (SocketAddr, SocketAddr),
    began: Instant,
) -> Result<(SslStream<Transport>, Connection), Failure> {
    preamble::expect_tls(&mut transport).await.map_err(Failure::Preamble)?;
    let mut ssl = session(tls, &transport).map_err(|error| Failure::Tls(error.to_string()))?;
    let mut sample = served.sampling.begin(&mut ssl, began);
    let accepting = clock::own(SslStreamBuilder::new(ssl, transport).accept());
    let mut stream = sampling::measured(sample.as_mut(), accepting).await.map_err(|error| failure(&error))?;
    if !tls.admits(stream.ssl()) {
        return Err(Failure::Refused(Refusal::Pin));
    }
    let connection = describe(stream.ssl(), Arc::clone(slot), served, ends, began);
    metrics::handshake(&connection);
    metrics::returning(Returning::outcome(stream.ssl()));
    if let Some(sample) = sample {
        served.sampling.record(&sample, stream.ssl_mut(), &connection);
    }
    if let Some(accepted) = Returning::early_data(stream.ssl()) {
        metrics::early_data(accepted);
    }
    slot.counters.handshakes.add();
    if connection.resumed {
        slot.counters.resumed.add();
    }
    Ok((stream, connection))
}

/// Where the client connected to: known beforehand unless the listener is on all addresses.
fn local_address(tcp: &TcpStream, listening: SocketAddr) -> io::Result<SocketAddr> {
    if listening.ip().is_unspecified() || listening.port() == 0 { tcp.local_addr() } else { Ok(listening) }
}

fn session(tls: &ChainTls, transport: &Transport) -> Result<Ssl, ErrorStack> {
    let mut ssl = tls.session()?;
    KeyOperation::prepare(&mut ssl, transport.tcp())?;
    Ok(ssl)
}

fn failure<S>(error: &tokio_boring::HandshakeError<S>) -> Failure {
    if let Some(refusal) = error.ssl().and_then(Refusal::of) {
        return Failure::Refused(refusal);
    }
    match (error.ssl().and_then(KeyOperation::result), error.code()) {
        (Some(Err(failure)), _) => Failure::Key(failure),
        // The connection has failed, or ended where a message was due.
        (_, Some(ErrorCode::SYSCALL | ErrorCode::ZERO_RETURN)) => Failure::Closed,
        _ => match error.to_string() {
            reason if reason.contains("PEER_DID_NOT_RETURN_A_CERTIFICATE") => Failure::NoCertificate(reason),
            reason if reason.contains("CERTIFICATE_VERIFY_FAILED") => Failure::BadCertificate(reason),
            reason => Failure::Tls(reason),
        },
    }
}

fn describe(
    ssl: &SslRef,
    slot: Arc<Slot>,
    served: &Served,
    (client, local): (SocketAddr, SocketAddr),
    began: Instant,
) -> Connection {
    Connection {
        tls: true,
        sni: ssl.servername(NameType::HOST_NAME).map(str::to_owned),
        version: ssl.version_str(),
        cipher: ssl.current_cipher().and_then(boring::ssl::SslCipherRef::standard_name).unwrap_or("none"),
        resumed: ssl.session_reused(),
        early: AtomicBool::new(early::in_progress(ssl)),
        handshake: began.elapsed(),
        key: KeyOperation::result(ssl).and_then(Result::ok),
        ..Connection::plain(slot, client, local, &served.timeouts)
    }
}

async fn serve_tls(tls: SslStream<Transport>, connection: Connection, served: &Served, worker: &Worker) {
    let connection = Arc::new(connection);
    match &served.inside {
        Inside::Tcp(to) => Box::pin(tcp::pass(tls, &connection, to, served.timeouts.idle)).await,
        Inside::Http { .. } => {
            let http2 = tls.ssl().selected_alpn_protocol() == Some(b"h2");
            serve_http(Inner::Tls(tls), connection, http2, served, worker).await;
        }
    }
}

async fn serve_plain(mut transport: Transport, connection: Connection, served: &Served, worker: &Worker) {
    let connection = Arc::new(connection);
    match &served.inside {
        Inside::Tcp(to) => Box::pin(tcp::pass(transport, &connection, to, served.timeouts.idle)).await,
        Inside::Http { .. } => {
            let Some(http2) = first_bytes(&mut transport, served, worker).await else { return };
            serve_http(Inner::Plain(transport), connection, http2, served, worker).await;
        }
    }
}

/// Waits for a client without TLS to say something, and tells whether it is HTTP/2 (RFC 9113 section 3.3); `None` if it
/// says nothing.
async fn first_bytes(transport: &mut Transport, served: &Served, worker: &Worker) -> Option<bool> {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut shutdown = worker.shutdown.clone();
    let patience = async {
        tokio::select! {
            () = tokio::time::sleep(served.timeouts.idle) => {}
            // In a drain, a client has a while for its one request.
            () = async {
                drop(shutdown.wait_for(|&draining| draining).await);
                tokio::time::sleep(LAST_FIRST_BYTES).await;
            } => {}
        }
    };
    let bytes = async {
        loop {
            let waiting = transport.waiting();
            let common = waiting.len().min(PREFACE.len());
            if waiting[..common] != PREFACE[..common] {
                return Some(false);
            }
            if common == PREFACE.len() {
                return Some(true);
            }
            if !transport.read_more().await.unwrap_or(false) {
                return None;
            }
        }
    };
    tokio::select! {
        spoken = bytes => spoken,
        () = patience => None,
    }
}

async fn serve_http(
    inner: Inner,
    connection: Arc<Connection>,
    http2: bool,
    served: &Served,
    worker: &Worker,
) {
    let app = app(&connection, served.timeouts.idle, worker);
    match ClientStream::new(inner, connection, http2) {
        Ok(stream) => drop(app.process_new(Box::new(stream), &worker.shutdown).await),
        Err(error) => tracing::error!(%error, "cannot serve the connection"),
    }
}

/// A connection that comes late in a drain has a while for its one request, and no more.
fn app(connection: &Arc<Connection>, idle: Duration, worker: &Worker) -> Arc<App> {
    let (proxy, idle) = match *worker.shutdown.borrow() {
        true => (&worker.late, idle.min(FIRST_REQUEST)),
        false => (&worker.proxy, idle),
    };
    App::new(Arc::clone(proxy), Arc::clone(connection), idle)
}
