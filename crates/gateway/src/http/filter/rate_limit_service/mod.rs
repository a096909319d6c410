//! Global rate limiting with an external service. It is queried for requests that go upstream; if it gives no
//! decision, the configuration decides.

mod grpc;
mod response_headers;

use super::{
    call::Call,
    rate_limit_descriptors::{Counted, of_route},
    service_call::{CallError, ServiceCall},
};
use crate::{
    fraction::is_one_of,
    http::{
        error::{grpc_error, refusal::Refusal},
        request::envoy_headers::INTERNAL,
        route::header_changes::{self, Variables},
    },
    telemetry::{metrics, rate_limited_log::Paced},
    upstream::{Upstream, Upstreams},
};
use ::metrics::Counter;
use bytes::Bytes;
use grpc::{Entry, LimitOverride, RateLimitDescriptor, RateLimitRequest, RateLimitResponse, UInt64Value};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use quadrille_config::model::{
    Action, Descriptor, FilterOnRoute, RateLimitService as Model, RateLimitedClients, Route,
    RouteRateLimitService,
};
use std::sync::Arc;

/// Maximum size of a response from the service, in bytes.
const LARGEST_RESPONSE: usize = 64 * 1024;
const LIMITED: HeaderName = HeaderName::from_static("x-envoy-ratelimited");

/// A rate limit service that is queried for requests.
pub(crate) struct RateLimitService {
    model: Arc<Model>,
    /// `None` while the upstream does not exist.
    upstream: Option<Arc<Upstream>>,
    refused: Counter,
    let_through: Counter,
    unanswered: Counter,
    warning: Paced,
}

impl RateLimitService {
    pub(crate) fn new(model: &Arc<Model>, upstreams: &Upstreams) -> Self {
        let counter = |result| metrics::rate_limited(&model.domain, "service", result);
        Self {
            upstream: upstreams.get(&model.upstream).cloned(),
            model: Arc::clone(model),
            refused: counter("refused"),
            let_through: counter("let_through"),
            unanswered: counter("unanswered"),
            warning: Paced::default(),
        }
    }

    /// Checks that the service allows a request, and adds the headers of its response.
    ///
    /// # Errors
    /// Returns the response to the client otherwise.
    pub(crate) async fn check(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        let Some(query) = self.query(call) else { return Ok(()) };
        match self.send(&query, call).await {
            Ok(response) => self.apply(response, call),
            Err(error) => {
                if let Some(omitted) = self.warning.is_due() {
                    tracing::warn!(
                        upstream = self.model.upstream,
                        error = error.text(),
                        omitted,
                        "rate limit service"
                    );
                }
                self.unanswered.increment(1);
                self.undecided()
            }
        }
    }

    /// Builds the request to the service; `None` if the request is not counted.
    fn query(&self, call: &mut Call<'_>) -> Option<RateLimitRequest> {
        let model = &*self.model;
        let is_internal = call.request().headers.get(INTERNAL).is_some_and(|value| value == "true");
        let counts = match model.clients {
            RateLimitedClients::All => true,
            RateLimitedClients::Internal => is_internal,
            RateLimitedClients::External => !is_internal,
        };
        if !counts || !is_one_of(model.asked) {
            return None;
        }
        let matched = call.route()?;
        let route = matched.route();
        if !matches!(route.action, Action::Forward(_)) {
            return None;
        }
        let (own, models) = self.models(route)?;
        let counted = Counted::new(call.request(), Some(route), call.connection.tls);
        let descriptors: Vec<RateLimitDescriptor> =
            models.into_iter().filter_map(|model| told_of(model, &counted)).collect();
        let domain = own.and_then(|own| own.domain.clone()).unwrap_or_else(|| model.domain.clone());
        (!descriptors.is_empty()).then_some(RateLimitRequest { domain, descriptors })
    }

