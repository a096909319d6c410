//! Maximum size of requests of a route.

use crate::{
    Field,
    file::schema::{Key, Preset, Section},
    model::RouteBodyLimit,
    size::{body_limit, show_size_or_off},
};
use serde_json::Value;

pub(super) const ROUTE_LIMITS: Section<RouteBodyLimit> = Section {
    path: "listeners[].routes[].limits",
    about: "Maximum size of matching requests. Headers and URLs are limited by the listener, which reads them before \
            it selects the route.",
    keys: &[Key::new(
        "body",
        "size, or `off`",
        Preset::Means("the listener's"),
        "Maximum size of a request body, in place of the listener's `limits.body`. `off` accepts any size, \
                as gRPC streams need.",
        |field, limit| {
            if let Some(read) = field.parse(body_limit) {
                *limit = read.map_or(RouteBodyLimit::Unlimited, RouteBodyLimit::Bytes);
            }
        },
        |limit| match limit {
            RouteBodyLimit::OfChain => Value::Null,
            RouteBodyLimit::Unlimited => show_size_or_off(None).into(),
            RouteBodyLimit::Bytes(bytes) => show_size_or_off(Some(*bytes)).into(),
        },
    )],
};

pub(super) fn limits(field: &Field<'_>) -> RouteBodyLimit {
    let mut limit = RouteBodyLimit::default();
    ROUTE_LIMITS.read(field, &mut limit);
    limit
}

/// Shows the limits; null if the listener's apply.
pub(super) fn show(limit: RouteBodyLimit) -> Value {
    if limit == RouteBodyLimit::OfChain { Value::Null } else { ROUTE_LIMITS.show(&limit) }
}
