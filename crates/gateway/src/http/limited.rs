//! What a request gets that is too many under a limit.

use super::{
    HttpConnection, grpc_error,
    header_changes::{self, Variables},
    rate_limit::Limiter,
    refusal::{self, Refusal},
    request::Request,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use quadrille_config::model::{RateLimitAnswer, RateLimitReply};
use std::{sync::Arc, time::Duration};

/// Counts a request under all of these.
///
/// # Errors
/// Says how it is answered if one of them has nothing left for it.
pub(super) fn check(
    limiters: &[Arc<Limiter>],
    http: &HttpConnection,
    request: &Request,
) -> Result<(), Refusal<'static>> {
    limiters.iter().try_for_each(|limiter| {
        limiter.count(request).map_err(|wait| match limiter.answer() {
            RateLimitAnswer::Own => own(wait, request),
            RateLimitAnswer::Envoy(answer) => envoys(answer, http, request),
        })
    })
}

fn own(wait: Duration, request: &Request) -> Refusal<'static> {
    let headers = refusal::retry_after(wait);
    let page = refusal::page(429, "Too many requests; come back later.\n", headers, &request.headers);
    Refusal { reason: RATE_LIMITED, error: Some(RATE_LIMITED), ..page }
}

fn envoys(answer: &RateLimitReply, http: &HttpConnection, request: &Request) -> Refusal<'static> {
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    let values = Variables {
        connection: &http.connection,
        client: request.sender.client,
        version: request.version,
        upstream: "",
        request: &request.headers,
    };
    header_changes::apply(&mut headers, true, &answer.headers, &values);
    let body = Bytes::from_static(b"local_rate_limited");
    Refusal {
        reason: RATE_LIMITED,
        what: None,
        grpc_status: answer.resource_exhausted.then_some(grpc_error::RESOURCE_EXHAUSTED),
        error: Some(RATE_LIMITED),
        status: answer.status,
        headers,
        body,
        is_own: false,
    }
}

/// For the log.
const RATE_LIMITED: &str = "rate limited";
