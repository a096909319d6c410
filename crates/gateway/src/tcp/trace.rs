//! Trace spans of a TCP connection.

use super::copy::{Copied, CopyEnd};
use crate::{
    connection::Connection,
    fraction::is_one_of,
    traces::{
        TraceRules, TraceSpans, Tracer, before, failed_if, of_server, of_tls, random_span, random_trace,
    },
    upstream::ServerAddress,
};
use opentelemetry::{
    KeyValue,
    trace::{SpanId, SpanKind, TraceState},
};
use opentelemetry_sdk::trace::SpanData;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

/// Spans of a traced connection, which ends when this is dropped.
pub(super) struct Trace {
    tracer: Arc<Tracer>,
    connection: Arc<Connection>,
    spans: TraceSpans,
    span: SpanId,
    began: Instant,
    attempts: Vec<SpanData>,
    upstream: Option<String>,
    copied: (u64, u64),
    end: End,
}

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Ended before it was served.
    NoUpstream,
    Overloaded,
    Unreachable,
    /// Ended while it was served.
    CutOff,
    Closed,
    Idle,
    Failed,
}

impl End {
    fn name(self) -> &'static str {
        match self {
            Self::NoUpstream => "no upstream",
            Self::Overloaded => "upstream overloaded",
            Self::Unreachable => "no connection",
            Self::CutOff => "cut off",
            Self::Closed => "closed",
            Self::Idle => "idle",
            Self::Failed => "failed",
        }
    }

    fn is_failure(self) -> bool {
        matches!(self, Self::NoUpstream | Self::Overloaded | Self::Unreachable | Self::Failed)
    }
}

impl From<CopyEnd> for End {
    fn from(end: CopyEnd) -> Self {
        match end {
            CopyEnd::Closed => Self::Closed,
            CopyEnd::Failed => Self::Failed,
            CopyEnd::Idle => Self::Idle,
        }
    }
}

impl Trace {
    /// Starts a trace; `None` if the connection is not sampled. There is no parent trace.
    pub(super) fn begin(tracer: &Arc<Tracer>, connection: &Arc<Connection>) -> Option<Box<Self>> {
        let TraceRules::Own(model) = &tracer.rules else { return None };
        is_one_of(model.parts).then(|| {
            Box::new(Self {
                tracer: Arc::clone(tracer),
                connection: Arc::clone(connection),
                spans: TraceSpans::begin(random_trace(), TraceState::default()),
                span: random_span(),
                began: before(connection.clock.accepted(), connection.handshake),
                attempts: Vec::new(),
                upstream: None,
                copied: (0, 0),
                end: End::NoUpstream,
            })
        })
    }

    /// Sets the upstream.
    pub(super) fn routed(&mut self, upstream: &str) {
        self.upstream = Some(upstream.to_owned());
        self.end = End::Overloaded;
    }

    /// Records an attempt to connect to an endpoint, which began at `began` and has ended.
    pub(super) fn attempted(&mut self, server: &ServerAddress, began: Instant, is_connected: bool) {
        let mut attributes = of_server(server);
        if !is_connected {
            attributes.push(KeyValue::new("error.type", End::Unreachable.name()));
        }
        let span =
            self.spans.span(random_span(), self.span, SpanKind::Client, "connect", began, began.elapsed());
        self.attempts.push(SpanData { attributes, status: failed_if(!is_connected), ..span });
        self.end = if is_connected { End::CutOff } else { End::Unreachable };
    }

    /// Records the transferred bytes.
    pub(super) fn copied(&mut self, copied: Copied) {
        self.copied = (copied.from_client, copied.from_server);
        self.end = copied.end.into();
    }

    fn described(&self) -> Vec<KeyValue> {
        let (client, connection) = (self.connection.client, &self.connection);
        let (received, sent) = self.copied;
        let mut attributes = vec![
            KeyValue::new("network.transport", "tcp"),
            KeyValue::new("client.address", client.ip().to_canonical().to_string()),
            KeyValue::new("client.port", i64::from(client.port())),
            KeyValue::new("quadrille.bytes_received", count(received)),
            KeyValue::new("quadrille.bytes_sent", count(sent)),
            KeyValue::new("quadrille.end", self.end.name()),
        ];
        if connection.tls {
            attributes.extend(of_tls(connection));
        }
        attributes.extend(connection.sni.clone().map(|name| KeyValue::new("server.address", name)));
        attributes.extend(self.upstream.clone().map(|name| KeyValue::new("quadrille.upstream", name)));
        if self.end.is_failure() {
            attributes.push(KeyValue::new("error.type", self.end.name()));
        }
        attributes
    }
}

fn count(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl Drop for Trace {
    fn drop(&mut self) {
        let (began, attributes) = (self.began, self.described());
        let status = failed_if(self.end.is_failure());
        let span =
            self.spans.span(self.span, SpanId::INVALID, SpanKind::Server, "tcp", began, began.elapsed());
        let mut spans = vec![SpanData { attributes, status, ..span }];
        if self.connection.tls && !self.connection.handshake_traced.swap(true, Ordering::Relaxed) {
            self.spans.handshake(self.span, &self.connection, &mut spans);
        }
        spans.append(&mut self.attempts);
        self.tracer.exporter.record(spans);
    }
}