    /// Returns the descriptors that count on a route, with the route's settings for this filter; `None` if it is
    /// disabled there.
    fn models<'r>(
        &'r self,
        route: &'r Route,
    ) -> Option<(Option<&'r RouteRateLimitService>, Vec<&'r Descriptor>)> {
        let told = route.descriptors.as_deref();
        let own = match told.and_then(|told| told.of_filter(&self.model.filter)) {
            Some(FilterOnRoute::Off) => return None,
            Some(FilterOnRoute::On(own)) => Some(&**own),
            None if self.model.on => None,
            None => return None,
        };
        if let Some(own) = own.filter(|own| !own.descriptors.is_empty()) {
            return Some((Some(own), own.descriptors.iter().collect()));
        }
        if !self.model.descriptors.is_empty() {
            return Some((own, self.model.descriptors.iter().collect()));
        }
        let host = own.map(|own| own.host).unwrap_or_default();
        let of_route = told.map(|told| of_route(told, host, self.model.stage).collect());
        Some((own, of_route.unwrap_or_default()))
    }

    async fn send(&self, query: &RateLimitRequest, call: &Call<'_>) -> Result<RateLimitResponse, CallError> {
        let service = ServiceCall {
            upstream: self.upstream.as_ref(),
            authority: Some(&self.model.authority),
            client: call.request().sender.client,
            connection: call.connection,
            pool: call.pool,
            timeout: self.model.timeout,
            largest_response: LARGEST_RESPONSE,
        };
        service.call(&self.model.authority, grpc::METHOD, query, "not a RateLimitResponse").await
    }

    /// Applies the decision of the service to the request.
    fn apply(&self, answer: RateLimitResponse, call: &mut Call<'_>) -> Result<(), Refusal> {
        let mut headers = HeaderMap::new();
        headers.extend(response_headers::sendable(&answer.response_headers_to_add));
        if self.model.tells_left {
            response_headers::remaining(&answer.statuses, &mut headers);
        }
        let over_limit = answer.is_over_limit();
        let enforced = over_limit && is_one_of(self.model.enforced);
        if over_limit && self.model.tells_limited {
            headers.insert(LIMITED, HeaderValue::from_static("true"));
        }
        if enforced {
            self.refused.increment(1);
            return Err(self.refusal(answer.raw_body, headers, call));
        }
        if over_limit {
            self.let_through.increment(1);
        }
        let request = call.request_mut();
        request.headers.extend(response_headers::sendable(&answer.request_headers_to_add));
        request.response_headers.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        Ok(())
    }

    fn refusal(&self, body: Bytes, of_service: HeaderMap, call: &Call<'_>) -> Refusal {
        let mut headers = HeaderMap::with_capacity(of_service.len() + 1);
        if !body.is_empty() && !of_service.contains_key(header::CONTENT_TYPE) {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        }
        headers.extend(of_service.iter().map(|(name, value)| (name.clone(), value.clone())));
        let values = Variables::new(call.request(), call.connection, "");
        header_changes::apply(&mut headers, true, &self.model.response_headers, &values);
        let grpc_status = self.model.resource_exhausted.then_some(grpc_error::RESOURCE_EXHAUSTED);
        let refusal = Refusal::defined(RATE_LIMITED, self.model.status, body);
        Refusal { grpc_status, ..refusal.logged_as(RATE_LIMITED).with_headers(headers) }
    }

    /// Handles a failed query of the service.
    fn undecided(&self) -> Result<(), Refusal> {
        const REASON: &str = "no decision from the rate limit service";
        if !is_one_of(self.model.denied_on_failure) {
            return Ok(());
        }
        Err(Refusal::defined(REASON, self.model.status_on_error, Bytes::new()).logged_as(REASON))
    }
}

/// Builds a descriptor for the service.
fn told_of(model: &Descriptor, counted: &Counted<'_>) -> Option<RateLimitDescriptor> {
    let entries = counted.entries(model)?;
    Some(RateLimitDescriptor {
        entries: entries.into_iter().map(|(key, value)| Entry { key, value }).collect(),
        limit: model
            .limit
            .map(|limit| LimitOverride { requests_per_unit: limit.requests, unit: limit.unit.into() }),
        hits_addend: model.hits.map(|value| UInt64Value { value }),
    })
}

/// Text for the log.
const RATE_LIMITED: &str = "rate limited";
