//! The event-loop threads of a key server, and its listeners.

use super::{
    Server, Shared,
    connection::{CloseReason, Connection},
    handshake::{self, HandshakeError, IdentifiedClient},
    metrics::{self, OpenConnection},
};
use quadrille_engine::BatchFlusher;
use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    num::NonZeroUsize,
    os::unix::net::{UnixListener, UnixStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

/// Event-loop threads, among which connections are distributed. Dropped, they stop accepting, answer what is under way,
/// and end.
pub struct Threads {
    senders: Vec<mpsc::UnboundedSender<AcceptedSocket>>,
    next: AtomicUsize,
    draining: watch::Sender<bool>,
    /// Connections that may still be opened.
    permits: Arc<Semaphore>,
    /// Closed when every thread has ended.
    running: watch::Receiver<()>,
}

enum Socket {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

/// A socket, and the permit to have it open.
type AcceptedSocket = (Socket, OwnedSemaphorePermit);

const MAX_CONNECTIONS: usize = 16 * 1024;
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

impl Threads {
    /// Starts the threads.
    ///
    /// # Errors
    /// If the system has no more threads or descriptors.
    pub fn start(server: &Server, count: NonZeroUsize) -> io::Result<Self> {
        let draining = watch::Sender::new(false);
        let (alive, running) = watch::channel(());
        let alive = Arc::new(alive);
        let mut senders = Vec::new();
        for index in 0..count.get() {
            let (sender, receiver) = mpsc::unbounded_channel();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (shared, drained) = (Arc::clone(&server.0), draining.subscribe());
            let alive = Arc::clone(&alive);
            std::thread::Builder::new().name(format!("keys-{index}")).spawn(move || {
                runtime.block_on(work(shared, receiver, drained, alive));
            })?;
            senders.push(sender);
        }
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        Ok(Self { senders, next: AtomicUsize::new(0), draining, permits, running })
    }

    /// Accepts on this socket until the threads drain.
    ///
    /// # Errors
    /// If the socket cannot be used by this runtime.
    pub async fn accept_tcp(self: Arc<Self>, listener: TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        self.accept(Acceptor::Tcp(tokio::net::TcpListener::from_std(listener)?)).await;
        Ok(())
    }

    /// Accepts on this socket until the threads drain.
    ///
    /// # Errors
    /// If the socket cannot be used by this runtime.
    pub async fn accept_unix(self: Arc<Self>, listener: UnixListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        self.accept(Acceptor::Unix(tokio::net::UnixListener::from_std(listener)?)).await;
        Ok(())
    }

    /// Stops accepting; connections end as soon as they have been answered.
    pub fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Waits until the last connection has ended after a [`drain`](Self::drain).
    pub async fn drained(&self) {
        let mut running = self.running.clone();
        while running.changed().await.is_ok() {}
    }

    async fn accept(&self, acceptor: Acceptor) {
        let mut draining = self.draining.subscribe();
        loop {
            let accepted = tokio::select! {
                accepted = acceptor.next() => accepted,
                _ = draining.wait_for(|draining| *draining) => return,
            };
            match accepted {
                Ok(socket) => self.assign(socket),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    fn assign(&self, socket: Socket) {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return metrics::refused_connection("too_many");
        };
        let index = self.next.fetch_add(1, Ordering::Relaxed) % self.senders.len().max(1);
        let _ = self.senders.get(index).map(|sender| sender.send((socket, permit)));
    }
}

enum Acceptor {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

impl Acceptor {
    async fn next(&self) -> io::Result<Socket> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (tcp, peer) = listener.accept().await?;
                Socket::Tcp(tcp.into_std()?, peer)
            }
            Self::Unix(listener) => Socket::Unix(listener.accept().await?.0.into_std()?),
        })
    }
}

async fn work(
    shared: Arc<Shared>,
    mut sockets: mpsc::UnboundedReceiver<AcceptedSocket>,
    draining: watch::Receiver<bool>,
    alive: Arc<watch::Sender<()>>,
) {
    tokio::spawn(BatchFlusher::new(shared.engine.clone()));
    let (here, mut all_gone) = mpsc::channel::<()>(1);
    let mut drained = draining.clone();
    loop {
        let received = tokio::select! {
            received = sockets.recv() => received,
            _ = drained.wait_for(|draining| *draining) => None,
        };
        let Some((socket, permit)) = received else { break };
        let (shared, draining, here) = (Arc::clone(&shared), draining.clone(), here.clone());
        tokio::spawn(async move {
            let _open = OpenConnection::new();
            Box::pin(serve(shared, socket, draining)).await;
            drop((permit, here));
        });
    }
    drop(here);
    all_gone.recv().await;
    drop(alive);
}

async fn serve(shared: Arc<Shared>, socket: Socket, draining: watch::Receiver<bool>) {
    let (peer, shaken) = match socket {
        Socket::Tcp(tcp, peer) => {
            (peer.to_string(), tokio::time::timeout(HANDSHAKE_TIMEOUT, tcp_handshake(&shared, tcp)).await)
        }
        Socket::Unix(unix) => (
            "a Unix socket".to_owned(),
            tokio::time::timeout(HANDSHAKE_TIMEOUT, unix_handshake(&shared, unix)).await,
        ),
    };
    match shaken {
        Err(_) => metrics::refused_connection("timeout"),
        Ok(Err(error)) => {
            metrics::refused_connection("handshake");
            if error.is_worth_logging() && shared.unidentified.may_write(Instant::now()) {
                tracing::warn!(target: super::audit::TARGET, peer, reason = %error, "client refused");
            }
        }
        Ok(Ok(identified)) => serve_identified(shared, identified, &peer, draining).await,
    }
}

async fn serve_identified(
    shared: Arc<Shared>,
    identified: IdentifiedClient,
    peer: &str,
    draining: watch::Receiver<bool>,
) {
    let (name, mode) = (identified.identity.to_string(), identified.mode);
    let Some(client) = shared.clients.enter(&identified.identity) else {
        metrics::refused_connection("too_many");
        tracing::warn!(target: super::audit::TARGET, peer, client = name, reason = "too many connections", "client refused");
        return;
    };
    let Some(connection) = Connection::new(shared, identified, client, draining) else {
        metrics::refused_connection("policy");
        tracing::warn!(target: super::audit::TARGET, peer, client = name, reason = "the policy does not name it", "client refused");
        return;
    };
    tracing::debug!(peer, client = name, %mode, "client connected");
    let ended = connection.serve().await;
    match ended {
        CloseReason::Violation(violation) => {
            metrics::violation(&name);
            tracing::warn!(target: super::audit::TARGET, peer, client = name, reason = %violation, "connection closed");
        }
        other => tracing::debug!(peer, client = name, reason = %other, "client gone"),
    }
}

async fn tcp_handshake(shared: &Shared, tcp: TcpStream) -> Result<IdentifiedClient, HandshakeError> {
    tcp.set_nonblocking(true)?;
    handshake::over_tcp(shared, tokio::net::TcpStream::from_std(tcp)?).await
}

async fn unix_handshake(shared: &Shared, unix: UnixStream) -> Result<IdentifiedClient, HandshakeError> {
    unix.set_nonblocking(true)?;
    handshake::over_unix(shared, tokio::net::UnixStream::from_std(unix)?).await
}
