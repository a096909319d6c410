//! TCP mode: what comes in, TLS taken off, goes to the upstream as it is, and back.

mod copy;

use crate::{
    connection::Connection,
    telemetry::access_log,
    upstream::{Alpn, RequestOutcome, Server, ServerStream, Upstream, WeightedUpstreams},
};
pub(crate) use copy::{Stream, copy_both_ways};
use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

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
    let Ok(_active) = upstream.begin_connection() else {
        tracing::debug!(upstream = upstream.name(), "the upstream has as many connections as it may have");
        return;
    };
    // In a box of its own, which is gone while bytes are passed.
    let connected = Box::pin(connect(upstream, connection)).await;
    match connected {
        Err(error) => tracing::warn!(upstream = upstream.name(), %error, "cannot reach the upstream"),
        Ok((mut server, _server)) => {
            let copied = copy_both_ways(&mut client, &mut server, idle).await;
            let (to_server, to_client) = (copied.from_client, copied.from_server);
            access_log::tcp(connection, to_server, to_client, began.elapsed(), upstream.name());
        }
    }
}

async fn connect(upstream: &Upstream, connection: &Connection) -> io::Result<(ServerStream, Server)> {
    let mut last = io::Error::other("no healthy server");
    let mut tried = Vec::new();
    for _ in 0..=upstream.retries() {
        let Connection { client, original_destination, .. } = *connection;
        let Some(server) =
            upstream.pick(client, original_destination, Some(Upstream::point_of(client)), &tried)
        else {
            upstream.counters.no_server.add();
            break;
        };
        tried.push(server.address.clone());
        match upstream.connect(&server, connection, Alpn::None).await {
            Ok(stream) => {
                upstream.observe(&server, RequestOutcome::Status(200));
                return Ok((stream, server));
            }
            Err(error) => last = error,
        }
        upstream.observe(&server, RequestOutcome::NoAnswer);
        upstream.counters.connect_failures.add();
    }
    Err(last)
}
