//! Serving of matched connections: HTTP, or TCP to an upstream.

use super::{
    accepting_chain::AcceptingChain,
    eviction::{Occupant, OpenConnections},
    filter_chain::{ChainConfig, Handler},
    protocol_detection,
    redirection::Destinations,
};
use crate::{
    access,
    admission::{LoopAdmission, Transfers},
    connection::Connection,
    http::{self, HttpConnection},
    process::file_limits::Descriptors,
    tcp,
    telemetry::access_denied::access_denied,
    tls::{ClientStream, Inner, Transport},
    upstream::ConnectionPool,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;
use tokio_boring::SslStream;

/// Time limit from the end of the handshake to the first byte of the request while draining.
const FIRST_REQUEST: Duration = Duration::from_secs(5);

/// Time limit for the first byte of a client without TLS while draining.
const LAST_FIRST_BYTES: Duration = Duration::from_secs(1);

/// State shared by all connections of one event loop.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) pool: Arc<ConnectionPool>,
    /// Open connections, for eviction.
    pub(crate) open: Arc<OpenConnections>,
    /// File descriptors of the process.
    pub(crate) descriptors: Arc<Descriptors>,
    /// Listeners of the process, for redirected connections.
    pub(crate) destinations: Arc<Destinations>,
    /// Admission control.
    pub(crate) admission: Arc<LoopAdmission>,
    /// Becomes true when the process drains.
    pub(crate) shutdown: watch::Receiver<bool>,
    /// Held by every connection; a drain is complete when no connection holds it.
    pub(crate) _alive: tokio::sync::mpsc::Sender<()>,
}

/// Serves a connection whose handshake is complete.
pub(super) async fn serve_tls(
    tls: SslStream<Transport>,
    connection: Connection,
    chain: AcceptingChain,
    worker: &Worker,
    occupant: &Occupant,
) {
    let connection = shared(connection, worker);
    let config = Arc::clone(&chain.config);
    if !may_connect(&config, &connection) {
        return;
    }
    match &config.handler {
        Handler::Tcp(to) => {
            occupant.speaks_tcp(&connection);
            Box::pin(tcp::pass(tls, &connection, to, config.timeouts.idle)).await;
        }
        Handler::Http(_) => {
            occupant.speaks_http(&connection);
            let http2 = matches!(tls.ssl().selected_alpn_protocol(), Some(b"h2" | b"istio-h2"));
            serve_http(Inner::Tls(tls), connection, chain, http2, worker).await;
        }
    }
}

/// Serves a connection without TLS.
pub(super) async fn serve_plain(
    mut transport: Transport,
    connection: Connection,
    chain: AcceptingChain,
    worker: &Worker,
    occupant: &Occupant,
) {
    let connection = shared(connection, worker);
    let config = Arc::clone(&chain.config);
    if !may_connect(&config, &connection) {
        return;
    }
    match &config.handler {
        Handler::Tcp(to) => {
            occupant.speaks_tcp(&connection);
            Box::pin(tcp::pass(transport, &connection, to, config.timeouts.idle)).await;
        }
        Handler::Http(_) => {
            let Some(http2) = detect_http2(&mut transport, config.timeouts.idle, worker).await else {
                return;
            };
            occupant.speaks_http(&connection);
            serve_http(Inner::Plain(transport), connection, chain, http2, worker).await;
        }
    }
}

/// Waits for the first bytes of a client without TLS, and returns whether they are HTTP/2; `None` if none arrive.
async fn detect_http2(transport: &mut Transport, idle: Duration, worker: &Worker) -> Option<bool> {
    let mut shutdown = worker.shutdown.clone();
    let patience = async {
        tokio::select! {
            () = tokio::time::sleep(idle) => {}
            // A drain allows the client limited time for its one request.
            () = async {
                drop(shutdown.wait_for(|&draining| draining).await);
                tokio::time::sleep(LAST_FIRST_BYTES).await;
            } => {}
        }
    };
    tokio::select! {
        http2 = protocol_detection::detect_http2(transport) => http2,
        () = patience => None,
    }
}

async fn serve_http(
    inner: Inner,
    connection: Arc<Connection>,
    chain: AcceptingChain,
    http2: bool,
    worker: &Worker,
) {
    let stream = ClientStream::new(inner, Arc::clone(&connection), http2);
    let pool = Arc::clone(&worker.pool);
    let transfers = Transfers::new(&worker.admission, connection.client.ip());
    let connection = HttpConnection { connection, chain: Arc::new(chain), pool };
    http::serve(stream, http2, connection, transfers).await;
}

/// Returns whether the access rules of the chain allow this client to connect.
pub(super) fn may_connect(config: &ChainConfig, connection: &Connection) -> bool {
    match access::admits_connection(&config.access, connection) {
        Ok(()) => true,
        Err(reason) => {
            tracing::debug!(client = %connection.client, reason, "connection denied");
            access_denied("connection");
            false
        }
    }
}

/// Shares the connection's state. A connection accepted during a drain has limited time for one request.
pub(super) fn shared(mut connection: Connection, worker: &Worker) -> Arc<Connection> {
    if *worker.shutdown.borrow() {
        connection.clock.shorten_idle(FIRST_REQUEST);
    }
    Arc::new(connection)
}
