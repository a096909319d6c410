//! Forwarding: a request and its attempts at the endpoints of an upstream, until one response is passed on.
//!
//! - `destination`: the matched route and the selected upstream; `upstream_limits`: its concurrency limits.
//! - `upstream_request`: the client's request, adapted for an endpoint; `attempt`: one attempt to send it.
//! - `retry`: the decision after a failed attempt; `mirror`: copies to other upstreams.
//! - `envoy`: `X-Envoy-*` headers, with an Envoy configuration.

mod attempt;
mod destination;
mod envoy;
mod mirror;
mod retry;
mod upstream_limits;
mod upstream_request;

pub(super) use envoy::as_asked;

use super::{
    body::{client_body::ClientBody, replay::Replay},
    exchange::Exchange,
    request::{Request, envoy_headers::Use, hop_by_hop},
    response::{
        answer::Answer,
        body::ResponseBody,
        epilogue::{BodyChange, Epilogue, UpstreamBody},
        informational::Informational,
        outcome::Outcome,
        tunnel::{self, Tunnel},
    },
    route::{router::MatchedRoute, session_affinity::Stickiness},
};
use crate::upstream::{self, Retry, Upstream};
use attempt::{AttemptError, Attempts};
use bytes::Bytes;
use destination::Destination;
use http::{Method, Response, StatusCode, header};
use http_body::Body;
use quadrille_config::model::{Balance, Forward};
use retry::{Decision, Failed, Failure};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use upstream_limits::Refusal;

/// A request that is being forwarded.
struct Forwarding<'a> {
    attempts: Attempts<'a>,
    /// Place in the retry budget, taken for the first retry.
    retry: Option<Retry>,
}

/// Forwards a request to an upstream, with retries where they are allowed and safe.
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
    exchange.fields.attempts = to.attempts.in_responses.then_some(1);
    let whole = to.timeout.filter(|_| !request.is_upgrade()).map(|timeout| exchange.began + timeout);
    match upstream_limits::begin(upstream, request.is_upgrade(), whole).await {
        Ok(active) => exchange.upstream = Some((Arc::clone(upstream), active)),
        Err(refusal) => return refused(&refusal, Answer { request, route: Some(matched), exchange }),
    }
    let affinity = affinity(request, to, upstream, &mut exchange);
    let (body, client) = match request.body_is_tunnel() {
        true => (Replay::empty(), Some(body).filter(|_| request.is_multiplexed())),
        false if to.mirrors.is_empty() => (Replay::new(body, Vec::new()), None),
        false => {
            let taps = mirror::copy(request, &body, matched, to, &exchange);
            (Replay::new(body, taps), None)
        }
    };
    exchange.body = body.end();
    let destination =
        Destination { request, matched, to, weighted: to.to.get(index), upstream: Arc::clone(upstream) };
    let (tried, began) = (Vec::new(), Instant::now());
    let attempts = Attempts { destination, body, tried, began, whole, affinity };
    let mut forwarding = Forwarding { attempts, retry: None };
    loop {
        let attempt = forwarding.attempts.next(&mut exchange, informational).await;
        let failure = match &attempt {
            Ok(response) if response.status().is_informational() => None,
            Ok(response) => Some(Failure::Status(response.status().as_u16())),
            Err(error) => error.failure(),
        };
        if let Some(delay) = failure.and_then(|failure| forwarding.retries(failure)) {
            // Releases the endpoint's connection, and keeps the response out of the future, which every request moves.
            drop(attempt);
            if !delay.is_zero() {
                Box::pin(tokio::time::sleep(delay)).await;
            }
            continue;
        }
        return match attempt {
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Box::pin(forwarding.switch(response, client, exchange)).await
            }
            // Over HTTP/2 a success would open the tunnel (RFC 8441 section 5), but the endpoint has not opened one.
            Ok(response)
                if request.is_upgrade() && request.is_multiplexed() && response.status().is_success() =>
            {
                forwarding.error(502, exchange)
            }
            Ok(response) => forwarding.finish(response, exchange).into(),
            Err(error) => forwarding.fail(&error, exchange),
        };
    }
}

/// Responds to a request that the upstream's limits do not allow.
fn refused(refusal: &Refusal, mut answer: Answer<'_>) -> Outcome {
    let request = answer.request;
    answer.exchange.error = Some(refusal.label());
    let mut response = answer.status(refusal.status());
    if matches!(refusal, Refusal::Overloaded) {
        envoy::tell_overload(response.headers_mut(), request);
    }
    response.into()
}

/// Returns the request's point on the hash ring, if the upstream balances by hash and a policy applies.
fn affinity(request: &Request, to: &Forward, upstream: &Upstream, exchange: &mut Exchange) -> Option<u32> {
    if upstream.model().balance != Balance::Hash || to.hash.is_empty() {
        return None;
    }
    let Stickiness { point, cookie } = Stickiness::of(request, &to.hash, exchange.http.connection.tls);
    exchange.fields.session_cookie = cookie;
    point
}

