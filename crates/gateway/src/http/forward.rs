//! A request on its way to a server: attempts, and the response of the last.

use super::{
    HttpConnection,
    answer::Answer,
    client_body::ClientBody,
    compression,
    destination::Destination,
    envoy_forwarding::{self, Attempt},
    exchange::Exchange,
    hop_by_hop,
    informational::Informational,
    mirror,
    outcome::Outcome,
    replay::Replay,
    request::Request,
    request_view::without_port,
    response_body::ResponseBody,
    retry::{self, Failure},
    router::MatchedRoute,
    stickiness::Stickiness,
    trace,
    tunnel::{self, Tunnel},
    upstream_limits::{self, Refusal},
    upstream_request,
};
use crate::upstream::{self, ExchangeError, Lease, Limits, RequestOutcome, Retry, Server, ServerAddress};
use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, Version, header};
use http_body::Body;
use quadrille_config::model::{Balance, Forward};
use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

/// One request on its way.
struct Forwarding<'a> {
    destination: Destination<'a>,
    body: Replay,
    tried: Vec<ServerAddress>,
    began: Instant,
    /// When all must be over.
    whole: Option<Instant>,
    /// Counts the attempts after the first.
    retry: Option<Retry>,
    /// By what it keeps to a server.
    sticky: Option<Box<Stickiness>>,
}

/// Why an attempt came to nothing.
enum AttemptError {
    NoServer,
    OutOfTime,
    InvalidPath,
    Connect(io::Error),
    Exchange { error: ExchangeError, reused: bool },
}

/// Sends a request to a server, with further attempts as far as they are allowed and safe.
pub(super) async fn forward(
    request: &Request,
    body: ClientBody,
    matched: &MatchedRoute,
    to: &Forward,
    mut exchange: Box<Exchange>,
    informational: &Informational,
) -> Outcome {
    let picked = matched.pick_upstream().and_then(|one| Some((one.index, one.upstream.as_ref()?)));
    let Some((index, upstream)) = picked else {
        tracing::debug!(route = %matched.place(), "the route's upstream does not exist (yet)");
        return Answer { request, route: Some(matched), exchange }.text(503, "No such upstream.\n").into();
    };
    exchange.told_attempts = to.attempts.in_responses.then_some(1);
    let whole = to.timeout.filter(|_| !request.websocket).map(|timeout| exchange.began + timeout);
    let active = match upstream_limits::begin(upstream, request.websocket, whole).await {
        Ok(active) => active,
        Err(refusal) => {
            exchange.error = Some(refusal.label());
            let mut response = Answer { request, route: Some(matched), exchange }.status(refusal.status());
            if matches!(refusal, Refusal::Overloaded) {
                envoy_forwarding::tell_overload(response.headers_mut(), request);
            }
            return response.into();
        }
    };
    exchange.upstream = Some((Arc::clone(upstream), active));
    let sticks = upstream.model().balance == Balance::Hash && !to.hash.is_empty();
    let sticky = sticks.then(|| Stickiness::of(request, &to.hash, exchange.http.connection.tls));
    let (body, client) = match request.websocket {
        true => (Replay::empty(), Some(body).filter(|_| request.is_multiplexed())),
        false => {
            let taps = if to.mirrors.is_empty() {
                Vec::new()
            } else {
                mirror::copy(request, &body, matched, to, &exchange)
            };
            (Replay::new(body, taps), None)
        }
    };
    exchange.body = body.end();
    let mut forwarding = Forwarding {
        destination: Destination {
            request,
            matched,
            to,
            weighted: to.to.get(index),
            upstream: Arc::clone(upstream),
        },
        body,
        tried: Vec::new(),
        began: Instant::now(),
        whole,
        retry: None,
        sticky: sticky.map(Box::new),
    };
    loop {
        match forwarding.attempt(&mut exchange, informational).await {
            Ok(response) if forwarding.is_to_be_tried_again(response.status()) => {}
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                return Box::pin(forwarding.switch(response, client, exchange)).await;
            }
            // Over HTTP/2 a success would open the tunnel (RFC 8441 section 5), behind which there is none.
            Ok(response)
                if request.websocket && request.is_multiplexed() && response.status().is_success() =>
            {
                return Answer { request, route: None, exchange }.status(502).into();
            }
            Ok(response) => return forwarding.finish(response, exchange).into(),
            Err(error) if forwarding.tries_again(&error) => {}
            Err(error) => {
                exchange.body = None;
                match &error {
                    AttemptError::Exchange { error, .. } => exchange.fail(error, "no response"),
                    AttemptError::Connect(error) => {
                        let (upstream, server) = (upstream.name(), forwarding.tried.last());
                        tracing::warn!(upstream, ?server, %error, "cannot reach the server");
                    }
                    _ => {}
                }
                let status = forwarding.status_of(&error);
                return Answer { request, route: None, exchange }.status(status).into();
            }
        }
    }
}

