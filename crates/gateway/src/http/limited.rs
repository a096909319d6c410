//! What a request gets that is too many under a limit.

use super::{
    HttpConnection, error_page,
    header_changes::{self, Variables},
    rate_limit::Limiter,
    refusal::Refusal,
    request::Request,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use quadrille_config::model::{HeaderChange, RateLimitAnswer};
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
            RateLimitAnswer::Envoy(status, changes) => envoys(*status, changes, http, request),
        })
    })
}

fn own(wait: Duration, request: &Request) -> Refusal<'static> {
    let page = error_page::of(429, "Too many requests; come back later.\n", &request.headers);
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let mut headers = HeaderMap::with_capacity(2);
    headers.insert(header::RETRY_AFTER, seconds.max(1).into());
    if let Ok(content_type) = HeaderValue::try_from(page.content_type) {
        headers.insert(header::CONTENT_TYPE, content_type);
    }
    refusal(429, headers, page.body)
}

fn envoys(
    status: u16,
    changes: &[HeaderChange],
    http: &HttpConnection,
    request: &Request,
) -> Refusal<'static> {
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    let values = Variables {
        connection: &http.connection,
        client: request.sender.client,
        version: request.version,
        upstream: "",
        request: &request.headers,
    };
    header_changes::apply(&mut headers, true, changes, &values);
    refusal(status, headers, Bytes::from_static(b"local_rate_limited"))
}

fn refusal(status: u16, headers: HeaderMap, body: Bytes) -> Refusal<'static> {
    let reason = "rate limited";
    Refusal { reason, what: None, error: Some(reason), status, headers, body }
}
