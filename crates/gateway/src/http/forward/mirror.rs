//! Request mirroring: copies of requests to other upstreams, whose responses are discarded.
//!
//! Each copy runs in a task of its own, and the original request never waits for it. The number of copies in progress
//! and their lag are limited; beyond the limits, requests are not copied.

use super::{destination::Destination, envoy::Attempt, upstream_request};
use crate::{
    connection::Connection,
    fraction::is_one_of,
    http::{
        body::{
            client_body::ClientBody,
            mirrored_body::{self, MirroredBody, Tap},
        },
        exchange::Exchange,
        request::Request,
        route::router::MatchedRoute,
    },
    memory,
    telemetry::metrics,
    upstream::{CallFailure, ConnectionPool, EndpointCall, Limits, RequestBody, Upstream},
};
use http::{HeaderValue, Uri, header};
use http_body::Body;
use http_body_util::BodyExt;
use quadrille_config::model::{Action, Forward};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

/// Number of copies in progress in this process.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
const MOST_UNDER_WAY: usize = 1024;

/// A copy of a request.
struct MirroredRequest {
    request: Request,
    matched: MatchedRoute,
    upstream: Arc<Upstream>,
    connection: Arc<Connection>,
    pool: Arc<ConnectionPool>,
    /// `None` if the request has no body.
    body: Option<MirroredBody>,
    marks_host: bool,
    _under_way: UnderWay,
}

/// Reason why a copy failed.
#[derive(Debug, thiserror::Error)]
enum MirrorError {
    #[error("the upstream has no endpoint")]
    NoServer,
    #[error("the upstream is at its request limit")]
    Overloaded,
    #[error("no connection: {0}")]
    Connect(io::Error),
    #[error("the route yields an invalid request")]
    Invalid,
    #[error("the endpoint closed an idle connection, and the body cannot be sent again")]
    Stale,
    #[error("{0}")]
    Exchange(String),
}

/// A copy in progress, counted until it is dropped.
struct UnderWay;

impl UnderWay {
    fn begin() -> Option<Self> {
        let before = UNDER_WAY.fetch_add(1, Ordering::Relaxed);
        let begun = Self;
        (before < MOST_UNDER_WAY).then_some(begun)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sends copies of a request to the route's mirrors, sampled at random. Returns the taps that receive the frames of
/// its body.
pub(crate) fn copy(
    request: &Request,
    body: &ClientBody,
    matched: &MatchedRoute,
    to: &Forward,
    exchange: &Exchange,
) -> Vec<Tap> {
    let mut taps = Vec::new();
    for (index, mirror) in to.mirrors.iter().enumerate().filter(|(_, mirror)| is_one_of(mirror.parts)) {
        let Some(upstream) = matched.mirror(index) else { continue };
        let begun = if memory::is_scarce() { None } else { UnderWay::begin() };
        let Some(under_way) = begun else {
            metrics::mirrored("dropped");
            continue;
        };
        let body = (!body.is_end_stream()).then(|| mirrored_body::tap(body.size_hint()));
        let (tap, body) = body.unzip();
        taps.extend(tap);
        let copy = MirroredRequest {
            request: request.clone(),
            matched: matched.clone(),
            upstream: Arc::clone(upstream),
            connection: Arc::clone(&exchange.http.connection),
            pool: Arc::clone(&exchange.http.pool),
            body,
            marks_host: mirror.marks_host,
            _under_way: under_way,
        };
        drop(tokio::spawn(copy.run()));
    }
    taps
}

impl MirroredRequest {
    async fn run(self) {
        let upstream = Arc::clone(&self.upstream);
        match self.send().await {
            Ok(()) => metrics::mirrored("answered"),
            Err(error) => {
                tracing::debug!(upstream = upstream.name(), %error, "a mirrored request failed");
                metrics::mirrored("failed");
            }
        }
    }

    /// Forwards the copy as [`super::forward`] does, but without retries: a lost copy does no harm.
    async fn send(self) -> Result<(), MirrorError> {
        let Action::Forward(to) = &self.matched.route().action else {
            return Err(MirrorError::Invalid);
        };
        let timeouts = &self.upstream.model().timeouts;
        let limits = Limits {
            read: to.idle.unwrap_or(timeouts.read),
            write: to.idle.unwrap_or(timeouts.write),
            header: None,
            whole: to.timeout.map(|timeout| Instant::now() + timeout),
        };
        let _active = self.upstream.begin(false).await.map_err(|_| MirrorError::Overloaded)?;
        let server =
            self.upstream.pick(self.request.sender.client, self.connection.original_destination, None, &[]);
        let server = server.ok_or(MirrorError::NoServer)?;
        let name = crate::http::request::request_view::without_port(self.request.host());
        let server =
            self.upstream.as_requested(&server, name, self.request.is_multiplexed()).unwrap_or(server);
        let destination = Destination {
            request: &self.request,
            matched: &self.matched,
            to,
            weighted: None,
            upstream: Arc::clone(&self.upstream),
        };
        let call = EndpointCall {
            upstream: &self.upstream,
            endpoint: &server,
            connection: &self.connection,
            pool: &self.pool,
            separate: false,
        };
        let mut body = self.body;
        let has_body = body.is_some();
        let build = |http2| {
            let built =
                upstream_request::build(&destination, &self.connection, &server, http2, Attempt::FIRST);
            let mut request = built.map_err(|_| MirrorError::Invalid)?;
            if self.marks_host {
                mark_host(&mut request);
            }
            match body.take() {
                Some(body) => {
                    let body = body.forwarding(destination.request_trailers(http2));
                    Ok(request.map(|()| RequestBody::new(Box::pin(body))))
                }
                None if has_body => Err(MirrorError::Stale),
                None => Ok(request.map(|()| RequestBody::default())),
            }
        };
        let response =
            call.send(limits, build, || !has_body, |_, _| {}).await.map_err(|failure| match failure {
                CallFailure::Connect(error) => MirrorError::Connect(error),
                CallFailure::Build(error) => error,
                CallFailure::Exchange { error, .. } => MirrorError::Exchange(error.to_string()),
            })?;
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            frame.map_err(|error| MirrorError::Exchange(error.to_string()))?;
        }
        Ok(())
    }
}

/// Marks the host: `example.com:443` becomes `example.com-shadow:443`.
fn mark_host(request: &mut http::Request<()>) {
    let headers = request.headers();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let Some(host) = host.or_else(|| request.uri().authority().map(http::uri::Authority::as_str)) else {
        return;
    };
    let name = crate::http::request::request_view::without_port(host);
    let marked = format!("{name}-shadow{}", host.strip_prefix(name).unwrap_or_default());
    if request.headers().contains_key(header::HOST) {
        if let Ok(marked) = HeaderValue::try_from(marked) {
            request.headers_mut().insert(header::HOST, marked);
        }
        return;
    }
    let mut parts = request.uri().clone().into_parts();
    if let Ok(marked) = marked.parse() {
        parts.authority = Some(marked);
    }
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}

#[cfg(test)]
mod tests {
    use super::mark_host;

    #[test]
    fn hosts_are_marked_before_their_port() {
        for (host, expected) in
            [("a.example", "a.example-shadow"), ("a.example:8443", "a.example-shadow:8443")]
        {
            let mut request = http::Request::get("/").header("host", host).body(()).expect("a request");
            mark_host(&mut request);
            assert_eq!(request.headers()["host"], expected);
            let uri = format!("https://{host}/x?y");
            let mut request = http::Request::get(uri).body(()).expect("a request");
            mark_host(&mut request);
            assert_eq!(request.uri().to_string(), format!("https://{expected}/x?y"));
        }
    }
}
