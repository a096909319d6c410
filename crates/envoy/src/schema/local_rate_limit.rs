//! How many requests are served in a time: Envoy's filter that limits them locally.

use super::{
    FieldPolicy::{Ignored, Read, RefusedWith},
    HARMLESS, STRICT, Schema,
};

const EVERYBODYS: super::FieldPolicy = RefusedWith(
    "buckets are for all connections of this process, and ignoring this would change a limit",
    "write buckets for all of them",
);

pub(crate) const LOCAL_RATE_LIMIT: Schema = Schema {
    name: "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
    fields: &[
        ("stat_prefix", Read("the label `limit` of `quadrille_rate_limited_total`")),
        ("status", Read("429 if it is left out, or no error")),
        (
            "token_bucket",
            Read(
                "without it, nothing is limited but by `descriptors`; a route's takes the place of the filter's",
            ),
        ),
        ("filter_enabled", Read("none if it is left out, as in Envoy")),
        ("filter_enforced", Read("none if it is left out, as in Envoy")),
        ("response_headers_to_add", Read("")),
        (
            "request_headers_to_add_when_not_enforced",
            Ignored("servers are not told of requests that were too many"),
        ),
        ("descriptors", Read("the slowest first")),
        ("rate_limits", Read("in the place of those of routes and hosts")),
        ("stage", Read("0 to 10")),
        ("local_rate_limit_per_downstream_connection", EVERYBODYS),
        ("local_cluster_rate_limit", EVERYBODYS),
        ("enable_x_ratelimit_headers", Ignored("clients are not told what is left")),
        ("vh_rate_limits", Read("")),
        ("always_consume_default_token_bucket", Read("")),
        ("rate_limited_as_resource_exhausted", Read("")),
        ("max_dynamic_descriptors", Read("20 if it is left out; the one that has used least is forgotten")),
    ],
    others: STRICT,
};

pub(crate) const LOCAL_DESCRIPTOR: Schema = Schema {
    name: "envoy.extensions.common.ratelimit.v3.LocalRateLimitDescriptor",
    fields: &[
        ("entries", Read("in this order")),
        ("token_bucket", Read("")),
        ("shadow_mode", Read("it only counts")),
    ],
    others: STRICT,
};

pub(crate) const DESCRIPTOR_ENTRY: Schema = Schema {
    name: "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry",
    fields: &[("key", Read("")), ("value", Read("without it, each value has a bucket of its own"))],
    others: STRICT,
};

pub(crate) const TOKEN_BUCKET: Schema = Schema {
    name: "envoy.type.v3.TokenBucket",
    fields: &[
        ("max_tokens", Read("")),
        ("tokens_per_fill", Read("they come back evenly over the interval")),
        ("fill_interval", Read("50 ms or more")),
    ],
    others: HARMLESS,
};
