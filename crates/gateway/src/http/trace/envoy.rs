//! Spans with Envoy's names and attributes, where its configuration requests them.

use super::{
    parts::{Attempt, Ended, short},
    sampling::{CLIENT_TRACE_ID, Said},
    trace_context::{self, TRACEPARENT, TRACESTATE},
};
use crate::{
    connection::Connection,
    http::request::{Request, request_id::REQUEST_ID},
    traces::{random_span, random_trace},
    upstream::ServerAddress,
};
use http::{HeaderMap, HeaderName, Version, header};
use opentelemetry::{
    KeyValue,
    trace::{SpanId, SpanKind, TraceId},
};
use quadrille_config::model::{HttpTracing, RouteTracing, TraceTag, TraceTagValue};
use std::sync::Arc;

const DECORATOR: HeaderName = HeaderName::from_static("x-envoy-decorator-operation");
const DOWNSTREAM_CLUSTER: HeaderName = HeaderName::from_static("x-envoy-downstream-service-cluster");

/// Additional state of a trace under Envoy's configuration.
pub(super) struct EnvoyTrace {
    model: Arc<HttpTracing>,
    /// Input for sampling decisions of routes; absent if the trace is continued.
    said: Option<Said>,
    /// Whether the request is recorded; a route may still change that.
    is_recorded: bool,
    name: String,
    tags: Vec<KeyValue>,
}

/// A trace that was started.
pub(super) struct Begun {
    pub(super) envoy: EnvoyTrace,
    /// IDs of the trace, of the parent span and of the new span.
    pub(super) ids: (TraceId, Option<SpanId>, SpanId),
    pub(super) attributes: Vec<KeyValue>,
}

/// Continues the trace of the request or starts one. With `routes_decide`, a route may still enable recording.
/// Requests from `outside` clients cannot set the sampling decision through their request ID.
pub(super) fn begin(
    model: &Arc<HttpTracing>,
    routes_decide: bool,
    request: &mut Request,
    connection: &Connection,
    outside: bool,
) -> Option<Begun> {
    let said = Said::by(&request.headers, outside);
    let reason = said.decide(&model.sampling);
    said.tell(reason, &mut request.headers);
    let parent = match request.headers.contains_key(TRACEPARENT) {
        // Malformed headers are left unchanged.
        true => Some(trace_context::parent(&request.headers)?),
        false => None,
    };
    let (id, is_recorded) = match parent {
        Some(parent) => (parent.trace, parent.is_sampled),
        None => {
            request.headers.remove(TRACESTATE);
            (random_trace(), reason.is_recorded())
        }
    };
    let span = random_span();
    trace_context::set(&mut request.headers, id, span, is_recorded);
    let said = parent.is_none().then_some(said);
    if !(is_recorded || said.is_some() && routes_decide) {
        return None;
    }
    let name = match model.outbound {
        true => format!("egress {}", short(request.host())),
        false => "ingress".to_owned(),
    };
    let tags = model.tags.iter().filter_map(|tag| said_by(tag, &request.headers)).collect();
    let envoy = EnvoyTrace { model: Arc::clone(model), said, is_recorded, name, tags };
    let attributes = described(request, connection, model.longest_path);
    let parent = parent.map(|parent| parent.span);
    Some(Begun { envoy, ids: (id, parent, span), attributes })
}

fn described(request: &Request, connection: &Connection, longest_path: usize) -> Vec<KeyValue> {
    let said = |name: &HeaderName| request.headers.get(name).and_then(|value| value.to_str().ok());
    let path = request.uri.path_and_query().map_or("/", |path| path.as_str());
    let path: String = path.chars().take(longest_path).collect();
    let protocol = match request.version {
        Version::HTTP_3 => "HTTP/3",
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    };
    let or_dash = |name| short(said(name).unwrap_or("-"));
    let mut attributes = vec![
        KeyValue::new("http.url", format!("{}://{}{path}", connection.scheme(), short(request.host()))),
        KeyValue::new("http.method", short(request.method.as_str())),
        KeyValue::new("downstream_cluster", or_dash(&DOWNSTREAM_CLUSTER)),
        KeyValue::new("user_agent", or_dash(&header::USER_AGENT)),
        KeyValue::new("http.protocol", protocol),
        KeyValue::new("peer.address", request.sender.client.ip().to_canonical().to_string()),
        KeyValue::new("component", "proxy"),
    ];
    for (key, name) in [("guid:x-request-id", &REQUEST_ID), ("guid:x-client-trace-id", &CLIENT_TRACE_ID)] {
        attributes.extend(said(name).map(|value| KeyValue::new(key, short(value))));
    }
    attributes
}

