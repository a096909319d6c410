//! An exchange: one request with its response, counted and logged when it ends.

use super::{
    ErrorPages, HttpConnection,
    body::replay::EndOfBody,
    error::refusal::MEMORY_LIMIT,
    request::{Request, request_id::REQUEST_ID, trailers::Trailers},
    response_fields::ResponseFields,
    trace::{Ended, Trace},
};
use crate::{
    admission::ClientPlace,
    held_bytes::detached_value,
    memory::Holder,
    telemetry::{access_log, metrics},
    upstream::{ActiveRequest, ExchangeError, Server, Upstream},
};
use http::{HeaderName, HeaderValue, Method, Version, header};
use quadrille_config::model::{LocalReplies, LogField, LogFormat};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// One request with its response. It ends when this is dropped.
pub(super) struct Exchange {
    pub(super) http: Arc<HttpConnection>,
    pub(super) began: Instant,
    /// Status of the response; 0 before it is sent.
    pub(super) status: u16,
    /// Number of bytes of the response body that were sent.
    pub(super) bytes: usize,
    pub(super) upstream: Option<(Arc<Upstream>, ActiveRequest)>,
    /// Endpoint, which counts as busy while this exchange holds it.
    pub(super) server: Option<Server>,
    /// Place among the active requests of its client, if its route limits them.
    pub(super) of_client: Option<ClientPlace>,
    pub(super) error: Option<&'static str>,
    /// The data that this exchange holds.
    pub(super) holder: Arc<Holder>,
    /// End of the request body, while it is sent to an endpoint.
    pub(super) body: Option<EndOfBody>,
    /// Address of the client that the request is from.
    pub(super) client: SocketAddr,
    /// Error pages, if configured.
    pub(super) pages: Option<Arc<ErrorPages>>,
    /// Rewriting of local responses, if configured.
    pub(super) replies: Option<Arc<LocalReplies>>,
    /// Trace, if the request is sampled.
    pub(super) trace: Option<Box<Trace>>,
    /// Header fields for the response.
    pub(super) fields: ResponseFields,
    /// Trailers of the upstream's response that are forwarded.
    pub(super) trailers: Trailers,
    /// Time from sending the last attempt to its response header or failure.
    pub(super) upstream_took: Option<Duration>,
    /// Time at which the last attempt was sent.
    pub(super) upstream_began: Option<Instant>,
    line: Option<Box<Line>>,
}

/// Fields of the access log.
struct Line {
    method: Method,
    host: String,
    path: String,
    query: Option<String>,
    user_agent: Option<HeaderValue>,
    request_id: Option<HeaderValue>,
    user: Option<Arc<str>>,
    version: Version,
    scheme: &'static str,
    /// The format, with the values of its request headers.
    format: Option<(Arc<LogFormat>, Vec<Option<HeaderValue>>)>,
}

impl Exchange {
    pub(super) fn begin(http: &Arc<HttpConnection>, request: &Request, holder: &Arc<Holder>) -> Box<Self> {
        http.connection.clock.begin_request();
        let fields = access_log::fields();
        let line = access_log::enabled().then(|| {
            let format = access_log::format().map(|format| {
                let value = |name: &HeaderName| request.headers.get(name).map(detached_value);
                let values = format.headers.iter().map(value).collect();
                (format, values)
            });
            let has = |field| format.is_some() || fields.has(field);
            let header = |field, name| {
                let value = has(field).then(|| request.headers.get(name)).flatten();
                value.map(detached_value)
            };
            Box::new(Line {
                method: request.method.clone(),
                host: request.host().to_owned(),
                path: request.uri.path().to_owned(),
                query: request.uri.query().filter(|_| has(LogField::Query)).map(str::to_owned),
                user_agent: header(LogField::UserAgent, header::USER_AGENT),
                request_id: header(LogField::RequestId, REQUEST_ID),
                user: None,
                version: request.version,
                scheme: if http.connection.tls { "https" } else { "http" },
                format,
            })
        });
        Box::new(Self {
            http: Arc::clone(http),
            began: Instant::now(),
            status: 0,
            bytes: 0,
            upstream: None,
            server: None,
            of_client: None,
            error: None,
            holder: Arc::clone(holder),
            body: None,
            client: request.sender.client,
            pages: None,
            replies: None,
            trace: None,
            fields: ResponseFields::default(),
            trailers: Trailers::default(),
            upstream_took: None,
            upstream_began: None,
            line,
        })
    }

    /// Sets the authenticated user for the log.
    pub(super) fn tell_user(&mut self, name: Arc<str>) {
        if let Some(line) = &mut self.line {
            line.user = Some(name);
        }
    }

    /// Leaves the request out of the access log.
    pub(super) fn omit_from_log(&mut self) {
        self.line = None;
    }

    /// Records an error of the upstream, or of the client while its request is forwarded.
    pub(super) fn fail(&mut self, error: &ExchangeError, outcome: &'static str) {
        self.error = Some(error.label());
        let Some((upstream, _)) = &self.upstream else { return };
        if matches!(error, ExchangeError::TimedOut) {
            upstream.counters.timeouts.add();
        }
        // A client that disconnects is not an error of the gateway.
        if !matches!(error, ExchangeError::Client(_)) {
            let server = self.server.as_ref().map(|server| &server.address);
            upstream.warn(server, error, outcome);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.http.connection.clock.end_request();
        if self.holder.is_ended() {
            self.error.get_or_insert(MEMORY_LIMIT);
        }
        metrics::request(self.status);
        if let Some((upstream, _)) = &self.upstream {
            upstream.counters.responses.add(self.status);
        }
        self.http.chain.count_response(self.status);
        if let Some(trace) = self.trace.take() {
            let upstream = self.upstream.as_ref().map(|(upstream, _)| upstream.name());
            let (status, bytes, error) = (self.status, self.bytes, self.error);
            trace.finish(&Ended { status, bytes, error, upstream }, &self.http.connection);
        }
        let Some(line) = self.line.take() else { return };
        access_log::Request {
            client: self.client,
            user: line.user.as_deref(),
            method: line.method.as_str(),
            host: &line.host,
            path: &line.path,
            query: line.query.as_deref(),
            user_agent: line.user_agent.as_ref().and_then(|value| value.to_str().ok()),
            request_id: line.request_id.as_ref().and_then(|value| value.to_str().ok()),
            version: line.version,
            scheme: line.scheme,
            format: line.format.as_ref().map(|(format, headers)| (&**format, headers.as_slice())),
            status: self.status,
            bytes: self.bytes,
            took: self.began.elapsed(),
            upstream: self.upstream.as_ref().map_or("-", |(upstream, _)| upstream.name()),
            upstream_server: self.server.as_ref().map(|server| &server.address as _),
            upstream_took: self.upstream_took,
            response_took: self.upstream_began.map(|began| began.elapsed()),
            error: self.error,
        }
        .write(&self.http.connection);
    }
}
