//! The spans of one request.

mod envoy;
mod parts;
mod sampling;

pub(super) use parts::{Attempt, Ended};

use super::{
    forwarded_for::Stance,
    request::Request,
    request_id::REQUEST_ID,
    trace_context::{self, Parent, TRACESTATE},
};
use crate::{
    connection::Connection,
    share::is_one_of,
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

/// The spans of a request that is recorded, as they come together.
pub(super) struct Trace {
    tracer: Arc<Tracer>,
    spans: TraceSpans,
    /// Of whoever has sent the request.
    parent: Option<SpanId>,
    span: SpanId,
    method: Method,
    attributes: Vec<KeyValue>,
    /// Of the attempt that is under way.
    attempt: SpanId,
    attempts: Vec<SpanData>,
    /// Where Envoy's configuration says what is traced.
    envoy: Option<Box<EnvoyTrace>>,
}

/// Attempts that are told of, at most.
const MOST_ATTEMPTS: usize = 16;

/// Continues the trace that the request comes with, or begins one, and has its headers say so. `None` if it is not
/// recorded. `outside` are clients whose word about that is not taken where Envoy's configuration says so.
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
        // Its headers go on as they are.
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

/// What clients make up is no name of a span.
fn method_name(method: &Method) -> &str {
    match method.as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "CONNECT" | "OPTIONS" | "TRACE" | "PATCH") => {
            known
        }
        _ => "_OTHER",
    }
}

impl Trace {
    /// Begins now. `ids` are those of the trace, of the span that it continues, and of its own.
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

    /// The request takes this route; `None` if the route says that it is not recorded.
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

    /// Whether each attempt has a span.
    fn has_attempts(&self) -> bool {
        self.envoy.as_ref().is_none_or(|envoy| envoy.has_attempts())
    }

    /// Begins an attempt at a server.
    pub(super) fn begin_attempt(&mut self) {
        self.attempt = random_span();
    }

    /// Makes a request for a server one of the attempt that is under way, unless the route has taken the header away.
    pub(super) fn tell_server(&self, headers: &mut http::HeaderMap) {
        if self.has_attempts() && headers.contains_key(trace_context::TRACEPARENT) {
            trace_context::set(headers, self.spans.id, self.attempt, true);
        }
    }

    /// Ends the attempt that is under way.
    pub(super) fn end_attempt(&mut self, attempt: &Attempt<'_>) {
        if self.attempts.len() >= MOST_ATTEMPTS || !self.has_attempts() {
            return;
        }
        let (name, attributes, status) = match &self.envoy {
            Some(envoy) => {
                let (name, attributes) = envoy.attempt(attempt, self.attempts.len());
                // As clients see it, what they did wrong is an error too; that there is no answer is said otherwise.
                (name, attributes, failed_if(attempt.status.is_some_and(|status| status >= 400)))
            }
            None => self.described_attempt(attempt),
        };
        let span =
            self.spans.span(self.attempt, self.span, SpanKind::Client, name, attempt.began, attempt.took);
        self.attempts.push(SpanData { attributes, status, ..span });
    }

    /// Its name, what it says, and whether it has failed.
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
                // As clients see it, what they did wrong is an error too.
                failed_if(status >= 400)
            }
            None => {
                attributes.push(KeyValue::new("error.type", "no response"));
                failed_if(true)
            }
        };
        (method_name(&self.method).to_owned(), attributes, status)
    }

    /// Ends the request, and hands all spans over.
    pub(super) fn finish(mut self, ended: &Ended<'_>, connection: &Connection) {
        if self.envoy.as_ref().is_some_and(|envoy| !envoy.is_recorded()) {
            // Nothing was routed.
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
