//! What a request gets that is too many under a limit.

use super::{
    HttpConnection,
    descriptors::{self, Entries},
    grpc_error,
    header_changes::{self, Variables},
    rate_limit::Limiter,
    refusal::{self, Refusal},
    request::Request,
    router::MatchedRoute,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use quadrille_config::model::{MadeDescriptors, RateLimitAnswer, RateLimitReply, RateLimited};
use std::{sync::Arc, time::Duration};

/// Counts a request, which takes this route, under all of these that are for it.
///
/// # Errors
/// Says how it is answered if one of them has nothing left for it.
pub(super) fn check(
    limiters: &[Arc<Limiter>],
    route: Option<&MatchedRoute>,
    http: &HttpConnection,
    request: &Request,
) -> Result<(), Refusal<'static>> {
    let count = |limiter: &Limiter, values: &[(String, String)]| {
        limiter.count(request, values).map_err(|wait| match limiter.answer() {
            RateLimitAnswer::Own => own(wait, request),
            RateLimitAnswer::Envoy(answer) => envoys(answer, http, request),
        })
    };
    // Limits that one filter has for descriptors stand together.
    let mut described: Option<(&MadeDescriptors, Vec<Entries>)> = None;
    let mut is_described = false;
    for limiter in limiters {
        match limiter.of() {
            RateLimited::All => count(limiter, &[])?,
            RateLimited::Others if is_described => {}
            RateLimited::Others => count(limiter, &[])?,
            RateLimited::Described(requests) => {
                let made = match described.take() {
                    Some((of, made)) if of == &*requests.made => made,
                    _ => descriptors::made(&requests.made, route, request, http.connection.tls),
                };
                let counts = |entries: &&Entries| {
                    requests.is_like(entries) && (requests.is_exact() || !is_named(limiters, entries))
                };
                for entries in made.iter().filter(counts) {
                    is_described = true;
                    count(limiter, entries)?;
                }
                described = Some((&requests.made, made));
            }
        }
    }
    Ok(())
}

/// Whether one of these is for this very descriptor, in the place of those for any value.
fn is_named(limiters: &[Arc<Limiter>], entries: &[(String, String)]) -> bool {
    limiters.iter().any(|limiter| match limiter.of() {
        RateLimited::Described(requests) => requests.is_exact() && requests.is_like(entries),
        RateLimited::All | RateLimited::Others => false,
    })
}

/// Whether the route of a request says which of these limits are for it.
pub(super) fn ask_routes(limiters: &[Arc<Limiter>]) -> bool {
    limiters.iter().any(|limiter| match limiter.of() {
        RateLimited::Described(requests) => requests.made.own.is_empty(),
        RateLimited::All | RateLimited::Others => false,
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
    let values = Variables::new(request, &http.connection, "");
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
