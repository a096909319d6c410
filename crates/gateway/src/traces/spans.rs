//! Common parts of the spans of a trace, and the spans of a connection's handshake.

use crate::{
    connection::{Connection, KeyTiming},
    upstream::ServerAddress,
};
use opentelemetry::{
    InstrumentationScope, KeyValue, Value,
    trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::trace::SpanData;
use std::{
    borrow::Cow,
    sync::LazyLock,
    time::{Duration, Instant, SystemTime},
};

/// A trace that is recorded by this process.
pub(crate) struct TraceSpans {
    pub(crate) id: TraceId,
    state: TraceState,
    /// Start of the trace, on both clocks.
    began: (Instant, SystemTime),
}

static SCOPE: LazyLock<InstrumentationScope> = LazyLock::new(|| {
    InstrumentationScope::builder("quadrille").with_version(env!("CARGO_PKG_VERSION")).build()
});

pub(crate) fn random_span() -> SpanId {
    SpanId::from(fastrand::u64(1..))
}

pub(crate) fn random_trace() -> TraceId {
    TraceId::from(fastrand::u128(1..))
}

/// Subtracts a duration from an instant.
pub(crate) fn before(instant: Instant, time: Duration) -> Instant {
    instant.checked_sub(time).unwrap_or(instant)
}

pub(crate) fn failed_if(failed: bool) -> Status {
    if failed { Status::error("") } else { Status::Unset }
}

impl TraceSpans {
    /// Begins a trace, whose first span starts now.
    pub(crate) fn begin(id: TraceId, state: TraceState) -> Self {
        Self { id, state, began: (Instant::now(), SystemTime::now()) }
    }

    pub(crate) fn began(&self) -> Instant {
        self.began.0
    }

    pub(crate) fn span(
        &self,
        span: SpanId,
        parent: SpanId,
        span_kind: SpanKind,
        name: impl Into<Cow<'static, str>>,
        began: Instant,
        took: Duration,
    ) -> SpanData {
        let (instant, time) = self.began;
        let start_time = match began.checked_duration_since(instant) {
            Some(after) => time + after,
            None => time - instant.duration_since(began),
        };
        SpanData {
            span_context: SpanContext::new(self.id, span, TraceFlags::SAMPLED, false, self.state.clone()),
            parent_span_id: parent,
            parent_span_is_remote: false,
            span_kind,
            name: name.into(),
            start_time,
            end_time: start_time + took,
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: Default::default(),
            links: Default::default(),
            status: Status::Unset,
            instrumentation_scope: SCOPE.clone(),
        }
    }

    /// Adds the spans of a connection's handshake, with the private-key operation.
    pub(crate) fn handshake(&self, parent: SpanId, connection: &Connection, spans: &mut Vec<SpanData>) {
        let (handshake, took) = (random_span(), connection.handshake);
        let began = before(connection.clock.accepted(), took);
        let span = self.span(handshake, parent, SpanKind::Internal, "tls.handshake", began, took);
        spans.push(SpanData { attributes: of_tls(connection).into(), ..span });
        let Some(KeyTiming { key_type, waited, computed, batch, done, .. }) = connection.key else { return };
        let attributes = vec![
            KeyValue::new("quadrille.key_type", Value::from(key_type.to_string())),
            KeyValue::new("quadrille.batch", batch as i64),
        ];
        let computing = before(done, computed);
        let waiting = before(computing, waited);
        for (name, began, took) in [("key.wait", waiting, waited), ("key.compute", computing, computed)] {
            let span = self.span(random_span(), handshake, SpanKind::Internal, name, began, took);
            spans.push(SpanData { attributes: attributes.clone(), ..span });
        }
    }
}

/// Returns the attributes of a connection's TLS parameters.
pub(crate) fn of_tls(connection: &Connection) -> [KeyValue; 3] {
    [
        KeyValue::new("tls.protocol.version", connection.version),
        KeyValue::new("tls.cipher", connection.cipher),
        KeyValue::new("tls.resumed", connection.resumed),
    ]
}

/// Returns the attributes of an endpoint.
pub(crate) fn of_server(server: &ServerAddress) -> Vec<KeyValue> {
    match server {
        ServerAddress::Ip(address) => vec![
            KeyValue::new("server.address", address.ip().to_string()),
            KeyValue::new("server.port", i64::from(address.port())),
        ],
        // The semantic conventions require the path here, and no port.
        ServerAddress::Unix(path) => vec![KeyValue::new("server.address", path.display().to_string())],
    }
}
