//! TCP mode: what comes in, TLS taken off, goes to the upstream as it is, and back.

use crate::{
    connection::Connection,
    telemetry::access_log,
    upstream::{Alpn, Server, ServerStream, Upstream, WeightedUpstreams},
};
use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Large enough that one record (16 KiB) is one write.
const BUFFER: usize = 32 * 1024;

/// Passes bytes until both sides have closed, or nothing has moved for the idle time.
pub(crate) async fn pass(
    client: impl AsyncRead + AsyncWrite + Unpin,
    connection: &Arc<Connection>,
    to: &WeightedUpstreams,
    idle: Duration,
) {
    let Some(upstream) = to.pick().and_then(|weighted| weighted.upstream.as_ref()) else {
        tracing::warn!(client = %connection.client, "the connection's upstream does not exist (yet)");
        return;
    };
    let began = Instant::now();
    let _active = upstream.begin();
    match connect(upstream, connection).await {
        Err(error) => tracing::warn!(upstream = upstream.name(), %error, "cannot reach the upstream"),
        Ok((stream, _server)) => {
            let (to_server, to_client) = copy_until_idle(client, stream, idle).await;
            access_log::tcp(connection, to_server, to_client, began.elapsed(), upstream.name());
        }
    }
}

async fn connect(upstream: &Upstream, connection: &Connection) -> io::Result<(ServerStream, Server)> {
    let mut last = io::Error::other("no healthy server");
    let mut tried = Vec::new();
    for _ in 0..=upstream.retries() {
        let Some(server) = upstream.pick(connection.client, &tried) else {
            upstream.counters.no_server.add();
            break;
        };
        tried.push(server.address);
        match upstream.connect(&server, connection, Alpn::None).await {
            Ok(stream) => return Ok((stream, server)),
            Err(error) => last = error,
        }
        upstream.counters.connect_failures.add();
    }
    Err(last)
}

/// Bytes to the server, and bytes to the client.
pub(crate) async fn copy_until_idle(
    client: impl AsyncRead + AsyncWrite + Unpin,
    server: impl AsyncRead + AsyncWrite + Unpin,
    idle: Duration,
) -> (u64, u64) {
    let activity = Arc::new(Activity::new());
    let mut client = Watched::new(client, &activity);
    let mut server = Watched::new(server, &activity);
    let watchdog = async {
        loop {
            let quiet = activity.quiet();
            if quiet >= idle {
                return;
            }
            tokio::time::sleep(idle - quiet).await;
        }
    };
    tokio::select! {
        _ = tokio::io::copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER, BUFFER) => {}
        () = watchdog => {}
    }
    (client.read, server.read)
}

struct Activity {
    began: Instant,
    last_ms: AtomicU64,
}

impl Activity {
    fn new() -> Self {
        Self { began: Instant::now(), last_ms: AtomicU64::new(0) }
    }

    fn touch(&self) {
        self.last_ms.store(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(0), Ordering::Relaxed);
    }

    fn quiet(&self) -> Duration {
        self.began.elapsed().saturating_sub(Duration::from_millis(self.last_ms.load(Ordering::Relaxed)))
    }
}

/// Notes when bytes move, and how many were read.
struct Watched<S> {
    stream: S,
    activity: Arc<Activity>,
    read: u64,
}

impl<S> Watched<S> {
    fn new(stream: S, activity: &Arc<Activity>) -> Self {
        Self { stream, activity: Arc::clone(activity), read: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, out);
        let count = out.filled().len() - before;
        if count > 0 {
            self.read += count as u64;
            self.activity.touch();
        }
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        if poll.is_ready() {
            self.activity.touch();
        }
        poll
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
