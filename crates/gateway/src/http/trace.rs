//! The spans of one request.

use super::{
    forwarded_for::Stance,
    request::Request,
    request_id::REQUEST_ID,
    share,
    trace_context::{self, Parent, TRACESTATE},
};
use crate::{
    connection::{Connection, KeyTiming},
    traces::Tracer,
    upstream::ServerAddress,
};
use http::{HeaderName, Method, Version, header};
use opentelemetry::{
    InstrumentationScope, KeyValue, Value,
    trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::trace::SpanData;
use quadrille_config::model::TraceParents;
use std::{
    borrow::Cow,
    sync::{Arc, LazyLock, atomic::Ordering},
    time::{Duration, Instant, SystemTime},
};

/// The spans of a request that is recorded, as they come together.
pub(super) struct Trace {
    tracer: Arc<Tracer>,
    id: TraceId,
    state: TraceState,
    /// Of whoever has sent the request.
    parent: Option<SpanId>,
    span: SpanId,
    /// The same moment twice.
    began: (Instant, SystemTime),
    method: Method,
    attributes: Vec<KeyValue>,
    /// Of the attempt that is under way.
    attempt: SpanId,
    attempts: Vec<SpanData>,
}

/// One attempt at a server.
pub(super) struct Attempt<'a> {
    pub(super) began: Instant,
    pub(super) took: Duration,
    pub(super) upstream: &'a str,
    pub(super) server: &'a ServerAddress,
    /// Of the response, if there was one.
    pub(super) status: Option<u16>,
}

/// Attempts that are told of, at most.
const MOST_ATTEMPTS: usize = 16;
/// Characters of what clients say, at most.
const LONGEST: usize = 1024;

static SCOPE: LazyLock<InstrumentationScope> = LazyLock::new(|| {
    InstrumentationScope::builder("quadrille").with_version(env!("CARGO_PKG_VERSION")).build()
});

/// Continues the trace that the request comes with, or begins one, and has its headers say so. `None` if it is not
/// recorded.
pub(super) fn begin(
    tracer: &Arc<Tracer>,
    request: &mut Request,
    connection: &Connection,
) -> Option<Box<Trace>> {
    let believed = match tracer.model.parents {
        TraceParents::TrustedProxies => request.sender.stance == Stance::Believe,
        TraceParents::All => true,
        TraceParents::Off => false,
    };
    let parent = trace_context::parent(&request.headers).filter(|_| believed);
    let span = random_span();
    let id = match parent {
        // Its headers go on as they are.
        Some(Parent { is_sampled: false, .. }) => return None,
        Some(Parent { trace, .. }) => trace,
        None => {
            request.headers.remove(TRACESTATE);
            TraceId::from(fastrand::u128(1..))
        }
    };
    let is_recorded = parent.is_some() || share::is_one_of(tracer.model.parts);
    trace_context::set(&mut request.headers, id, span, is_recorded);
    is_recorded.then(|| {
        Box::new(Trace {
            id,
            state: trace_context::state(&request.headers),
            parent: parent.map(|parent| parent.span),
            span,
            began: (Instant::now(), SystemTime::now()),
            method: request.method.clone(),
            attributes: described(request, connection),
            attempt: SpanId::INVALID,
            attempts: Vec::new(),
            tracer: Arc::clone(tracer),
        })
    })
}

fn random_span() -> SpanId {
    SpanId::from(fastrand::u64(1..))
}

/// By the names of OpenTelemetry's semantic conventions for HTTP. Queries may hold secrets.
fn described(request: &Request, connection: &Connection) -> Vec<KeyValue> {
    let version = match request.version {
        Version::HTTP_3 => "3",
        Version::HTTP_2 => "2",
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    };
    let mut attributes = vec![
        KeyValue::new("http.request.method", method_name(&request.method).to_owned()),
        KeyValue::new("url.scheme", connection.scheme()),
        KeyValue::new("url.path", short(request.uri.path())),
        KeyValue::new("server.address", short(request.host())),
        KeyValue::new("network.protocol.name", "http"),
        KeyValue::new("network.protocol.version", version),
        KeyValue::new("client.address", request.sender.client.ip().to_canonical().to_string()),
    ];
    if connection.tls {
        attributes.push(KeyValue::new("tls.protocol.version", connection.version));
        attributes.push(KeyValue::new("tls.cipher", connection.cipher));
        attributes.push(KeyValue::new("tls.resumed", connection.resumed));
    }
    let mut header = |attribute: &'static str, name: HeaderName| {
        if let Some(said) = request.headers.get(name).and_then(|value| value.to_str().ok()) {
            attributes.push(KeyValue::new(attribute, short(said)));
        }
    };
    header("user_agent.original", header::USER_AGENT);
    header("http.request.header.x-request-id", REQUEST_ID);
    attributes
}

/// What clients make up is no name of a span.
fn method_name(method: &Method) -> &str {
    match method.as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "CONNECT" | "OPTIONS" | "TRACE" | "PATCH") => {
            known
        }
        _ => "_OTHER",
    }
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

