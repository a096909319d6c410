//! Limits of requests of a route.

use crate::{
    Field,
    file::schema::{Key, Preset, Section},
    model::{Route, RouteBodyLimit},
    size::{body_limit, show_size_or_off},
    values::count,
};
use serde_json::Value;
use std::num::NonZeroUsize;

pub(super) const ROUTE_LIMITS: Section<RouteLimits> = Section {
    path: "listeners[].routes[].limits",
    about: "Limits of matching requests. Headers and URLs are limited by the listener, which reads them before it selects \
            the route.",
    keys: &[
        Key::new(
            "body",
            "size, or `off`",
            Preset::Means("the listener's"),
            "Maximum size of a request body, in place of the listener's `limits.body`. `off` accepts any size, \
                    as gRPC streams need.",
            |field, limits| {
                if let Some(read) = field.parse(body_limit) {
                    limits.body = read.map_or(RouteBodyLimit::Unlimited, RouteBodyLimit::Bytes);
                }
            },
            |limits| match limits.body {
                RouteBodyLimit::OfChain => Value::Null,
                RouteBodyLimit::Unlimited => show_size_or_off(None).into(),
                RouteBodyLimit::Bytes(bytes) => show_size_or_off(Some(bytes)).into(),
            },
        ),
        Key::new(
            "requests_per_client",
            "count",
            Preset::Means("no limit"),
            "Maximum number of active requests of one client at the route, from its request to the end of its response: of \
                    an IPv4 address, or of an IPv6 network of 64 bits, behind `trusted_proxies` too. Further ones receive \
                    a 429 response.",
            |field, limits| limits.active_per_client = field.parse(count),
            |limits| limits.active_per_client.map(NonZeroUsize::get).into(),
        ),
    ],
};

/// Limits of requests of a route.
#[derive(Default, PartialEq, Eq)]
pub(super) struct RouteLimits {
    pub(super) body: RouteBodyLimit,
    pub(super) active_per_client: Option<NonZeroUsize>,
}

pub(super) fn limits(field: &Field<'_>) -> RouteLimits {
    let mut limits = RouteLimits::default();
    ROUTE_LIMITS.read(field, &mut limits);
    limits
}

/// Shows the limits; null if the listener's apply.
pub(super) fn show(route: &Route) -> Value {
    let limits = RouteLimits { body: route.body_limit, active_per_client: route.active_per_client };
    if limits == RouteLimits::default() { Value::Null } else { ROUTE_LIMITS.show(&limits) }
}
