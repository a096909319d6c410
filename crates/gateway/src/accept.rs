//! From a socket to a finished handshake: one task for each connection, on the event loop that accepted it.

use crate::{
    connection::{Connection, HeaderClock},
    http::{self, App},
    metrics::{self, OpenConnection},
    model::{Mode, ProxyProtocolIn},
    preamble::{self, Preamble},
    site::{Listening, Site},
    tcp,
    tls::{KeyFailure, KeyOperation, Returning, TlsStream, Transport, clock, early},
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
        let _open = (OpenConnection::new(), permit);
        let site = listening.site();
        let Ok(handshaking) = Arc::clone(&listening.handshakes).try_acquire_owned() else {
            return metrics::handshake_failed("too_many_handshakes");
        };
        let began = Instant::now();
        let shaken = Box::pin(handshake(tcp, peer, &listening, &site, began));
        let outcome = tokio::time::timeout(site.listener.timeouts.handshake, shaken).await;
        drop(handshaking);
        match outcome {
            Ok(Ok((tls, connection))) => serve(tls, connection, &site, &worker).await,
            Ok(Err(failure)) => failure.report(peer),
            Err(_) => Failure::Timeout.report(peer),
        }
        drop(worker);
    });
}

/// Why a connection came to nothing.
enum Failure {
    Timeout,
    Closed,
    Preamble(preamble::Refused),
    Key(KeyFailure),
    Tls(String),
}

impl Failure {
    fn report(self, peer: SocketAddr) {
        let (label, detail) = match self {
            Self::Timeout => ("timeout", "the client took too long".to_owned()),
            Self::Closed => ("closed", "the client left during the handshake".to_owned()),
            Self::Preamble(refused) => (refused.label(), refused.to_string()),
            Self::Key(KeyFailure::ClientLeft) => {
                ("closed", "the client left while its private-key operation waited".to_owned())
            }
            Self::Key(KeyFailure::Shed) => ("shed", "too many private-key operations wait".to_owned()),
            Self::Key(KeyFailure::Remote(failure)) => ("key_server", failure.to_string()),
            Self::Key(KeyFailure::Failed) => ("key", "the private-key operation failed".to_owned()),
            Self::Tls(reason) => ("tls", reason),
        };
        metrics::handshake_failed(label);
        tracing::debug!(client = %peer, reason = label, detail, "no handshake");
    }
}

async fn handshake(
    tcp: TcpStream,
    peer: SocketAddr,
    listening: &Arc<Listening>,
    site: &Site,
    began: Instant,
) -> Result<(SslStream<Transport>, Connection), Failure> {
    let local = local_address(&tcp, listening.address).map_err(|_| Failure::Closed)?;
    let mut transport = Transport::new(tcp);
    let announced = site.listener.proxy_protocol == ProxyProtocolIn::Required;
    let Preamble { client, local } =
        preamble::read(&mut transport, announced, peer, local).await.map_err(Failure::Preamble)?;
    let ssl = session(site, &transport).map_err(|error| Failure::Tls(error.to_string()))?;
    let accepting = clock::own(SslStreamBuilder::new(ssl, transport).accept());
    let tls = accepting.await.map_err(|error| failure(&error))?;
    let connection = describe(tls.ssl(), Arc::clone(listening), site, client, local, began);
    metrics::handshake(&connection);
    metrics::returning(Returning::outcome(tls.ssl()));
    if let Some(accepted) = Returning::early_data(tls.ssl()) {
        metrics::early_data(accepted);
    }
    Ok((tls, connection))
}

/// Where the client connected to: known beforehand unless the listener is on all addresses.
fn local_address(tcp: &TcpStream, listening: SocketAddr) -> io::Result<SocketAddr> {
    if listening.ip().is_unspecified() || listening.port() == 0 { tcp.local_addr() } else { Ok(listening) }
}

fn session(site: &Site, transport: &Transport) -> Result<Ssl, ErrorStack> {
    let mut ssl = site.tls.session()?;
    KeyOperation::prepare(&mut ssl, transport.tcp())?;
    Ok(ssl)
}

fn failure<S>(error: &tokio_boring::HandshakeError<S>) -> Failure {
    match (error.ssl().and_then(KeyOperation::result), error.code()) {
        (Some(Err(failure)), _) => Failure::Key(failure),
        // The connection has failed, or ended where a message was due.
        (_, Some(ErrorCode::SYSCALL | ErrorCode::ZERO_RETURN)) => Failure::Closed,
        _ => Failure::Tls(error.to_string()),
    }
}

fn describe(
    ssl: &SslRef,
    listening: Arc<Listening>,
    site: &Site,
    client: SocketAddr,
    local: SocketAddr,
    began: Instant,
) -> Connection {
    Connection {
        listening,
        client,
        local,
        sni: ssl.servername(NameType::HOST_NAME).map(str::to_owned),
        version: ssl.version_str(),
        cipher: ssl.current_cipher().and_then(boring::ssl::SslCipherRef::standard_name).unwrap_or("none"),
        resumed: ssl.session_reused(),
        early: AtomicBool::new(early::in_progress(ssl)),
        handshake: began.elapsed(),
        key: KeyOperation::result(ssl).and_then(Result::ok),
        header_clock: HeaderClock::new(&site.listener.timeouts),
    }
}

async fn serve(tls: SslStream<Transport>, connection: Connection, site: &Site, worker: &Worker) {
    let connection = Arc::new(connection);
    match site.listener.mode {
        Mode::Tcp => Box::pin(tcp::pass(tls, &connection, site)).await,
        Mode::Http => {
            let app = app(&connection, site.listener.timeouts.idle, worker);
            match TlsStream::new(tls, connection) {
                Ok(stream) => drop(app.process_new(Box::new(stream), &worker.shutdown).await),
                Err(error) => tracing::error!(%error, "cannot serve the connection"),
            }
        }
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
