//! What `X-Envoy-*` make of a request's way, and what servers and clients are told in them, as Envoy has it.

use super::{
    destination::Destination,
    envoy_headers::{
        ATTEMPT_COUNT, DURATION, EXPECTED, FOR_US, MAX_RETRIES, RETRIED_STATUSES, RETRY_ON, TIMEOUT,
        TIMEOUT_IS_EMPTY, TRY_TIMEOUT, Use,
    },
    request::Request,
};
use http::{HeaderMap, HeaderName, HeaderValue, uri::PathAndQuery};
use quadrille_config::model::{Forward, RetryOn, RetryPolicy};
use std::time::Duration;

const ORIGINAL_PATH: HeaderName = HeaderName::from_static("x-envoy-original-path");
const ORIGINAL_HOST: HeaderName = HeaderName::from_static("x-envoy-original-host");
const SERVICE_TIME: HeaderName = HeaderName::from_static("x-envoy-upstream-service-time");
const OVERLOADED: HeaderName = HeaderName::from_static("x-envoy-overloaded");

/// How a request goes upstream if its headers want it otherwise than its route does.
pub(super) fn as_asked(request: &Request, to: &Forward) -> Option<Box<Forward>> {
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
        };
        retry(headers, to.retry.get_or_insert_with(none));
    }
    if let (Some(policy), Some(time)) = (&mut to.retry, milliseconds(headers, TRY_TIMEOUT)) {
        policy.per_try_timeout = limit(time);
    }
    Some(to)
}

fn retry(headers: &HeaderMap, policy: &mut RetryPolicy) {
    let words = |name: &HeaderName| {
        let text = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect::<Vec<_>>()
    };
    let statuses: Vec<u16> =
        words(&RETRIED_STATUSES).iter().filter_map(|status| status.parse().ok()).collect();
    if !policy.on.statuses.is_empty() {
        policy.on.statuses.extend(&statuses);
    }
    for word in words(&RETRY_ON) {
        policy.on.add(word, &statuses);
    }
    if policy.on != RetryOn::default()
        && let Some(retries) = number(headers, MAX_RETRIES)
    {
        policy.retries = u32::try_from(retries).unwrap_or(u32::MAX);
    }
}

/// Whether a request that took too long is answered with 204.
pub(super) fn timeout_is_empty(request: &Request) -> bool {
    request.envoy_headers != Use::Unknown && request.headers.contains_key(TIMEOUT_IS_EMPTY)
}

/// How often a request was sent, this time included, and how long ago the first time was.
#[derive(Clone, Copy)]
pub(super) struct Attempt {
    pub(super) number: usize,
    pub(super) elapsed: Duration,
}

impl Attempt {
    /// The first.
    pub(super) const FIRST: Self = Self { number: 1, elapsed: Duration::ZERO };
}

/// Tells a server of time limits and attempts. The route may still change that.
pub(super) fn tell_server(headers: &mut HeaderMap, destination: &Destination<'_>, attempt: Attempt) {
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

/// Tells a server which path and host the client has asked for, where it is another.
pub(super) fn tell_origin(headers: &mut HeaderMap, destination: &Destination<'_>, other_host: bool) {
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

/// How long an attempt may take; `None` has no limit.
fn expected(to: &Forward, elapsed: Duration) -> Option<Duration> {
    let one = to.retry.as_ref().and_then(|policy| policy.per_try_timeout);
    let one = one.filter(|one| to.timeout.is_none_or(|whole| *one < whole));
    // Nothing left would read as no limit.
    let left = to.timeout.map(|whole| whole.saturating_sub(elapsed).max(Duration::from_millis(1)));
    [one, left].into_iter().flatten().min()
}

/// Tells the client how long the server took. The route may still change that.
pub(super) fn tell_client(
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

/// Tells the client that there are too many requests.
pub(super) fn tell_overload(headers: &mut HeaderMap, request: &Request) {
    if request.envoy_headers == Use::ReadAndTold {
        headers.insert(OVERLOADED, HeaderValue::from_static("true"));
    }
}

fn milliseconds(headers: &HeaderMap, name: HeaderName) -> Option<Duration> {
    number(headers, name).map(Duration::from_millis)
}

/// What is no number says nothing.
fn number(headers: &HeaderMap, name: HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}
