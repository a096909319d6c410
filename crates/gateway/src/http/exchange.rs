//! One request with its response: counted and logged when it is over.

use super::{
    ErrorPages, HttpConnection,
    envoy_headers::ATTEMPT_COUNT,
    replay::EndOfBody,
    request::Request,
    request_id::REQUEST_ID,
    trace::{Ended, Trace},
};
use crate::{
    telemetry::{access_log, metrics},
    upstream::{ActiveRequest, ExchangeError, Server, Upstream},
};
use http::{HeaderMap, HeaderValue, Method, Version, header};
use quadrille_config::model::{LocalReplies, LogField};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// One request with its response. It is over when this is dropped.
pub(super) struct Exchange {
    pub(super) http: Arc<HttpConnection>,
    pub(super) began: Instant,
    /// Of the response that was sent; 0 before that.
    pub(super) status: u16,
    /// Of its body, as sent.
    pub(super) bytes: usize,
    pub(super) upstream: Option<(Arc<Upstream>, ActiveRequest)>,
    /// Counts as busy for as long as it is here.
    pub(super) server: Option<Server>,
    pub(super) error: Option<&'static str>,
    /// Of the request, if it is on its way to a server.
    pub(super) body: Option<EndOfBody>,
    /// For whom the request was sent.
    pub(super) client: SocketAddr,
    /// What the client reads of errors, where the configuration says it.
    pub(super) pages: Option<Arc<ErrorPages>>,
    /// How answers of the gateway's own are written, where the configuration says it.
    pub(super) replies: Option<Arc<LocalReplies>>,
    /// If it is recorded.
    pub(super) trace: Option<Box<Trace>>,
    /// What the client is told of HTTP/3.
    pub(super) alternative: Option<HeaderValue>,
    /// What the client is told of the request's name.
    pub(super) told_id: Option<HeaderValue>,
    /// How often it was sent, if the client is told.
    pub(super) told_attempts: Option<usize>,
    /// From asking the last server to the header of its response, or to its failure.
    pub(super) upstream_took: Option<Duration>,
    line: Option<Box<Line>>,
}

/// What the access log tells of a request.
struct Line {
    method: Method,
    host: String,
    path: String,
    query: Option<String>,
    user_agent: Option<HeaderValue>,
    request_id: Option<HeaderValue>,
    user: Option<Arc<str>>,
    version: Version,
}

impl Exchange {
    pub(super) fn begin(http: &Arc<HttpConnection>, request: &Request) -> Box<Self> {
        http.connection.clock.begin_request();
        let fields = access_log::fields();
        let line = access_log::enabled().then(|| {
            let header =
                |field, name| fields.has(field).then(|| request.headers.get(name).cloned()).flatten();
            Box::new(Line {
                method: request.method.clone(),
                host: request.host().to_owned(),
                path: request.uri.path().to_owned(),
                query: request.uri.query().filter(|_| fields.has(LogField::Query)).map(str::to_owned),
                user_agent: header(LogField::UserAgent, header::USER_AGENT),
                request_id: header(LogField::RequestId, REQUEST_ID),
                user: None,
                version: request.version,
            })
        });
        Box::new(Self {
            http: Arc::clone(http),
            began: Instant::now(),
            status: 0,
            bytes: 0,
            upstream: None,
            server: None,
            error: None,
            body: None,
            client: request.sender.client,
            pages: None,
            replies: None,
            trace: None,
            alternative: None,
            told_id: None,
            told_attempts: None,
            upstream_took: None,
            line,
        })
    }

    /// Who has logged in, for the log.
    pub(super) fn tell_user(&mut self, name: Arc<str>) {
        if let Some(line) = &mut self.line {
            line.user = Some(name);
        }
    }

    /// Tells the client of HTTP/3, of the request's name and of attempts, in the place of what a server says of its own.
    pub(super) fn tell_client(&mut self, headers: &mut HeaderMap) {
        if let Some(alternative) = self.alternative.take() {
            headers.insert(header::ALT_SVC, alternative);
        }
        if let Some(id) = self.told_id.take() {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(attempts) = self.told_attempts.take() {
            headers.insert(ATTEMPT_COUNT, attempts.into());
        }
    }

    /// Notes an error of the server's, or of the client's on the way there.
    pub(super) fn fail(&mut self, error: &ExchangeError, outcome: &'static str) {
        self.error = Some(error.label());
        let Some((upstream, _)) = &self.upstream else { return };
        if matches!(error, ExchangeError::TimedOut) {
            upstream.counters.timeouts.add();
        }
        // Clients that leave are no errors of ours.
        if !matches!(error, ExchangeError::Client(_)) {
            let server = self.server.as_ref().map(|server| &server.address);
            tracing::warn!(upstream = upstream.name(), ?server, %error, outcome);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.http.connection.clock.end_request();
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
            protocol: match line.version {
                Version::HTTP_3 => "HTTP/3",
                Version::HTTP_2 => "HTTP/2",
                _ => "HTTP/1",
            },
            status: self.status,
            bytes: self.bytes,
            took: self.began.elapsed(),
            upstream: self.upstream.as_ref().map_or("-", |(upstream, _)| upstream.name()),
            upstream_server: self.server.as_ref().map(|server| &server.address as _),
            upstream_took: self.upstream_took,
            error: self.error,
        }
        .write(&self.http.connection);
    }
}
