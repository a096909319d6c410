//! Event-loop threads of a key server, and its listeners.

use super::{
    Server, Shared,
    close_reason::CloseReason,
    connection::Connection,
    handshake::{self, HandshakeError, IdentifiedClient},
    metrics::{self, OpenConnection},
    newcomers::{Newcomers, Source, WaitingPlace},
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
use tokio::sync::{Semaphore, mpsc, watch};

/// Event-loop threads, among which connections are distributed. On drop they stop accepting, complete open requests,
/// and end.
pub struct Threads {
    senders: Vec<mpsc::UnboundedSender<AcceptedSocket>>,
    next: AtomicUsize,
    draining: watch::Sender<bool>,
    newcomers: Arc<Newcomers>,
    /// Closed when every thread has ended.
    running: watch::Receiver<()>,
}

enum Socket {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

/// Socket, and its place until it is identified.
type AcceptedSocket = (Socket, WaitingPlace);

/// Maximum number of connections of known clients.
const MAX_CONNECTIONS: usize = 16 * 1024;
/// Minimum time between log lines about connections that cannot be accepted.
const LOGGED_EVERY: Duration = Duration::from_secs(1);
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
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut senders = Vec::new();
        for index in 0..count.get() {
            let (sender, receiver) = mpsc::unbounded_channel();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (shared, drained) = (Arc::clone(&server.0), draining.subscribe());
            let (alive, permits) = (Arc::clone(&alive), Arc::clone(&permits));
            std::thread::Builder::new().name(format!("keys-{index}")).spawn(move || {
                runtime.block_on(work(shared, receiver, permits, drained, alive));
            })?;
            senders.push(sender);
        }
        Ok(Self { senders, next: AtomicUsize::new(0), draining, newcomers: Arc::default(), running })
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

    /// Stops accepting; connections end as soon as their requests are completed.
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
        let mut logged: Option<Instant> = None;
        loop {
            let accepted = tokio::select! {
                accepted = acceptor.next() => accepted,
                _ = draining.wait_for(|draining| *draining) => return,
            };
            match accepted {
                Ok((socket, source)) => self.assign(socket, source),
                Err(error) => {
                    if logged.is_none_or(|logged| logged.elapsed() >= LOGGED_EVERY) {
                        logged = Some(Instant::now());
                        tracing::warn!(%error, "cannot accept a connection");
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    fn assign(&self, socket: Socket, source: Source) {
        let place = self.newcomers.enter(source);
        let index = self.next.fetch_add(1, Ordering::Relaxed) % self.senders.len().max(1);
        let _ = self.senders.get(index).map(|sender| sender.send((socket, place)));
    }
}

enum Acceptor {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

impl Acceptor {
    async fn next(&self) -> io::Result<(Socket, Source)> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (tcp, peer) = listener.accept().await?;
                (Socket::Tcp(tcp.into_std()?, peer), Source::network(peer.ip()))
            }
            Self::Unix(listener) => {
                let (unix, _) = listener.accept().await?;
                let user = unix.peer_cred()?.uid();
                (Socket::Unix(unix.into_std()?), Source::User(user))
            }
        })
    }
}

async fn work(
    shared: Arc<Shared>,
    mut sockets: mpsc::UnboundedReceiver<AcceptedSocket>,
    permits: Arc<Semaphore>,
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
        let Some((socket, place)) = received else { break };
        let (shared, draining, here) = (Arc::clone(&shared), draining.clone(), here.clone());
        let permits = Arc::clone(&permits);
        tokio::spawn(async move {
            let _open = OpenConnection::new();
            Box::pin(serve(shared, socket, place, &permits, draining)).await;
            drop(here);
        });
    }
    drop(here);
    all_gone.recv().await;
    drop(alive);
}

async fn serve(
    shared: Arc<Shared>,
    socket: Socket,
    mut place: WaitingPlace,
    permits: &Arc<Semaphore>,
    draining: watch::Receiver<bool>,
) {
    let peer = match &socket {
        Socket::Tcp(_, peer) => peer.to_string(),
        Socket::Unix(_) => "a Unix socket".to_owned(),
    };
    let identifying = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake(&shared, socket));
    let shaken = tokio::select! {
        shaken = identifying => shaken,
        () = place.displaced() => return metrics::refused_connection("too_many"),
    };
    drop(place);
    match shaken {
        Err(_) => metrics::refused_connection("timeout"),
        Ok(Err(error)) => {
            metrics::refused_connection("handshake");
            if error.is_worth_logging() && shared.unidentified.may_write(Instant::now()) {
                tracing::warn!(target: super::audit::TARGET, peer, reason = %error, "client refused");
            }
        }
        Ok(Ok(identified)) => match permits.try_acquire() {
            Ok(_open) => serve_identified(shared, identified, &peer, draining).await,
            Err(_) => metrics::refused_connection("too_many"),
        },
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
        tracing::warn!(target: super::audit::TARGET, peer, client = name, reason = "the policy does not name the client", "client refused");
        return;
    };
    tracing::debug!(peer, client = name, %mode, "client connected");
    let ended = connection.serve().await;
    match &ended {
        CloseReason::Violation(violation) => {
            metrics::violation(&name);
            tracing::warn!(target: super::audit::TARGET, peer, client = name, reason = %violation, "connection closed");
        }
        CloseReason::NotAccepted(_) | CloseReason::NotNamed => {
            tracing::warn!(target: super::audit::TARGET, peer, client = name, reason = %ended, "connection closed");
        }
        other => tracing::debug!(peer, client = name, reason = %other, "client gone"),
    }
}

async fn handshake(shared: &Shared, socket: Socket) -> Result<IdentifiedClient, HandshakeError> {
    match socket {
        Socket::Tcp(tcp, _) => {
            tcp.set_nonblocking(true)?;
            handshake::over_tcp(shared, tokio::net::TcpStream::from_std(tcp)?).await
        }
        Socket::Unix(unix) => {
            unix.set_nonblocking(true)?;
            handshake::over_unix(shared, tokio::net::UnixStream::from_std(unix)?).await
        }
    }
}
