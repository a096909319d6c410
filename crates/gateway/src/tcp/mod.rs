//! TCP mode: forwards the stream, after TLS termination, to the upstream unchanged, and back.

mod copy;
mod trace;

use crate::{
    connection::Connection,
    telemetry::{access_log, rate_limited_log::Paced},
    traces::Tracer,
    upstream::{Alpn, RequestOutcome, Server, ServerAddress, ServerStream, Upstream, WeightedUpstreams},
};
pub(crate) use copy::{Stream, copy_both_ways};
use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};
use trace::Trace;

/// Settings of TCP mode.
pub(crate) struct TcpSettings {
    pub(crate) to: WeightedUpstreams,
    /// Tracer, if connections are traced.
    pub(crate) tracer: Option<Arc<Tracer>>,
}

/// Forwards data until both sides have closed, no data is transferred for the idle time, or one side has not read for
/// as long.
pub(crate) async fn pass(
    mut client: impl Stream,
    connection: &Arc<Connection>,
    settings: &TcpSettings,
    idle: Duration,
) {
    let mut trace = settings.tracer.as_ref().and_then(|tracer| Trace::begin(tracer, connection));
    let Some(upstream) = settings.to.pick().and_then(|weighted| weighted.upstream.as_ref()) else {
        if let Some(omitted) = MISSING.is_due() {
            tracing::warn!(client = %connection.client, omitted, "the connection's upstream does not exist (yet)");
        }
        return;
    };
    if let Some(trace) = &mut trace {
        trace.routed(upstream.name());
    }
    let began = Instant::now();
    let Ok(_active) = upstream.begin_connection() else {
        tracing::debug!(upstream = upstream.name(), "the upstream has reached its connection limit");
        return;
    };
    // Meanwhile, the connection does not wait for its client.
    connection.clock.begin_request();
    // Boxed, so that its memory is freed while data is forwarded.
    let connected = Box::pin(connect(upstream, connection, trace.as_deref_mut())).await;
    connection.clock.end_request();
    match connected {
        Err((error, server)) => upstream.warn(server.as_ref(), &error, "cannot reach the upstream"),
        Ok((mut server, _server)) => {
            let forward = |at: tokio::time::Instant| connection.clock.forward(at.into_std());
            let copied = copy_both_ways(&mut client, &mut server, idle, forward).await;
            let (to_server, to_client) = (copied.from_client, copied.from_server);
            if let Some(trace) = &mut trace {
                trace.copied(copied);
            }
            access_log::tcp(connection, to_server, to_client, began.elapsed(), upstream.name());
        }
    }
}

/// Warning about connections without an upstream.
static MISSING: Paced = Paced::new();

/// Connects to one of the upstream's servers. An error has the last one that was tried.
async fn connect(
    upstream: &Upstream,
    connection: &Connection,
    mut trace: Option<&mut Trace>,
) -> Result<(ServerStream, Server), (io::Error, Option<ServerAddress>)> {
    let mut last = io::Error::other("no healthy endpoint");
    let mut tried = Vec::new();
    for _ in 0..=upstream.model().retries {
        let Connection { client, original_destination, .. } = *connection;
        let Some(server) =
            upstream.pick(client, original_destination, Some(Upstream::point_of(client)), &tried)
        else {
            upstream.counters.no_server.add();
            break;
        };
        tried.push(server.address.clone());
        let asked = Instant::now();
        let connected = upstream.connect(&server, connection, Alpn::None).await;
        if let Some(trace) = &mut trace {
            trace.attempted(&server.address, asked, connected.is_ok());
        }
        match connected {
            Ok(stream) => {
                upstream.observe(&server, RequestOutcome::Status(200));
                return Ok((stream, server));
            }
            Err(error) => last = error,
        }
        upstream.observe(&server, RequestOutcome::NoAnswer);
        upstream.counters.connect_failures.add();
    }
    Err((last, tried.pop()))
}
