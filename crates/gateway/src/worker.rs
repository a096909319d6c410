//! Event-loop threads: each has a single-threaded runtime and its own upstream pool, and shares no locks with the
//! others.

use crate::{
    admission::{self, LoopAdmission},
    listener::{
        accept, acceptor::Acceptor, eviction, filter_chain::ActiveListener, quic, redirection::Destinations,
        serve::Worker,
    },
    process::file_limits::Descriptors,
    quic::{Endpoint, Shard},
    upstream::ConnectionPool,
};
use quadrille_engine::{BatchFlusher, Engine};
use std::{io, net::TcpListener, sync::Arc};
use tokio::sync::{mpsc, watch};

/// Interval at which the runtime polls tasks woken by other threads: handshakes whose private-key operations have
/// completed. Tokio's default is 31; on a busy event loop, results would then wait for longer than they took to
/// compute.
const WOKEN_ELSEWHERE_ONE_IN: u32 = 2;

/// A listener to be served by an event loop.
pub(crate) struct Assignment {
    pub(crate) listener: Arc<ActiveListener>,
    pub(crate) socket: ListenerSocket,
}

/// Socket of a listener on an event loop.
pub(crate) enum ListenerSocket {
    Tcp(TcpListener),
    /// Socket of HTTP/3.
    Quic(Box<Shard>),
}

/// State shared by all event loops.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) descriptors: Arc<Descriptors>,
    pub(crate) destinations: Arc<Destinations>,
}

/// Sending end of an event-loop thread's queue.
pub(crate) struct WorkerThread {
    pub(crate) assignments: mpsc::UnboundedSender<Assignment>,
}

/// Starts a thread. It ends, and drops `running`, when its assignments are closed and its last connection has ended.
pub(crate) fn start(
    index: usize,
    engine: Engine,
    shared: Shared,
    admission: Arc<LoopAdmission>,
    shutdown: watch::Receiver<bool>,
    running: mpsc::Sender<()>,
) -> io::Result<WorkerThread> {
    let (assignments, receiver) = mpsc::unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .global_queue_interval(WOKEN_ELSEWHERE_ONE_IN)
        .build()?;
    std::thread::Builder::new().name(format!("worker-{index}")).spawn(move || {
        runtime.block_on(work(receiver, engine, shared, admission, shutdown));
        drop(running);
    })?;
    Ok(WorkerThread { assignments })
}

async fn work(
    mut assignments: mpsc::UnboundedReceiver<Assignment>,
    engine: Engine,
    shared: Shared,
    admission: Arc<LoopAdmission>,
    shutdown: watch::Receiver<bool>,
) {
    tokio::spawn(BatchFlusher::new(engine));
    tokio::spawn(admission::run_yielding(Arc::clone(&admission)));
    let (alive, mut all_gone) = mpsc::channel(1);
    let worker = Worker {
        pool: ConnectionPool::new(),
        open: Arc::default(),
        descriptors: shared.descriptors,
        destinations: shared.destinations,
        admission,
        shutdown,
        _alive: alive,
    };
    tokio::spawn(eviction::relieve_memory(Arc::clone(&worker.open)));
    while let Some(Assignment { listener, socket }) = assignments.recv().await {
        let address = listener.address;
        let begun = match socket {
            ListenerSocket::Tcp(socket) => Acceptor::new(socket, &worker.admission).map(|acceptor| {
                listener.config().warm();
                drop(tokio::spawn(accept::accept_all(listener, acceptor, worker.clone())));
            }),
            ListenerSocket::Quic(shard) => Endpoint::new(*shard).map(|endpoint| {
                drop(tokio::spawn(quic::serve_datagrams(listener, endpoint, worker.clone())));
            }),
        };
        if let Err(error) = begun {
            tracing::error!(%address, %error, "cannot listen");
        }
    }
    drop(worker);
    all_gone.recv().await;
}
