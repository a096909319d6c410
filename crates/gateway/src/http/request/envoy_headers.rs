//! `X-Envoy-*` request headers: their names, and the clients they are accepted from, compatible with Envoy.

use super::{
    forwarded_for::{self, FORWARDED_FOR},
    header_spelling::{self, reads_as},
};
use crate::connection::Connection;
use http::{HeaderMap, HeaderName, HeaderValue};
use quadrille_config::model::EnvoyHeaders;

pub(crate) const INTERNAL: HeaderName = HeaderName::from_static("x-envoy-internal");
const EXTERNAL_ADDRESS: HeaderName = HeaderName::from_static("x-envoy-external-address");
pub(crate) const EXPECTED: HeaderName = HeaderName::from_static("x-envoy-expected-rq-timeout-ms");
pub(crate) const ATTEMPT_COUNT: HeaderName = HeaderName::from_static("x-envoy-attempt-count");

pub(crate) const TIMEOUT: HeaderName = HeaderName::from_static("x-envoy-upstream-rq-timeout-ms");
pub(crate) const TRY_TIMEOUT: HeaderName = HeaderName::from_static("x-envoy-upstream-rq-per-try-timeout-ms");
pub(crate) const DURATION: HeaderName = HeaderName::from_static("x-envoy-upstream-stream-duration-ms");
pub(crate) const TIMEOUT_IS_EMPTY: HeaderName =
    HeaderName::from_static("x-envoy-upstream-rq-timeout-alt-response");
pub(crate) const RETRY_ON: HeaderName = HeaderName::from_static("x-envoy-retry-on");
pub(crate) const MAX_RETRIES: HeaderName = HeaderName::from_static("x-envoy-max-retries");
pub(crate) const RETRIED_STATUSES: HeaderName = HeaderName::from_static("x-envoy-retriable-status-codes");

/// Headers that only the gateway reads.
pub(crate) const FOR_US: [HeaderName; 11] = [
    TIMEOUT,
    TRY_TIMEOUT,
    DURATION,
    TIMEOUT_IS_EMPTY,
    RETRY_ON,
    MAX_RETRIES,
    RETRIED_STATUSES,
    HeaderName::from_static("x-envoy-retry-grpc-on"),
    HeaderName::from_static("x-envoy-upstream-alt-stat-name"),
    HeaderName::from_static("x-envoy-retriable-header-names"),
    HeaderName::from_static("x-envoy-hedge-on-per-try-timeout"),
];

/// Headers that are removed from external requests, in addition to those that only the gateway reads.
const FROM_INSIDE: [HeaderName; 4] = [
    EXPECTED,
    HeaderName::from_static("x-envoy-force-trace"),
    HeaderName::from_static("x-envoy-ip-tags"),
    HeaderName::from_static("x-envoy-original-url"),
];

/// Headers that are also removed at the edge.
const FROM_BEHIND_THE_EDGE: [HeaderName; 5] = [
    HeaderName::from_static("x-envoy-original-path"),
    HeaderName::from_static("x-envoy-original-host"),
    HeaderName::from_static("x-envoy-downstream-service-cluster"),
    HeaderName::from_static("x-envoy-downstream-service-node"),
    HeaderName::from_static("x-envoy-decorator-operation"),
];

/// Meaning of `x-envoy-*` headers in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// No meaning.
    Unknown,
    /// Envoy's meaning; no further ones are sent to upstreams and clients.
    Read,
    /// Envoy's meaning; further ones are sent to upstreams and clients.
    ReadAndTold,
}

impl Use {
    pub(crate) fn of(settings: &EnvoyHeaders) -> Self {
        if settings.suppress { Self::Read } else { Self::ReadAndTold }
    }
}

/// Removes headers that an external client must not send; `internal_headers` lists further ones. Returns whether the
/// client is internal.
pub(crate) fn receive(
    settings: &EnvoyHeaders,
    internal_headers: &[HeaderName],
    connection: &Connection,
    headers: &mut HeaderMap,
) -> bool {
    let peer = connection.client.ip();
    let is_only = if settings.edge {
        (!headers.contains_key(FORWARDED_FOR)).then_some(peer)
    } else {
        forwarded_for::only(headers).filter(|_| settings.trusted_hops == 0)
    };
    let internal =
        is_only.is_some_and(|client| settings.internal.iter().any(|network| network.contains(client)));
    headers.remove(INTERNAL);
    if internal {
        headers.insert(INTERNAL, HeaderValue::from_static("true"));
        return true;
    }
    internal_headers.iter().for_each(|name| header_spelling::remove(headers, name));
    remove_claims(headers, settings.edge);
    if settings.edge {
        let behind = settings.trusted_hops.checked_sub(1);
        let behind = behind.and_then(|hops| forwarded_for::from_the_end(headers, hops as usize));
        let client = behind.map(|client| client.to_string());
        let client = client.and_then(|client| HeaderValue::try_from(client).ok());
        headers.insert(EXTERNAL_ADDRESS, client.unwrap_or_else(|| connection.client_ip_header().clone()));
    }
    false
}

/// Removes headers that the client must not set, and those that an upstream that maps `-` to `_` would take for them.
fn remove_claims(headers: &mut HeaderMap, edge: bool) {
    let reads_as_ours = |name: &HeaderName| reads_as(name.as_str(), "x-envoy-");
    if !headers.keys().any(reads_as_ours) {
        return;
    }
    let at_the_edge: &[HeaderName] = if edge { &FROM_BEHIND_THE_EDGE } else { &[] };
    FOR_US.iter().chain(&FROM_INSIDE).chain(at_the_edge).for_each(|name| _ = headers.remove(name));
    let is_other = |name: &&HeaderName| reads_as_ours(name) && name.as_str().contains('_');
    let others: Vec<HeaderName> = headers.keys().filter(is_other).cloned().collect();
    others.iter().for_each(|name| _ = headers.remove(name));
}
