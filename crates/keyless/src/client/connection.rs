//! Persistent connection to one server: a session between the pool and the socket.

use super::{
    connect::Connected,
    dispatch::Assignment,
    job::Job,
    local_pool::{LocalPool, Task},
    metrics::ServerMetrics,
    settings::FailoverPolicy,
    shared::Shared,
};
use crate::{
    io::Stream,
    session::{ClientEvent, ClientSession, Completion, KeepAlive, Outcome, SessionError},
    wire::{ErrorCode, Mode},
};
use std::{
    future::{Future, poll_fn},
    io,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio::{io::ReadBuf, time::Sleep};
use zeroize::Zeroizing;

/// Initial delay before reconnecting to an unreachable server, doubled each time.
const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(2);
const READ_BUFFER: usize = 32 * 1024;

/// Reason for which a connection has ended.
#[derive(Debug, thiserror::Error)]
enum CloseReason {
    #[error("the server closed the connection")]
    Closed,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Session(#[from] SessionError),
    /// Closed by this end, because of a wrong result on another event loop.
    #[error("the server returned a wrong result")]
    Distrusted,
    /// Closed by this end.
    #[error("no longer needed")]
    ClientClosed,
}

/// Starts this event loop's pool, with a persistent connection to each server.
pub(super) fn start_pool(shared: &Arc<Shared>) -> Arc<LocalPool> {
    let pool = LocalPool::start(shared);
    for server in 0..shared.settings.servers.len() {
        tokio::spawn(keep_up(pool.task(), server));
    }
    pool
}

/// Connects and reconnects until the client closes.
async fn keep_up(task: Task, server: usize) {
    let pool = Arc::clone(task.pool());
    let mut backoff = MIN_BACKOFF;
    while !pool.is_closed() {
        if let Some(rest) = pool.shared.fleet.distrusted_for(Instant::now(), server) {
            // Short sleeps, because the client may close meanwhile.
            tokio::time::sleep(rest.min(MAX_BACKOFF)).await;
            continue;
        }
        let began = Instant::now();
        let settings = &pool.shared.settings;
        let limit = settings.failover.deadline;
        match pool.shared.connector.connect(&settings.servers[server], limit).await {
            Ok(connected) => run(&pool, server, connected).await,
            Err(error) => pool.shared.fleet.unreachable(server, &error.to_string()),
        }
        if began.elapsed() > MAX_BACKOFF {
            backoff = MIN_BACKOFF;
        }
        tokio::time::sleep(jittered(backoff)).await;
        backoff = (2 * backoff).min(MAX_BACKOFF);
    }
}

async fn run(pool: &Arc<LocalPool>, server: usize, connected: Connected) {
    let mut connection = Connection::new(Arc::clone(pool), server, connected);
    let reason = poll_fn(|context| connection.poll(context)).await;
    let fleet = &pool.shared.fleet;
    match &reason {
        CloseReason::Session(SessionError::Violation(violation)) => fleet.violated(server, violation),
        CloseReason::Session(SessionError::WrongResult(key)) => {
            let distrust = pool.shared.settings.failover.distrust;
            let key = key.ski.map(|ski| ski.to_string()).unwrap_or_default();
            fleet.distrust(Instant::now(), server, distrust, &key);
        }
        _ => {}
    }
    if connection.established {
        pool.lost(server);
        fleet.disconnected(server, &reason.to_string());
    } else if !matches!(reason, CloseReason::ClientClosed) {
        // A server that does not trust this client's certificate closes the connection after the handshake.
        fleet.unreachable(
            server,
            &format!("{reason} right after the handshake; does it accept our certificate?"),
        );
    }
}

/// Driver of the session of one connection.
struct Connection {
    pool: Arc<LocalPool>,
    server: usize,
    stream: Stream,
    session: ClientSession<Assignment<Job>>,
    established: bool,
    alarm: Pin<Box<Sleep>>,
    metrics: ServerMetrics,
    buffer: Zeroizing<Vec<u8>>,
}

impl Connection {
    fn new(pool: Arc<LocalPool>, server: usize, connected: Connected) -> Self {
        let Connected { stream, mode, .. } = connected;
        if mode == Mode::Compatible {
            pool.shared.compatible.store(true, Ordering::Relaxed);
        }
        let settings = &pool.shared.settings;
        let FailoverPolicy { ping: idle, stall, .. } = settings.failover;
        let now = Instant::now();
        let keep_alive = KeepAlive::Pings { idle, stall };
        let session = ClientSession::new(now, mode, settings.padding, keep_alive);
        let alarm = Box::pin(tokio::time::sleep(stall));
        let metrics = ServerMetrics::new(pool.shared.fleet.name(server));
        Self {
            pool,
            server,
            stream,
            session,
            established: false,
            alarm,
            metrics,
            buffer: Zeroizing::new(vec![0; READ_BUFFER]),
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<CloseReason> {
        match self.poll_all(context) {
            Err(reason) => Poll::Ready(reason),
            Ok(()) => Poll::Pending,
        }
    }

    /// Reads and writes until both would block.
    fn poll_all(&mut self, context: &mut Context<'_>) -> Result<(), CloseReason> {
        while self.poll_read(context)?.is_ready() {}
        if self.pool.shared.fleet.is_distrusted(self.server) {
            return Err(CloseReason::Distrusted);
        }
        loop {
            // All messages of this turn of the event loop go into one frame.
            self.pool.fill(self.server, context, &mut self.session);
            if self.pool.is_closed() {
                return Err(CloseReason::ClientClosed);
            }
            if !self.session.has_unsent() || self.poll_write(context)?.is_pending() {
                break;
            }
        }
        self.poll_alarm(context)
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, CloseReason> {
        let mut read = ReadBuf::new(&mut self.buffer);
        let polled = self.stream.as_mut().poll_read(context, &mut read)?;
        let count = read.filled().len();
        match polled {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(()) if count == 0 => return Err(CloseReason::Closed),
            Poll::Ready(()) => {}
        }
        let now = Instant::now();
        self.pool.heard(self.server);
        self.session.receive(now, &self.buffer[..count]);
        while let Some(event) = self.session.next_event(now)? {
            match event {
                ClientEvent::Established { .. } => self.establish(),
                ClientEvent::Completed(completion) => self.complete(completion),
            }
        }
        Ok(Poll::Ready(()))
    }

    fn establish(&mut self) {
        self.established = true;
        self.pool.shared.fleet.connected(self.server);
        self.pool.up(self.server);
    }

    fn complete(&mut self, completion: Completion<Assignment<Job>>) {
        match &completion.outcome {
            Outcome::Computed(_) => self.metrics.ok.increment(1),
            Outcome::Refused(error) => {
                self.metrics.refused.increment(1);
                if *error == ErrorCode::KeyNotFound {
                    self.pool.shared.fleet.key_missing(self.server, completion.operation.job().key.ski());
                }
            }
            Outcome::Withdrawn { .. } | Outcome::Expired => {}
        }
        self.metrics.seconds.record(completion.took);
        self.pool.completed(self.server, completion);
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, CloseReason> {
        let count = match self.stream.as_mut().poll_write(context, self.session.unsent())? {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(0) => return Err(CloseReason::Closed),
            Poll::Ready(count) => count,
        };
        self.session.advance(count);
        Ok(Poll::Ready(()))
    }

    /// Ticks the session when its timer is due.
    fn poll_alarm(&mut self, context: &mut Context<'_>) -> Result<(), CloseReason> {
        while let Some(due) = self.session.due() {
            if self.alarm.is_elapsed() || self.alarm.deadline() > due.into() {
                self.alarm.as_mut().reset(due.into());
            }
            if self.alarm.as_mut().poll(context).is_pending() {
                break;
            }
            self.session.tick(Instant::now())?;
            while self.session.has_unsent() && self.poll_write(context)?.is_ready() {}
        }
        Ok(())
    }
}

/// Returns half to all of the delay, so that event loops do not reconnect all at once.
fn jittered(backoff: Duration) -> Duration {
    let mut byte = [0; 1];
    // No jitter without random numbers.
    let _ = boring::rand::rand_bytes(&mut byte);
    backoff / 2 + backoff / 2 * u32::from(byte[0]) / 255
}
