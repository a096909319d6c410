//! TCP mode: what comes in, TLS taken off, goes to the upstream as it is, and back.

mod copy;

use crate::{
    connection::Connection,
    telemetry::access_log,
    upstream::{Server, Upstream, WeightedUpstreams, proxy_header},
};
use copy::{Stream, copy_both_ways};
use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{io::AsyncWriteExt, net::TcpStream};

/// Passes bytes until both sides have closed, nothing has moved for the idle time, or one side has not read for as
/// long.
pub(crate) async fn pass(
    mut client: impl Stream,
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
    // In a box of its own, which is gone while bytes are passed.
    let connected = Box::pin(connect(upstream, connection)).await;
    match connected {
        Err(error) => tracing::warn!(upstream = upstream.name(), %error, "cannot reach the upstream"),
        Ok((mut server, _server)) => {
            let copied = copy_both_ways(&mut client, &mut *server, idle).await;
            let (to_server, to_client) = (copied.from_client, copied.from_server);
            access_log::tcp(connection, to_server, to_client, began.elapsed(), upstream.name());
        }
    }
}

async fn connect(upstream: &Upstream, connection: &Connection) -> io::Result<(Box<dyn Stream>, Server)> {
    let mut last = io::Error::other("no healthy server");
    let mut tried = Vec::new();
    for _ in 0..=upstream.retries() {
        let Some(server) = upstream.pick(connection.client, &tried) else {
            upstream.counters.no_server.add();
            break;
        };
        tried.push(server.address);
        let attempt = connect_to(upstream, &server, connection);
        match tokio::time::timeout(upstream.model().timeouts.connect, attempt).await {
            Ok(Ok(stream)) => return Ok((stream, server)),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
        upstream.counters.connect_failures.add();
    }
    Err(last)
}

async fn connect_to(
    upstream: &Upstream,
    server: &Server,
    connection: &Connection,
) -> io::Result<Box<dyn Stream>> {
    let mut tcp = TcpStream::connect(server.address).await?;
    tcp.set_nodelay(true)?;
    let header = proxy_header(upstream.model().proxy_protocol, connection.client, connection.local);
    tcp.write_all(&header).await?;
    match upstream.tls() {
        None => Ok(Box::new(tcp)),
        Some(tls) => Ok(Box::new(tls.connect(server, tcp).await?)),
    }
}
