//! Rate limit checks of requests, and the responses to requests over a limit.

use super::{
    call::Call,
    rate_limit_descriptors::{self, Entries},
};
use crate::{
    connection::Connection,
    http::{
        error::{grpc_error, refusal::Refusal},
        rate_limit::Limiter,
        request::Request,
        route::{
            header_changes::{self, Variables},
            router::MatchedRoute,
        },
    },
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use quadrille_config::model::{MadeDescriptors, RateLimitAnswer, RateLimitReply, RateLimited};
use std::{sync::Arc, time::Duration};

/// Counts a request on this route against all limits that apply to it.
///
/// # Errors
/// Returns the response if one of the limits is exceeded.
pub(crate) fn check(
    limiters: &[Arc<Limiter>],
    route: Option<&MatchedRoute>,
    connection: &Connection,
    request: &Request,
) -> Result<(), Refusal> {
    let count = |limiter: &Limiter, values: &[(String, String)]| {
        limiter.count(request, values).map_err(|wait| match limiter.answer() {
            RateLimitAnswer::Own => own(wait, request),
            RateLimitAnswer::Envoy(answer) => envoys(answer, connection, request),
        })
    };
    // The limits of one filter are adjacent, so that its descriptors are built once.
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
                    _ => rate_limit_descriptors::made(&requests.made, route, request, connection.tls),
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

/// Returns whether one of the limits is for exactly these entries, and replaces those with wildcard values.
fn is_named(limiters: &[Arc<Limiter>], entries: &[(String, String)]) -> bool {
    limiters.iter().any(|limiter| match limiter.of() {
        RateLimited::Described(requests) => requests.is_exact() && requests.is_like(entries),
        RateLimited::All | RateLimited::Others => false,
    })
}

/// Counts a request against the limits of its chain, or those that its route has in their place.
///
/// # Errors
/// Returns the response if one of the limits is exceeded.
pub(super) fn check_chain(own: &[Arc<Limiter>], call: &mut Call<'_>) -> Result<(), Refusal> {
    let needs_route = call.router.has_own_limits() || use_route_descriptors(own);
    let route = if needs_route { call.route() } else { None };
    let in_place = route.as_ref().and_then(MatchedRoute::limits_in_place);
    check(in_place.unwrap_or(own), route.as_ref(), call.connection, call.request())
}

/// Returns whether any of the limits takes its descriptors from the route.
fn use_route_descriptors(limiters: &[Arc<Limiter>]) -> bool {
    limiters.iter().any(|limiter| match limiter.of() {
        RateLimited::Described(requests) => requests.made.own.is_empty(),
        RateLimited::All | RateLimited::Others => false,
    })
}

/// Refuses a request of a client that has its maximum number of active requests at a route.
pub(crate) fn too_many_active(request: &Request) -> Refusal {
    let words = "Too many requests at once; wait for the others to end.\n";
    Refusal::page(RATE_LIMITED, 429, words, &request.headers).logged_as(RATE_LIMITED)
}

fn own(wait: Duration, request: &Request) -> Refusal {
    let page = Refusal::page(RATE_LIMITED, 429, "Too many requests; try again later.\n", &request.headers);
    page.logged_as(RATE_LIMITED).retry_after(wait)
}

fn envoys(answer: &RateLimitReply, connection: &Connection, request: &Request) -> Refusal {
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    let values = Variables::new(request, connection, "");
    header_changes::apply(&mut headers, true, &answer.headers, &values);
    let grpc_status = answer.resource_exhausted.then_some(grpc_error::RESOURCE_EXHAUSTED);
    let refusal = Refusal::defined(RATE_LIMITED, answer.status, Bytes::from_static(b"local_rate_limited"));
    Refusal { grpc_status, ..refusal.logged_as(RATE_LIMITED).with_headers(headers) }
}

/// Text for the log.
const RATE_LIMITED: &str = "rate limited";