fn said_by(tag: &TraceTag, headers: &HeaderMap) -> Option<KeyValue> {
    let value = match &tag.value {
        TraceTagValue::Literal(text) => text.clone(),
        TraceTagValue::RequestHeader(name, default) => {
            let said = headers.get(name).and_then(|value| value.to_str().ok());
            short(said.or(default.as_deref())?)
        }
        TraceTagValue::Environment(name, default) => std::env::var(name).ok().or_else(|| default.clone())?,
    };
    Some(KeyValue::new(tag.name.clone(), value))
}

impl EnvoyTrace {
    /// Applies the settings of a route. Returns false if the request is not recorded.
    pub(super) fn route(
        &mut self,
        route: Option<&RouteTracing>,
        request: &mut Request,
        (id, span): (TraceId, SpanId),
        attributes: &mut [KeyValue],
    ) -> bool {
        let empty = RouteTracing::default();
        let route = route.unwrap_or(&empty);
        if let (Some(said), Some(sampling)) = (self.said, &route.sampling) {
            let reason = said.decide(sampling);
            said.tell(reason, &mut request.headers);
            self.is_recorded = reason.is_recorded();
            trace_context::set(&mut request.headers, id, span, self.is_recorded);
        }
        if !self.is_recorded {
            return false;
        }
        let name = request.headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
        let told = attributes.iter_mut().find(|attribute| attribute.key.as_str() == "guid:x-request-id");
        if let (Some(name), Some(told)) = (name, told) {
            told.value = short(name).into();
        }
        if !route.tags.is_empty() {
            let mut tags: Vec<_> =
                route.tags.iter().filter_map(|tag| said_by(tag, &request.headers)).collect();
            let others = std::mem::take(&mut self.tags);
            tags.extend(
                others
                    .into_iter()
                    .filter(|other| route.tags.iter().all(|tag| tag.name != other.key.as_str())),
            );
            self.tags = tags;
        }
        self.decorate(route, &mut request.headers);
        true
    }

    /// Sets the span name to the route's operation, or, for inbound requests, to the one that the sender requested.
    fn decorate(&mut self, route: &RouteTracing, headers: &mut HeaderMap) {
        if !route.operation.is_empty() {
            self.name = route.operation.clone();
        }
        if self.model.outbound {
            if let (true, Ok(value)) = (route.propagate, route.operation.parse())
                && !route.operation.is_empty()
            {
                headers.insert(DECORATOR, value);
            }
        } else if let Some(said) = headers.remove(DECORATOR)
            && let Some(said) = said.to_str().ok().filter(|said| !said.is_empty())
        {
            self.name = short(said);
        }
    }

    pub(super) fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// Returns whether each attempt has a span.
    pub(super) fn has_attempts(&self) -> bool {
        self.model.attempts
    }

    /// Returns the kind and the name of the request's span.
    pub(super) fn kind_and_name(&self) -> (SpanKind, String) {
        let is_client = self.model.outbound && !self.model.own_hop;
        (if is_client { SpanKind::Client } else { SpanKind::Server }, self.name.clone())
    }

    /// Returns the name and the attributes of an attempt. `before` is the number of previous attempts.
    pub(super) fn attempt(&self, attempt: &Attempt<'_>, before: usize) -> (String, Vec<KeyValue>) {
        let address = match attempt.server {
            ServerAddress::Ip(address) => address.to_string(),
            ServerAddress::Unix(path) => path.display().to_string(),
        };
        let mut attributes = vec![
            KeyValue::new("upstream_address", address.clone()),
            KeyValue::new("peer.address", address),
            KeyValue::new("component", "proxy"),
            KeyValue::new("http.status_code", attempt.status.unwrap_or(0).to_string()),
        ];
        attributes.extend(of_upstream(attempt.upstream));
        if before > 0 {
            attributes.push(KeyValue::new("retry.count", before.to_string()));
        }
        if attempt.status.is_none_or(|status| status >= 500) {
            attributes.push(KeyValue::new("error", "true"));
        }
        attributes.extend(self.tags.iter().cloned());
        (format!("router {} egress", attempt.upstream), attributes)
    }

    /// Returns the final attributes of the request's span.
    pub(super) fn ended(&mut self, ended: &Ended<'_>) -> Vec<KeyValue> {
        let mut attributes = vec![
            KeyValue::new("http.status_code", ended.status.to_string()),
            KeyValue::new("response_size", ended.bytes.to_string()),
        ];
        attributes.extend(ended.upstream.into_iter().flat_map(of_upstream));
        if ended.has_failed() {
            attributes.push(KeyValue::new("error", "true"));
        }
        attributes.append(&mut self.tags);
        attributes
    }
}

fn of_upstream(name: &str) -> [KeyValue; 2] {
    ["upstream_cluster", "upstream_cluster.name"].map(|key| KeyValue::new(key, name.to_owned()))
}
