//! Tracing of a request: its spans.
//!
//! - `trace_context`: headers of the W3C Trace Context.
//! - `envoy`: spans in Envoy's form, for requests that `sampling` selects; `parts`: input of both forms.

pub(super) mod trace_context;

mod envoy;
mod parts;
mod sampling;

pub(super) use parts::{Attempt, Ended};

use super::request::{Request, forwarded_for::Stance, request_id::REQUEST_ID};
use crate::{
    connection::Connection,
    fraction::is_one_of,
    traces::{TraceRules, TraceSpans, Tracer, failed_if, of_server, of_tls, random_span, random_trace},
};
use envoy::{Begun, EnvoyTrace};
use http::{HeaderName, Method, Version, header};
use opentelemetry::{
    KeyValue,
    trace::{SpanId, SpanKind, Status, TraceId},
};
use opentelemetry_sdk::trace::SpanData;
use parts::short;
use quadrille_config::model::{Route, TraceParents, Tracing};
use std::sync::{Arc, atomic::Ordering};
use trace_context::{Parent, TRACESTATE};

/// The spans of a recorded request, while they are collected.
pub(super) struct Trace {
    tracer: Arc<Tracer>,
    spans: TraceSpans,
    /// Span of the sender of the request.
    parent: Option<SpanId>,
    span: SpanId,
    method: Method,
    attributes: Vec<KeyValue>,
    /// Span of the current attempt.
    attempt: SpanId,
    attempts: Vec<SpanData>,
    /// Envoy's tracing settings, where they apply.
    envoy: Option<Box<EnvoyTrace>>,
}

/// Maximum number of attempts that get a span.
const MOST_ATTEMPTS: usize = 16;

/// Continues the trace of the request or starts one, and updates the request's headers. Returns `None` if the request
/// is not recorded. `outside` marks clients whose trace decisions are ignored under Envoy's settings.
pub(super) fn begin(
    tracer: &Arc<Tracer>,
    request: &mut Request,
    connection: &Connection,
    outside: bool,
) -> Option<Box<Trace>> {
    match &tracer.rules {
        TraceRules::Own(model) => begin_own(tracer, model, request, connection),
        TraceRules::Envoy(model) => {
            let routes_decide = tracer.routes_decide;
            let Begun { envoy, ids, attributes } =
                envoy::begin(model, routes_decide, request, connection, outside)?;
            let envoy = Some(Box::new(envoy));
            Some(Box::new(Trace { envoy, ..Trace::new(tracer, request, ids, attributes) }))
        }
    }
}

fn begin_own(
    tracer: &Arc<Tracer>,
    model: &Tracing,
    request: &mut Request,
    connection: &Connection,
) -> Option<Box<Trace>> {
    let believed = match model.parents {
        TraceParents::TrustedProxies => request.sender.stance == Stance::Believe,
        TraceParents::All => true,
        TraceParents::Off => false,
    };
    let parent = trace_context::parent(&request.headers).filter(|_| believed);
    let span = random_span();
    let id = match parent {
        // The headers are forwarded unchanged.
        Some(Parent { is_sampled: false, .. }) => return None,
        Some(Parent { trace, .. }) => trace,
        None => {
            request.headers.remove(TRACESTATE);
            random_trace()
        }
    };
    let is_recorded = parent.is_some() || is_one_of(model.parts);
    trace_context::set(&mut request.headers, id, span, is_recorded);
    is_recorded.then(|| {
        let parent = parent.map(|parent| parent.span);
        Box::new(Trace::new(tracer, request, (id, parent, span), described(request, connection)))
    })
}

/// Attributes with the names of OpenTelemetry's semantic conventions for HTTP. The query is omitted, as it may
/// contain secrets.
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
        attributes.extend(of_tls(connection));
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

fn described_end(ended: &Ended<'_>) -> Vec<KeyValue> {
    let mut attributes = Vec::new();
    if ended.status > 0 {
        attributes.push(KeyValue::new("http.response.status_code", i64::from(ended.status)));
    }
    if let Some(upstream) = ended.upstream {
        attributes.push(KeyValue::new("quadrille.upstream", upstream.to_owned()));
    }
    let without = if ended.status == 0 { "no response" } else { "status" };
    if let Some(kind) = ended.error.or(ended.has_failed().then_some(without)) {
        attributes.push(KeyValue::new("error.type", kind));
    }
    attributes
}

/// Returns the name of a known method. Other methods, which clients may invent, must not become span names.
fn method_name(method: &Method) -> &str {
    match method.as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "CONNECT" | "OPTIONS" | "TRACE" | "PATCH") => {
            known
        }
        _ => "_OTHER",
    }
}