impl Forwarding<'_> {
    /// Decides on a retry after a failed attempt, and prepares it. Returns the delay before it.
    fn retries(&mut self, failure: Failure) -> Option<Duration> {
        let Destination { request, to, upstream, .. } = &self.attempts.destination;
        if failure == Failure::Connect {
            upstream.counters.connect_failures.add();
        }
        let policy = to.retry.as_ref().unwrap_or(upstream.default_retry());
        // Most responses end here: only a listed failure costs a look at the clock and at the body.
        let decision = match retry::is_listed(&policy.on, failure) {
            false => Decision::Stop("the retry policy does not list the failure"),
            true => retry::decide(
                policy,
                &Failed {
                    failure,
                    attempts: self.attempts.tried.len(),
                    idempotent: request.method.is_idempotent(),
                    upgrade: request.is_upgrade(),
                    out_of_time: self.attempts.is_out_of_time(),
                    repeatable: self.attempts.body.is_complete(),
                },
            ),
        };
        let decision = match decision {
            Decision::Again(_) if !self.has_budget() => {
                Decision::Stop("the upstream's retry budget is exhausted")
            }
            Decision::Again(_) if !self.attempts.body.begin_again() => {
                Decision::Stop("the request body is no longer complete")
            }
            decided => decided,
        };
        match decision {
            Decision::Again(delay) => {
                tracing::debug!(
                    upstream = self.attempts.destination.upstream.name(),
                    ?failure,
                    ?delay,
                    "retrying"
                );
                Some(delay)
            }
            Decision::Stop(reason) => {
                if !matches!(failure, Failure::Status(..500)) {
                    tracing::debug!(
                        upstream = self.attempts.destination.upstream.name(),
                        ?failure,
                        reason,
                        "not retrying"
                    );
                }
                None
            }
        }
    }

    /// Returns whether the retry budget allows another attempt.
    fn has_budget(&mut self) -> bool {
        if self.retry.is_none() {
            self.retry = self.attempts.destination.upstream.begin_retry();
        }
        self.retry.is_some()
    }

    /// Responds after the last attempt failed.
    fn fail(self, error: &AttemptError, mut exchange: Box<Exchange>) -> Outcome {
        exchange.body = None;
        match error {
            AttemptError::Exchange { error, .. } => exchange.fail(error, "no response"),
            AttemptError::Connect(error) => {
                let upstream = &self.attempts.destination.upstream;
                upstream.warn(self.attempts.tried.last(), error, "cannot reach the server");
            }
            AttemptError::Overloaded => {
                let request = self.attempts.destination.request;
                let answer = Answer { request, route: self.route_of_errors(), exchange };
                return refused(&Refusal::Overloaded, answer);
            }
            AttemptError::NoServer | AttemptError::OutOfTime | AttemptError::InvalidPath => {}
        }
        let status = self.attempts.status_of(error);
        self.error(status, exchange)
    }

    /// Responds with an error. In Envoy, a route's header changes do not apply to errors of the router.
    fn error(&self, status: u16, exchange: Box<Exchange>) -> Outcome {
        let request = self.attempts.destination.request;
        Answer { request, route: self.route_of_errors(), exchange }.status(status).into()
    }

    fn route_of_errors(&self) -> Option<&MatchedRoute> {
        let Destination { request, matched, .. } = &self.attempts.destination;
        Some(*matched).filter(|_| request.envoy_headers == Use::Unknown)
    }

    /// Passes a response on to the client.
    fn finish(
        self,
        response: Response<upstream::ResponseBody>,
        mut exchange: Box<Exchange>,
    ) -> Response<ResponseBody> {
        let request = self.attempts.destination.request;
        let (mut head, body) = response.into_parts();
        body.belongs_to(&exchange.holder);
        hop_by_hop::remove(&mut head.headers);
        let took = || self.attempts.body.ended(self.attempts.began).map(|ended| ended.elapsed());
        envoy::tell_client(&mut head.headers, request, took);
        let compression = self.attempts.destination.matched.route().compression.as_deref();
        let of_body = UpstreamBody { compression, is_empty: body.is_end_stream() };
        let change = self.epilogue().finish_upstream(&mut head, &mut exchange, &of_body);
        head.version = request.version;
        head.extensions.clear();
        exchange.trailers = self.attempts.destination.response_trailers();
        let body = match change {
            // The upstream's body is not read.
            BodyChange::Page(_) if request.method == Method::HEAD => {
                ResponseBody::whole(Bytes::new(), exchange)
            }
            BodyChange::Page(page) => ResponseBody::whole(page.body, exchange),
            BodyChange::Compress(encoder) => ResponseBody::compressed(body, encoder, exchange),
            BodyChange::None => ResponseBody::forwarded(body, exchange),
        };
        Response::from_parts(head, body)
    }

    /// Opens the tunnel that the endpoint agreed to.
    async fn switch(
        self,
        response: Response<upstream::ResponseBody>,
        client: Option<ClientBody>,
        mut exchange: Box<Exchange>,
    ) -> Outcome {
        let (mut head, body) = response.into_parts();
        let offered = self.attempts.destination.request.upgrade.clone();
        let upgrade = head.headers.get(header::UPGRADE).cloned().or(offered);
        hop_by_hop::remove(&mut head.headers);
        let Some((server, ahead)) = body.into_stream() else { return self.error(502, exchange) };
        self.epilogue().finish(&mut head, &mut exchange);
        let idle = self.attempts.destination.to.idle.unwrap_or(exchange.http.connection.clock.idle_limit());
        let response = tunnel::accept(head, upgrade, self.attempts.destination.request.is_multiplexed());
        exchange.status = response.status().as_u16();
        Outcome::Tunnel(response, Box::new(Tunnel { server, ahead, client, idle, exchange }))
    }

    fn epilogue(&self) -> Epilogue<'_> {
        let Destination { request, upstream, .. } = &self.attempts.destination;
        Epilogue {
            request,
            changes: Some(self.attempts.destination.response_changes()),
            upstream: upstream.name(),
        }
    }
}
