//! Services that are asked whether a request is one too many. They are asked about requests that go upstream; what a
//! service cannot say is as the configuration says.

mod grpc;
mod told;

use super::{
    descriptors::{Counted, of_route},
    envoy_headers::INTERNAL,
    grpc_error,
    header_changes::{self, Variables},
    refusal::Refusal,
    request::Request,
    router::Router,
    service_call::{CallError, ServiceCall},
};
use crate::{
    connection::Connection,
    share::is_one_of,
    telemetry::{metrics, paced::Paced},
    upstream::{ConnectionPool, Upstream, Upstreams},
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

/// Bytes of a service's answer, at most.
const LARGEST_ANSWER: usize = 64 * 1024;
const LIMITED: HeaderName = HeaderName::from_static("x-envoy-ratelimited");

/// A service that is asked about requests.
pub(crate) struct RateLimitService {
    model: Arc<Model>,
    /// `None` as long as there is no such upstream.
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

    /// Whether the service lets a request pass, which then has what it adds.
    ///
    /// # Errors
    /// Says how the client is answered otherwise.
    pub(super) async fn check(
        &self,
        router: &Arc<Router>,
        request: &mut Request,
        connection: &Connection,
        pool: &Arc<ConnectionPool>,
    ) -> Result<(), Refusal<'static>> {
        let Some(question) = self.question(router, request, connection.tls) else { return Ok(()) };
        match self.ask(&question, request, connection, pool).await {
            Ok(answer) => self.obey(answer, request, connection),
            Err(error) => {
                if self.warning.is_due() {
                    tracing::warn!(
                        upstream = self.model.upstream,
                        error = error.text(),
                        "rate limit service"
                    );
                }
                self.unanswered.increment(1);
                self.undecided()
            }
        }
    }

    /// What the service is asked; `None` if nothing of the request is counted.
    fn question(&self, router: &Arc<Router>, request: &Request, tls: bool) -> Option<RateLimitRequest> {
        let model = &*self.model;
        let is_internal = request.headers.get(INTERNAL).is_some_and(|value| value == "true");
        let counts = match model.clients {
            RateLimitedClients::All => true,
            RateLimitedClients::Internal => is_internal,
            RateLimitedClients::External => !is_internal,
        };
        if !counts || !is_one_of(model.asked) {
            return None;
        }
        let matched = router.matched(&request.view(tls))?;
        let route = matched.route();
        if !matches!(route.action, Action::Forward(_)) {
            return None;
        }
        let (own, models) = self.models(route)?;
        let counted = Counted::new(request, Some(route), tls);
        let descriptors: Vec<RateLimitDescriptor> =
            models.into_iter().filter_map(|model| told_of(model, &counted)).collect();
        let domain = own.and_then(|own| own.domain.clone()).unwrap_or_else(|| model.domain.clone());
        (!descriptors.is_empty()).then_some(RateLimitRequest { domain, descriptors })
    }

    /// Which descriptors count on a route, with what it says of this filter; `None` if it is off there.
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

    async fn ask(
        &self,
        question: &RateLimitRequest,
        request: &Request,
        connection: &Connection,
        pool: &Arc<ConnectionPool>,
    ) -> Result<RateLimitResponse, CallError> {
        let call = ServiceCall {
            upstream: self.upstream.as_ref(),
            authority: Some(&self.model.authority),
            client: request.sender.client,
            connection,
            pool,
            timeout: self.model.timeout,
            largest_answer: LARGEST_ANSWER,
        };
        call.call(&self.model.authority, grpc::METHOD, question, "not a RateLimitResponse").await
    }

    fn obey(
        &self,
        answer: RateLimitResponse,
        request: &mut Request,
        connection: &Connection,
    ) -> Result<(), Refusal<'static>> {
        let mut headers = HeaderMap::new();
        headers.extend(told::headers(&answer.response_headers_to_add));
        if self.model.tells_left {
            told::left(&answer.statuses, &mut headers);
        }
        let over_limit = answer.is_over_limit();
        let enforced = over_limit && is_one_of(self.model.enforced);
        if over_limit && self.model.tells_limited {
            headers.insert(LIMITED, HeaderValue::from_static("true"));
        }
        if enforced {
            self.refused.increment(1);
            return Err(self.refusal(answer.raw_body, headers, request, connection));
        }
        if over_limit {
            self.let_through.increment(1);
        }
        request.headers.extend(told::headers(&answer.request_headers_to_add));
        request.answer_headers.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        Ok(())
    }

    fn refusal(
        &self,
        body: Bytes,
        of_service: HeaderMap,
        request: &Request,
        connection: &Connection,
    ) -> Refusal<'static> {
        let mut headers = HeaderMap::with_capacity(of_service.len() + 1);
        if !body.is_empty() && !of_service.contains_key(header::CONTENT_TYPE) {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        }
        headers.extend(of_service.iter().map(|(name, value)| (name.clone(), value.clone())));
        let values = Variables::new(request, connection, "");
        header_changes::apply(&mut headers, true, &self.model.response_headers, &values);
        Refusal {
            reason: RATE_LIMITED,
            what: None,
            grpc_status: self.model.resource_exhausted.then_some(grpc_error::RESOURCE_EXHAUSTED),
            error: Some(RATE_LIMITED),
            status: self.model.status,
            headers,
            body,
            is_own: false,
        }
    }

    /// The service could not be asked.
    fn undecided(&self) -> Result<(), Refusal<'static>> {
        const REASON: &str = "the rate limit service could not be asked";
        if !is_one_of(self.model.denied_on_failure) {
            return Ok(());
        }
        Err(Refusal {
            reason: REASON,
            what: None,
            grpc_status: None,
            error: Some(REASON),
            status: self.model.status_on_error,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            is_own: false,
        })
    }
}

/// What the service is told of a descriptor.
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

/// For the log.
const RATE_LIMITED: &str = "rate limited";