impl Forwarding<'_> {
    async fn attempt(
        &mut self,
        exchange: &mut Exchange,
        informational: &Informational,
    ) -> Result<Response<upstream::ResponseBody>, AttemptError> {
        if self.destination.to.retry.is_some() && !self.tried.is_empty() {
            Box::pin(tokio::time::sleep(retry::backoff(self.tried.len()))).await;
        }
        let client = exchange.client;
        let point = self.sticky.as_ref().and_then(|sticky| sticky.point);
        let destination = exchange.http.connection.original_destination;
        let Some(server) = self.destination.upstream.pick(client, destination, point, &self.tried) else {
            self.destination.upstream.counters.no_server.add();
            return Err(AttemptError::NoServer);
        };
        if !self.tried.is_empty() {
            self.destination.upstream.counters.retries.add();
        }
        if self.whole.is_some_and(|whole| whole <= Instant::now()) {
            return Err(AttemptError::OutOfTime);
        }
        self.tried.push(server.address.clone());
        if let Some(attempts) = &mut exchange.told_attempts {
            *attempts = self.tried.len();
        }
        exchange.server = Some(server.clone());
        let mut fresh = false;
        loop {
            let asked = Instant::now();
            if let Some(spans) = &mut exchange.trace {
                spans.begin_attempt();
            }
            let attempt = self.send(&server, fresh, exchange, informational).await;
            let took = asked.elapsed();
            exchange.upstream_took = Some(took);
            if let Some(spans) = &mut exchange.trace {
                let (upstream, server) = (self.destination.upstream.name(), &server.address);
                let status = attempt.as_ref().ok().map(|response| response.status().as_u16());
                spans.end_attempt(&trace::Attempt { began: asked, took, upstream, server, status });
            }
            if attempt.is_ok() {
                self.destination.upstream.began_response(took);
            }
            match attempt {
                // The server closed an idle connection at that moment: this says nothing of the server.
                Err(AttemptError::Exchange { error: ExchangeError::NotSent, reused: true }) => fresh = true,
                other => {
                    if let Some(outcome) = outcome_of(&other) {
                        self.destination.upstream.observe(&server, outcome);
                    }
                    return other;
                }
            }
        }
    }

    async fn send(
        &self,
        server: &Server,
        fresh: bool,
        exchange: &Exchange,
        informational: &Informational,
    ) -> Result<Response<upstream::ResponseBody>, AttemptError> {
        let http = &exchange.http;
        let limits = self.limits();
        let lease = match [limits.header, limits.whole].into_iter().flatten().min() {
            None => self.connect(http, server, fresh).await,
            Some(due) => {
                let connecting = tokio::time::timeout_at(due.into(), self.connect(http, server, fresh));
                Box::pin(connecting).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            }
        }
        .map_err(AttemptError::Connect)?;
        let reused = lease.reused;
        let elapsed = if self.tried.len() > 1 { self.began.elapsed() } else { Duration::ZERO };
        let attempt = Attempt { number: self.tried.len(), elapsed };
        let http2 = lease.is_http2();
        let mut request =
            upstream_request::build(&self.destination, &http.connection, server, http2, attempt)
                .map_err(|_| AttemptError::InvalidPath)?
                .map(|()| self.body.attempt());
        if let Some(spans) = &exchange.trace {
            spans.tell_server(request.headers_mut());
        }
        // HTTP/1.0 has none (RFC 9110 section 15.2), and a 100 is for whoever sends the body, which is the gateway here.
        let passes_on = self.destination.request.version >= Version::HTTP_11;
        let sending = lease.send(request, limits, |status, headers| {
            if passes_on && status != StatusCode::CONTINUE {
                informational.push(status, headers);
            }
        });
        sending.await.map_err(|error| AttemptError::Exchange { error: self.body.blame(error), reused })
    }

    async fn connect(&self, http: &HttpConnection, server: &Server, fresh: bool) -> io::Result<Lease> {
        // Connections that were verified for one name carry no requests for another.
        let Destination { request, upstream, .. } = &self.destination;
        let asked = upstream.as_requested(server, without_port(request.host()), request.is_multiplexed());
        let server = asked.as_ref().unwrap_or(server);
        match self.destination.request.websocket {
            true => Box::pin(http.pool.separate(&self.destination.upstream, server, &http.connection)).await,
            false => http.pool.lease(&self.destination.upstream, server, &http.connection, fresh).await,
        }
    }

    fn limits(&self) -> Limits {
        let timeouts = &self.destination.upstream.model().timeouts;
        let per_try = self.destination.to.retry.as_ref().and_then(|policy| policy.per_try_timeout);
        Limits {
            read: self.destination.to.idle.unwrap_or(timeouts.read),
            write: self.destination.to.idle.unwrap_or(timeouts.write),
            header: per_try
                .filter(|_| !self.destination.request.websocket)
                .map(|limit| Instant::now() + limit),
            whole: self.whole,
        }
    }

    fn is_to_be_tried_again(&mut self, status: StatusCode) -> bool {
        !status.is_informational()
            && self.policy_allows(Failure::Status(status.as_u16()))
            && self.may_retry()
            && self.body.begin_again()
    }

    /// Whether the route's policy tries such a failure again.
    fn policy_allows(&self, failure: Failure) -> bool {
        let Some(policy) = &self.destination.to.retry else { return false };
        self.tried.len() <= policy.retries as usize
            && !self.destination.request.websocket
            && self.whole.is_none_or(|whole| Instant::now() < whole)
            && retry::is_allowed(policy, failure, self.destination.request.method.is_idempotent())
    }

    /// Whether not too many repeated attempts are under way.
    fn may_retry(&mut self) -> bool {
        if self.retry.is_none() {
            self.retry = self.destination.upstream.begin_retry();
        }
        self.retry.is_some()
    }

    fn tries_again(&mut self, error: &AttemptError) -> bool {
        if matches!(error, AttemptError::Connect(_)) {
            self.destination.upstream.counters.connect_failures.add();
        }
        self.is_allowed_again(error) && self.may_retry() && self.body.begin_again()
    }

    fn is_allowed_again(&self, error: &AttemptError) -> bool {
        let within = self.tried.len() <= self.destination.upstream.retries();
        match (error, &self.destination.to.retry) {
            (AttemptError::NoServer | AttemptError::OutOfTime | AttemptError::InvalidPath, _) => false,
            (AttemptError::Connect(_), Some(_)) => self.policy_allows(Failure::Connect),
            // Nothing has been sent yet, so any method may be tried again.
            (AttemptError::Connect(_), None) => within,
            (AttemptError::Exchange { error, .. }, Some(_)) => {
                Failure::classify(error).is_some_and(|failure| self.policy_allows(failure))
            }
            (AttemptError::Exchange { error, reused }, None) => {
                let unseen = matches!(error, ExchangeError::NotSent | ExchangeError::Refused);
                let closed = *reused && matches!(error, ExchangeError::Broken(_));
                let safe = unseen || closed && self.destination.request.method.is_idempotent();
                within && safe
            }
        }
    }

    /// What the client is told (RFC 9110 section 15.6).
    fn status_of(&self, error: &AttemptError) -> u16 {
        let unreachable = self.destination.matched.unreachable();
        let too_late = if envoy_forwarding::timeout_is_empty(self.destination.request) { 204 } else { 504 };
        match error {
            AttemptError::NoServer => 503,
            AttemptError::OutOfTime => too_late,
            AttemptError::InvalidPath => 400,
            AttemptError::Connect(error) => {
                let timed_out = error.kind() == io::ErrorKind::TimedOut;
                if timed_out && unreachable != 503 { 504 } else { unreachable }
            }
            AttemptError::Exchange { error: ExchangeError::TimedOut, .. } => too_late,
            AttemptError::Exchange { error: ExchangeError::Client(error), .. } => error.status(),
            AttemptError::Exchange { .. } => unreachable,
        }
    }

    /// Passes a response on.
    fn finish(
        self,
        response: Response<upstream::ResponseBody>,
        mut exchange: Box<Exchange>,
    ) -> Response<ResponseBody> {
        let (mut head, body) = response.into_parts();
        exchange.status = head.status.as_u16();
        hop_by_hop::remove(&mut head.headers);
        let pages = exchange.pages.as_deref();
        let page = pages.and_then(|pages| pages.in_place(&self.destination.request.headers, &mut head));
        let took = || self.body.ended(self.began).map(|ended| ended.elapsed());
        envoy_forwarding::tell_client(&mut head.headers, self.destination.request, took);
        self.destination.change_response(&mut head.headers, &exchange.http.connection);
        let compression = self.destination.matched.route().compression.as_ref();
        let encoder = compression.filter(|_| page.is_none()).and_then(|compression| {
            let client = compression::Client {
                request: self.destination.request,
                connection: &exchange.http.connection,
            };
            compression::begin(compression, &client, &mut head, body.is_end_stream())
        });
        if let Some(cookie) = self.sticky.and_then(|sticky| sticky.cookie) {
            head.headers.append(header::SET_COOKIE, cookie);
        }
        exchange.tell_client(&mut head.headers);
        if !self.destination.request.is_multiplexed() && exchange.http.chain.is_removed() {
            head.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        head.version = self.destination.request.version;
        head.extensions.clear();
        let body = match (page, encoder) {
            // What the server says of it is not read.
            (Some(_), _) if self.destination.request.method == Method::HEAD => {
                ResponseBody::whole(Bytes::new(), exchange)
            }
            (Some(page), _) => ResponseBody::whole(page.body, exchange),
            (None, Some(encoder)) => ResponseBody::compressed(body, encoder, exchange),
            (None, None) => ResponseBody::forwarded(body, exchange),
        };
        Response::from_parts(head, body)
    }

    /// Opens the tunnel that a server has agreed to.
    async fn switch(
        self,
        response: Response<upstream::ResponseBody>,
        client: Option<ClientBody>,
        mut exchange: Box<Exchange>,
    ) -> Outcome {
        let (mut head, body) = response.into_parts();
        let upgrade = head.headers.get(header::UPGRADE).cloned();
        hop_by_hop::remove(&mut head.headers);
        self.destination.change_response(&mut head.headers, &exchange.http.connection);
        let idle = self.destination.to.idle.unwrap_or(exchange.http.connection.clock.idle_limit());
        let Some((server, ahead)) = body.into_stream() else {
            return Answer { request: self.destination.request, route: None, exchange }.status(502).into();
        };
        exchange.tell_client(&mut head.headers);
        let response = tunnel::accept(head, upgrade, self.destination.request.is_multiplexed());
        exchange.status = response.status().as_u16();
        Outcome::Tunnel(response, Box::new(Tunnel { server, ahead, client, idle, exchange }))
    }
}

/// What an attempt says of the server; `None` if it says nothing.
fn outcome_of(attempt: &Result<Response<upstream::ResponseBody>, AttemptError>) -> Option<RequestOutcome> {
    match attempt {
        Ok(response) => Some(RequestOutcome::Status(response.status().as_u16())),
        Err(AttemptError::Connect(_)) => Some(RequestOutcome::NoAnswer),
        Err(AttemptError::Exchange { error, .. }) => {
            Failure::classify(error).map(|_| RequestOutcome::NoAnswer)
        }
        Err(AttemptError::NoServer | AttemptError::OutOfTime | AttemptError::InvalidPath) => None,
    }
}
