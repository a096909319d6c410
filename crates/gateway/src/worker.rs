//! An event-loop thread: a single-threaded runtime, its own upstream pool, no locks shared with the others.

use crate::{
    http,
    listener::{accept, filter_chain::ActiveListener, serve::Worker},
};
use pingora_core::{apps::HttpServerApp, server::ShutdownWatch};
use quadrille_engine::{BatchFlusher, Engine};
use std::{io, net::TcpListener, sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// After a drain began, idle connections may still send a request for this long: one that was already on its way
/// when the client had not yet been told is answered.
const LAST_REQUESTS: Duration = Duration::from_secs(1);

/// A listener for an event loop to take on.
pub(crate) type Assignment = (Arc<ActiveListener>, TcpListener);

/// The sending end of an event-loop thread.
pub(crate) struct WorkerThread {
    pub(crate) assignments: mpsc::UnboundedSender<Assignment>,
}

/// Starts a thread that keeps up to `pool` idle connections to servers. It ends, and drops `running`, when its
/// assignments are closed and its last connection is gone.
pub(crate) fn start(
    index: usize,
    engine: Engine,
    pool: usize,
    shutdown: ShutdownWatch,
    running: mpsc::Sender<()>,
) -> io::Result<WorkerThread> {
    let (assignments, receiver) = mpsc::unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name(format!("worker-{index}")).spawn(move || {
        runtime.block_on(work(receiver, engine, pool, shutdown));
        drop(running);
    })?;
    Ok(WorkerThread { assignments })
}

async fn work(
    mut assignments: mpsc::UnboundedReceiver<Assignment>,
    engine: Engine,
    pool: usize,
    shutdown: ShutdownWatch,
) {
    tokio::spawn(BatchFlusher::new(engine));
    let proxy = http::new_proxy(pool, shutdown.clone());
    let late = http::new_proxy(1, shutdown.clone());
    let (alive, mut all_gone) = mpsc::channel(1);
    let worker = Worker { proxy: Arc::clone(&proxy), late, shutdown, _alive: alive };
    while let Some((listener, socket)) = assignments.recv().await {
        match tokio::net::TcpListener::from_std(socket) {
            Ok(socket) => {
                listener.config().warm();
                drop(tokio::spawn(accept::accept_all(listener, socket, worker.clone())));
            }
            Err(error) => tracing::error!(address = %listener.address, %error, "cannot listen"),
        }
    }
    drop(worker);
    if tokio::time::timeout(LAST_REQUESTS, all_gone.recv()).await.is_err() {
        proxy.http_cleanup().await;
        all_gone.recv().await;
    }
}
