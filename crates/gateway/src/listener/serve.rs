//! What happens to a connection of which it is known how it is served: HTTP, or TCP to an upstream.

use super::{
    filter_chain::{ChainConfig, FilterChain, Handler},
    protocol_detection,
};
use crate::{
    connection::Connection,
    http::{self, App, HttpConnection},
    tcp,
    tls::{ClientStream, Inner, Transport},
};
use pingora_core::{apps::ServerApp, server::ShutdownWatch};
use pingora_proxy::HttpProxy;
use std::{sync::Arc, time::Duration};
use tokio_boring::SslStream;

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

/// Serves a connection whose handshake is done.
pub(super) async fn serve_tls(
    tls: SslStream<Transport>,
    connection: Connection,
    chain: Arc<FilterChain>,
    config: &ChainConfig,
    worker: &Worker,
) {
    let connection = Arc::new(connection);
    match &config.handler {
        Handler::Tcp(to) => Box::pin(tcp::pass(tls, &connection, to, config.timeouts.idle)).await,
        Handler::Http(_) => {
            let http2 = tls.ssl().selected_alpn_protocol() == Some(b"h2");
            serve_http(Inner::Tls(tls), connection, chain, http2, config, worker).await;
        }
    }
}

/// Serves a connection without TLS.
pub(super) async fn serve_plain(
    mut transport: Transport,
    connection: Connection,
    chain: Arc<FilterChain>,
    config: &ChainConfig,
    worker: &Worker,
) {
    let connection = Arc::new(connection);
    match &config.handler {
        Handler::Tcp(to) => Box::pin(tcp::pass(transport, &connection, to, config.timeouts.idle)).await,
        Handler::Http(_) => {
            let Some(http2) = detect_http2(&mut transport, config.timeouts.idle, worker).await else {
                return;
            };
            serve_http(Inner::Plain(transport), connection, chain, http2, config, worker).await;
        }
    }
}

/// Waits for a client without TLS to say something, and tells whether it is HTTP/2; `None` if it says nothing.
async fn detect_http2(transport: &mut Transport, idle: Duration, worker: &Worker) -> Option<bool> {
    let mut shutdown = worker.shutdown.clone();
    let patience = async {
        tokio::select! {
            () = tokio::time::sleep(idle) => {}
            // In a drain, a client has a while for its one request.
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
    chain: Arc<FilterChain>,
    http2: bool,
    config: &ChainConfig,
    worker: &Worker,
) {
    let app = app(&connection, config.timeouts.idle, worker);
    let context = HttpConnection { connection: Arc::clone(&connection), chain };
    match ClientStream::new(inner, connection, http2, Box::new(context)) {
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
