//! One attempt: a request at one endpoint of its upstream.

use super::{
    destination::Destination,
    envoy::{self, Attempt},
    retry::Failure,
    upstream_request,
};
use crate::{
    http::{
        body::replay::Replay, exchange::Exchange, request::request_view::without_port,
        response::informational::Informational, trace,
    },
    upstream::{
        self, CallFailure, EndpointCall, ExchangeError, Limits, NoServer, RequestOutcome, Server,
        ServerAddress, WaitFailure,
    },
};
use http::{HeaderMap, Response, StatusCode, Version};
use std::{
    io,
    time::{Duration, Instant},
};

/// Reason for the failure of an attempt.
pub(super) enum AttemptError {
    NoServer,
    /// The endpoints have no room for the request.
    Overloaded,
    OutOfTime,
    InvalidPath,
    Connect(io::Error),
    /// `reused`: the connection had carried a request before.
    Exchange {
        error: ExchangeError,
        reused: bool,
    },
}

impl AttemptError {
    /// Classifies the error; `None` if a further attempt would not help.
    pub(super) fn failure(&self) -> Option<Failure> {
        match self {
            Self::Connect(_) => Some(Failure::Connect),
            Self::Exchange { error, reused } => Failure::classify(error, *reused),
            Self::NoServer | Self::Overloaded | Self::OutOfTime | Self::InvalidPath => None,
        }
    }
}

/// The attempts at a request.
pub(super) struct Attempts<'a> {
    pub(super) destination: Destination<'a>,
    pub(super) body: Replay,
    /// Endpoints that were tried, in order.
    pub(super) tried: Vec<ServerAddress>,
    pub(super) began: Instant,
    /// Deadline for all attempts.
    pub(super) whole: Option<Instant>,
    /// Point of the request on the hash ring, for session affinity.
    pub(super) affinity: Option<u32>,
}