impl Trace {
    /// Starts a trace. `ids` are the IDs of the trace, of the parent span and of the new span.
    fn new(
        tracer: &Arc<Tracer>,
        request: &Request,
        ids: (TraceId, Option<SpanId>, SpanId),
        attributes: Vec<KeyValue>,
    ) -> Self {
        let (id, parent, span) = ids;
        Self {
            tracer: Arc::clone(tracer),
            spans: TraceSpans::begin(id, trace_context::state(&request.headers)),
            parent,
            span,
            method: request.method.clone(),
            attributes,
            attempt: SpanId::INVALID,
            attempts: Vec::new(),
            envoy: None,
        }
    }

    /// Sets the route of the request. Returns `None` if the route disables recording.
    pub(super) fn route(mut self: Box<Self>, route: &Route, request: &mut Request) -> Option<Box<Self>> {
        let ids = (self.spans.id, self.span);
        match &mut self.envoy {
            None => self.attributes.push(KeyValue::new("quadrille.route", route.place.to_string())),
            Some(envoy) => {
                if !envoy.route(route.tracing.as_deref(), request, ids, &mut self.attributes) {
                    return None;
                }
            }
        }
        Some(self)
    }

    /// Returns whether each attempt has a span.
    fn has_attempts(&self) -> bool {
        self.envoy.as_ref().is_none_or(|envoy| envoy.has_attempts())
    }

    /// Starts the span of an attempt.
    pub(super) fn begin_attempt(&mut self) {
        self.attempt = random_span();
    }

    /// Sets the headers of an upstream request to the current attempt, unless the route removed the header.
    pub(super) fn tell_server(&self, headers: &mut http::HeaderMap) {
        if self.has_attempts() && headers.contains_key(trace_context::TRACEPARENT) {
            trace_context::set(headers, self.spans.id, self.attempt, true);
        }
    }

    /// Ends the span of the current attempt.
    pub(super) fn end_attempt(&mut self, attempt: &Attempt<'_>) {
        if self.attempts.len() >= MOST_ATTEMPTS || !self.has_attempts() {
            return;
        }
        let (name, attributes, status) = match &self.envoy {
            Some(envoy) => {
                let (name, attributes) = envoy.attempt(attempt, self.attempts.len());
                // For a client span, a 4xx is an error too; a missing response is reported in an attribute.
                (name, attributes, failed_if(attempt.status.is_some_and(|status| status >= 400)))
            }
            None => self.described_attempt(attempt),
        };
        let span =
            self.spans.span(self.attempt, self.span, SpanKind::Client, name, attempt.began, attempt.took);
        self.attempts.push(SpanData { attributes, status, ..span });
    }

    /// Returns the name, the attributes and the status of an attempt.
    fn described_attempt(&self, attempt: &Attempt<'_>) -> (String, Vec<KeyValue>, Status) {
        let mut attributes = vec![
            KeyValue::new("http.request.method", method_name(&self.method).to_owned()),
            KeyValue::new("quadrille.upstream", attempt.upstream.to_owned()),
        ];
        attributes.extend(of_server(attempt.server));
        if !self.attempts.is_empty() {
            attributes.push(KeyValue::new("http.request.resend_count", self.attempts.len() as i64));
        }
        let status = match attempt.status {
            Some(status) => {
                attributes.push(KeyValue::new("http.response.status_code", i64::from(status)));
                // For a client span, a 4xx is an error too.
                failed_if(status >= 400)
            }
            None => {
                attributes.push(KeyValue::new("error.type", "no response"));
                failed_if(true)
            }
        };
        (method_name(&self.method).to_owned(), attributes, status)
    }

    /// Ends the span of the request and exports all spans.
    pub(super) fn finish(mut self, ended: &Ended<'_>, connection: &Connection) {
        if self.envoy.as_ref().is_some_and(|envoy| !envoy.is_recorded()) {
            // The request was not routed.
            return;
        }
        let mut attributes = std::mem::take(&mut self.attributes);
        let (kind, name) = match &mut self.envoy {
            Some(envoy) => {
                attributes.extend(envoy.ended(ended));
                envoy.kind_and_name()
            }
            None => {
                attributes.extend(described_end(ended));
                (SpanKind::Server, method_name(&self.method).to_owned())
            }
        };
        let parent = self.parent.unwrap_or(SpanId::INVALID);
        let failed = ended.has_failed() || kind == SpanKind::Client && ended.status >= 400;
        let began = self.spans.began();
        let span = self.spans.span(self.span, parent, kind, name, began, began.elapsed());
        let mut spans = vec![SpanData {
            parent_span_is_remote: self.parent.is_some(),
            attributes,
            status: failed_if(failed),
            ..span
        }];
        if connection.tls && !connection.handshake_traced.swap(true, Ordering::Relaxed) {
            self.spans.handshake(self.span, connection, &mut spans);
        }
        spans.append(&mut self.attempts);
        self.tracer.exporter.record(spans);
    }
}