impl Trace {
    /// Where the request was routed.
    pub(super) fn route(&mut self, place: String) {
        self.attributes.push(KeyValue::new("quadrille.route", place));
    }

    /// Begins an attempt at a server.
    pub(super) fn begin_attempt(&mut self) {
        self.attempt = random_span();
    }

    /// Makes a request for a server one of the attempt that is under way, unless the route has taken the header away.
    pub(super) fn tell_server(&self, headers: &mut http::HeaderMap) {
        if headers.contains_key(trace_context::TRACEPARENT) {
            trace_context::set(headers, self.id, self.attempt, true);
        }
    }

    /// Ends the attempt that is under way.
    pub(super) fn end_attempt(&mut self, attempt: &Attempt<'_>) {
        if self.attempts.len() >= MOST_ATTEMPTS {
            return;
        }
        let mut attributes = vec![
            KeyValue::new("http.request.method", method_name(&self.method).to_owned()),
            KeyValue::new("quadrille.upstream", attempt.upstream.to_owned()),
        ];
        match attempt.server {
            ServerAddress::Ip(address) => attributes.extend([
                KeyValue::new("server.address", address.ip().to_string()),
                KeyValue::new("server.port", i64::from(address.port())),
            ]),
            // The semantic conventions have the path here, and no port.
            ServerAddress::Unix(path) => {
                attributes.push(KeyValue::new("server.address", path.display().to_string()));
            }
        }
        if !self.attempts.is_empty() {
            attributes.push(KeyValue::new("http.request.resend_count", self.attempts.len() as i64));
        }
        let status = match attempt.status {
            Some(status) => {
                attributes.push(KeyValue::new("http.response.status_code", i64::from(status)));
                // As clients see it, what they did wrong is an error too.
                failed_if(status >= 400)
            }
            None => {
                attributes.push(KeyValue::new("error.type", "no response"));
                failed_if(true)
            }
        };
        let name = method_name(&self.method).to_owned();
        let span = self.data(self.attempt, self.span, SpanKind::Client, name, attempt.began, attempt.took);
        self.attempts.push(SpanData { attributes, status, ..span });
    }

    /// Ends the request, and hands all spans over.
    pub(super) fn finish(
        mut self,
        status: u16,
        error: Option<&'static str>,
        upstream: Option<&str>,
        connection: &Connection,
    ) {
        let mut attributes = std::mem::take(&mut self.attributes);
        if status > 0 {
            attributes.push(KeyValue::new("http.response.status_code", i64::from(status)));
        }
        if let Some(upstream) = upstream {
            attributes.push(KeyValue::new("quadrille.upstream", upstream.to_owned()));
        }
        let failed = status == 0 || status >= 500;
        if let Some(kind) = error.or(failed.then_some(if status == 0 { "no response" } else { "status" })) {
            attributes.push(KeyValue::new("error.type", kind));
        }
        let parent = self.parent.unwrap_or(SpanId::INVALID);
        let (began, name) = (self.began.0, method_name(&self.method).to_owned());
        let span = self.data(self.span, parent, SpanKind::Server, name, began, began.elapsed());
        let mut spans = vec![SpanData {
            parent_span_is_remote: self.parent.is_some(),
            attributes,
            status: failed_if(failed),
            ..span
        }];
        if connection.tls && !connection.handshake_traced.swap(true, Ordering::Relaxed) {
            self.handshake(connection, &mut spans);
        }
        spans.append(&mut self.attempts);
        self.tracer.exporter.record(spans);
    }

    /// The handshake is part of the first request's trace, with the private-key operation.
    fn handshake(&self, connection: &Connection, spans: &mut Vec<SpanData>) {
        let (handshake, took) = (random_span(), connection.handshake);
        let began = before(connection.clock.accepted(), took);
        let span = self.data(handshake, self.span, SpanKind::Internal, "tls.handshake", began, took);
        let attributes = vec![
            KeyValue::new("tls.protocol.version", connection.version),
            KeyValue::new("tls.cipher", connection.cipher),
            KeyValue::new("tls.resumed", connection.resumed),
        ];
        spans.push(SpanData { attributes, ..span });
        let Some(KeyTiming { key_type, waited, computed, batch, done, .. }) = connection.key else { return };
        let attributes = vec![
            KeyValue::new("quadrille.key_type", Value::from(key_type.to_string())),
            KeyValue::new("quadrille.batch", batch as i64),
        ];
        let computing = before(done, computed);
        let waiting = before(computing, waited);
        for (name, began, took) in [("key.wait", waiting, waited), ("key.compute", computing, computed)] {
            let span = self.data(random_span(), handshake, SpanKind::Internal, name, began, took);
            spans.push(SpanData { attributes: attributes.clone(), ..span });
        }
    }

    fn data(
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
}

fn before(instant: Instant, time: Duration) -> Instant {
    instant.checked_sub(time).unwrap_or(instant)
}

fn failed_if(failed: bool) -> Status {
    if failed { Status::error("") } else { Status::Unset }
}