impl Attempts<'_> {
    /// Picks an endpoint and sends the request to it.
    pub(super) async fn next(
        &mut self,
        exchange: &mut Exchange,
        informational: &Informational,
    ) -> Result<Response<upstream::ResponseBody>, AttemptError> {
        let endpoint = match self.pick(exchange) {
            // Boxed, as most requests do not wait and need no memory for it.
            Err(NoServer::Full) => Box::pin(self.wait(exchange)).await?,
            Err(NoServer::Unhealthy) => return Err(self.without_server()),
            Ok(endpoint) => endpoint,
        };
        self.begin(&endpoint, exchange)?;
        exchange.server = Some(endpoint.clone());
        let began = Instant::now();
        exchange.upstream_began = Some(began);
        if let Some(spans) = &mut exchange.trace {
            spans.begin_attempt();
        }
        let attempt = self.send(&endpoint, exchange, informational).await;
        let took = began.elapsed();
        exchange.upstream_took = Some(took);
        let upstream = &self.destination.upstream;
        if let Some(spans) = &mut exchange.trace {
            let (upstream, server) = (upstream.name(), &endpoint.address);
            let status = attempt.as_ref().ok().map(|response| response.status().as_u16());
            spans.end_attempt(&trace::Attempt { began, took, upstream, server, status });
        }
        if attempt.is_ok() {
            upstream.began_response(took);
        }
        if let Some(outcome) = outcome_of(&attempt) {
            upstream.observe(&endpoint, outcome);
        }
        attempt
    }

    /// Picks an endpoint that was not tried yet.
    fn pick(&self, exchange: &Exchange) -> Result<Server, NoServer> {
        let original_destination = exchange.http.connection.original_destination;
        self.destination.upstream.try_pick(exchange.client, original_destination, self.affinity, &self.tried)
    }

    /// Waits until an endpoint has room for the request.
    async fn wait(&self, exchange: &Exchange) -> Result<Server, AttemptError> {
        let upstream = &self.destination.upstream;
        let waiting = upstream.wait_for_endpoint(exchange.client, self.affinity, &self.tried);
        let picked = match self.whole {
            None => waiting.await,
            Some(due) => {
                tokio::time::timeout_at(due.into(), waiting).await.map_err(|_| AttemptError::OutOfTime)?
            }
        };
        picked.map_err(|failure| match failure {
            WaitFailure::NoServer => self.without_server(),
            WaitFailure::Overloaded => AttemptError::Overloaded,
        })
    }

    fn without_server(&self) -> AttemptError {
        self.destination.upstream.counters.no_server.add();
        AttemptError::NoServer
    }

    /// Counts the attempt at an endpoint, unless its time is over.
    fn begin(&mut self, endpoint: &Server, exchange: &mut Exchange) -> Result<(), AttemptError> {
        if !self.tried.is_empty() {
            self.destination.upstream.counters.retries.add();
        }
        if self.is_out_of_time() {
            return Err(AttemptError::OutOfTime);
        }
        self.tried.push(endpoint.address.clone());
        if let Some(attempts) = &mut exchange.fields.attempts {
            *attempts = self.tried.len();
        }
        Ok(())
    }

    async fn send(
        &self,
        endpoint: &Server,
        exchange: &Exchange,
        informational: &Informational,
    ) -> Result<Response<upstream::ResponseBody>, AttemptError> {
        let http = &exchange.http;
        let request = self.destination.request;
        // A connection that was verified for one name carries no requests for another.
        let host = without_port(request.host());
        let requested = self.destination.upstream.as_requested(endpoint, host, request.is_multiplexed());
        let call = EndpointCall {
            upstream: &self.destination.upstream,
            endpoint: requested.as_ref().unwrap_or(endpoint),
            connection: &http.connection,
            pool: &http.pool,
            separate: request.is_upgrade(),
        };
        let build = |http2| {
            let elapsed = if self.tried.len() > 1 { self.began.elapsed() } else { Duration::ZERO };
            let attempt = Attempt { number: self.tried.len(), elapsed };
            let built =
                upstream_request::build(&self.destination, &http.connection, endpoint, http2, attempt);
            let trailers = || self.destination.request_trailers(http2);
            let mut built = built?.map(|()| self.body.attempt(trailers));
            if let Some(spans) = &exchange.trace {
                spans.tell_server(built.headers_mut());
            }
            Ok(built)
        };
        // HTTP/1.0 has no informational responses (RFC 9110 section 15.2), and a 100 is meant for the sender of the
        // body, which is the gateway here.
        let passes_on = request.version >= Version::HTTP_11;
        let informational = |status, headers: &HeaderMap| {
            if passes_on && status != StatusCode::CONTINUE {
                informational.push(status, headers);
            }
        };
        let begin_again = || self.body.begin_again();
        call.send(self.limits(), build, begin_again, informational).await.map_err(|failure| match failure {
            CallFailure::Connect(error) => AttemptError::Connect(error),
            CallFailure::Build(upstream_request::Invalid) => AttemptError::InvalidPath,
            CallFailure::Exchange { error, reused } => {
                AttemptError::Exchange { error: self.body.blame(error), reused }
            }
        })
    }

    fn limits(&self) -> Limits {
        let timeouts = &self.destination.upstream.model().timeouts;
        let per_try = self.destination.to.retry.as_ref().and_then(|policy| policy.per_try_timeout);
        let per_try = per_try.filter(|_| !self.destination.request.is_upgrade());
        Limits {
            read: self.destination.to.idle.unwrap_or(timeouts.read),
            write: self.destination.to.idle.unwrap_or(timeouts.write),
            header: per_try.map(|limit| Instant::now() + limit),
            whole: self.whole,
        }
    }

    pub(super) fn is_out_of_time(&self) -> bool {
        self.whole.is_some_and(|whole| whole <= Instant::now())
    }

    /// Returns the status for the client (RFC 9110 section 15.6).
    pub(super) fn status_of(&self, error: &AttemptError) -> u16 {
        let unreachable = self.destination.matched.unreachable();
        let too_late = if envoy::timeout_is_empty(self.destination.request) { 204 } else { 504 };
        match error {
            AttemptError::NoServer | AttemptError::Overloaded => 503,
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
}

/// Classifies an attempt for outlier detection; `None` if it gives no indication about the endpoint.
fn outcome_of(attempt: &Result<Response<upstream::ResponseBody>, AttemptError>) -> Option<RequestOutcome> {
    match attempt {
        Ok(response) => Some(RequestOutcome::Status(response.status().as_u16())),
        Err(error) => error.failure().map(|_| RequestOutcome::NoAnswer),
    }
}
