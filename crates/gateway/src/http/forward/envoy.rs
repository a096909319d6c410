//! `X-Envoy-*` headers: their effect on forwarding, and the ones sent to upstreams and clients, compatible with
//! Envoy.

use super::destination::Destination;
use crate::{
    header_list,
    http::request::{
        Request,
        envoy_headers::{
            ATTEMPT_COUNT, DURATION, EXPECTED, FOR_US, MAX_RETRIES, RETRIED_STATUSES, RETRY_ON, TIMEOUT,
            TIMEOUT_IS_EMPTY, TRY_TIMEOUT, Use,
        },
    },
};
use http::{HeaderMap, HeaderName, HeaderValue, uri::PathAndQuery};
use quadrille_config::model::{Forward, RetryOn, RetryPolicy};
use std::time::Duration;

const ORIGINAL_PATH: HeaderName = HeaderName::from_static("x-envoy-original-path");
const ORIGINAL_HOST: HeaderName = HeaderName::from_static("x-envoy-original-host");
const SERVICE_TIME: HeaderName = HeaderName::from_static("x-envoy-upstream-service-time");
const OVERLOADED: HeaderName = HeaderName::from_static("x-envoy-overloaded");

/// Returns the forwarding settings if the request's headers override the route's.
pub(crate) fn as_asked(request: &Request, to: &Forward) -> Option<Box<Forward>> {
    const READ: [HeaderName; 6] = [TIMEOUT, TRY_TIMEOUT, DURATION, RETRY_ON, MAX_RETRIES, RETRIED_STATUSES];
    let headers = &request.headers;
    if request.envoy_headers == Use::Unknown || !READ.iter().any(|name| headers.contains_key(name)) {
        return None;
    }
    let mut to = Box::new(to.clone());
    let limit = |time: Duration| Some(time).filter(|time| !time.is_zero());
    if let Some(time) = milliseconds(headers, TIMEOUT) {
        to.timeout = limit(time);
    }
    if let Some(time) = milliseconds(headers, DURATION).and_then(limit) {
        to.timeout = Some(to.timeout.map_or(time, |timeout| timeout.min(time)));
    }
    if headers.contains_key(RETRY_ON) || to.retry.is_some() {
        let none = || RetryPolicy {
            on: RetryOn::default(),
            retries: 1,
            per_try_timeout: None,
            idempotent_only: false,
            backoff: true,
        };
        retry(headers, to.retry.get_or_insert_with(none));
    }
    if let (Some(policy), Some(time)) = (&mut to.retry, milliseconds(headers, TRY_TIMEOUT)) {
        policy.per_try_timeout = limit(time);
    }
    Some(to)
}

fn retry(headers: &HeaderMap, policy: &mut RetryPolicy) {
    let statuses: Vec<u16> =
        header_list::members(headers, RETRIED_STATUSES).filter_map(|status| status.parse().ok()).collect();
    if !policy.on.statuses.is_empty() {
        policy.on.statuses.extend(&statuses);
    }
    for word in header_list::members(headers, RETRY_ON) {
        policy.on.add(word, &statuses);
    }
    if policy.on != RetryOn::default()
        && let Some(retries) = number(headers, MAX_RETRIES)
    {
        policy.retries = u32::try_from(retries).unwrap_or(u32::MAX);
    }
}

/// Returns whether a timeout is reported to the client with status 204.
pub(crate) fn timeout_is_empty(request: &Request) -> bool {
    request.envoy_headers != Use::Unknown && request.headers.contains_key(TIMEOUT_IS_EMPTY)
}

/// Number of times that a request was sent, this attempt included, and time since the first.
#[derive(Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) number: usize,
    pub(crate) elapsed: Duration,
}

impl Attempt {
    /// The first attempt.
    pub(crate) const FIRST: Self = Self { number: 1, elapsed: Duration::ZERO };
}

/// Tells the upstream the timeouts and the attempt number. The route may still change these headers.
pub(crate) fn tell_server(headers: &mut HeaderMap, destination: &Destination<'_>, attempt: Attempt) {
    let told = destination.request.envoy_headers;
    if told == Use::Unknown {
        return;
    }
    FOR_US.iter().for_each(|name| _ = headers.remove(name));
    if destination.to.attempts.in_requests {
        headers.insert(ATTEMPT_COUNT, attempt.number.into());
    }
    if told == Use::ReadAndTold
        && let Some(expected) = expected(destination.to, attempt.elapsed)
    {
        headers.insert(EXPECTED, (expected.as_millis() as u64).into());
    }
}

/// Tells the upstream the path and host of the client's request where they were rewritten.
pub(crate) fn tell_origin(headers: &mut HeaderMap, destination: &Destination<'_>, other_host: bool) {
    let request = destination.request;
    if request.envoy_headers != Use::ReadAndTold {
        return;
    }
    let path = request.uri.path_and_query().filter(|_| destination.to.rewrite.is_some());
    let host = Some(request.host()).filter(|_| other_host);
    for (name, text) in [(ORIGINAL_PATH, path.map(PathAndQuery::as_str)), (ORIGINAL_HOST, host)] {
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.insert(name, value);
        }
    }
}

/// Returns the time limit of an attempt; `None` means no limit.
fn expected(to: &Forward, elapsed: Duration) -> Option<Duration> {
    let one = to.retry.as_ref().and_then(|policy| policy.per_try_timeout);
    let one = one.filter(|one| to.timeout.is_none_or(|whole| *one < whole));
    // Zero would mean no limit.
    let left = to.timeout.map(|whole| whole.saturating_sub(elapsed).max(Duration::from_millis(1)));
    [one, left].into_iter().flatten().min()
}

/// Tells the client how long the upstream took. The route may still change the header.
pub(crate) fn tell_client(
    headers: &mut HeaderMap,
    request: &Request,
    took: impl FnOnce() -> Option<Duration>,
) {
    if request.envoy_headers == Use::ReadAndTold
        && let Some(took) = took()
    {
        headers.insert(SERVICE_TIME, (took.as_millis() as u64).into());
    }
}

/// Tells the client that the upstream is overloaded.
pub(crate) fn tell_overload(headers: &mut HeaderMap, request: &Request) {
    if request.envoy_headers == Use::ReadAndTold {
        headers.insert(OVERLOADED, HeaderValue::from_static("true"));
    }
}

fn milliseconds(headers: &HeaderMap, name: HeaderName) -> Option<Duration> {
    number(headers, name).map(Duration::from_millis)
}

/// Returns the value of a numeric header. A malformed value is ignored.
fn number(headers: &HeaderMap, name: HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}
