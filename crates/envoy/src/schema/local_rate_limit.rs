//! Envoy's local rate limit filter.

use super::{
    FieldPolicy::{Ignored, Read, RefusedWith},
    HARMLESS, STRICT, Schema,
};

const EVERYBODYS: super::FieldPolicy = RefusedWith(
    "buckets apply to all connections of this process, and ignoring this would change a limit",
    "configure buckets for all connections",
);

pub(crate) const LOCAL_RATE_LIMIT: Schema = Schema {
    name: "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
    fields: &[
        ("stat_prefix", Read("the label `limit` of `quadrille_rate_limited_total`")),
        ("status", Read("429 if omitted, or not an error status")),
        (
            "token_bucket",
            Read("without it, only `descriptors` limit requests; a route's bucket replaces the filter's"),
        ),
        ("filter_enabled", Read("no requests if omitted, as in Envoy")),
        ("filter_enforced", Read("no requests if omitted, as in Envoy")),
        ("response_headers_to_add", Read("")),
        (
            "request_headers_to_add_when_not_enforced",
            Ignored("requests above the limit are not reported to upstreams"),
        ),
        ("descriptors", Read("the slowest bucket first")),
        ("rate_limits", Read("replaces those of routes and hosts")),
        ("stage", Read("0 to 10")),
        ("local_rate_limit_per_downstream_connection", EVERYBODYS),
        ("local_cluster_rate_limit", EVERYBODYS),
        ("enable_x_ratelimit_headers", Ignored("the remaining quota is not sent to clients")),
        ("vh_rate_limits", Read("")),
        ("always_consume_default_token_bucket", Read("")),
        ("rate_limited_as_resource_exhausted", Read("")),
        ("max_dynamic_descriptors", Read("20 if omitted; the descriptor with the lowest usage is evicted")),
    ],
    others: STRICT,
};

pub(crate) const LOCAL_DESCRIPTOR: Schema = Schema {
    name: "envoy.extensions.common.ratelimit.v3.LocalRateLimitDescriptor",
    fields: &[
        ("entries", Read("in this order")),
        ("token_bucket", Read("")),
        ("shadow_mode", Read("only counted")),
    ],
    others: STRICT,
};

pub(crate) const DESCRIPTOR_ENTRY: Schema = Schema {
    name: "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry",
    fields: &[("key", Read("")), ("value", Read("without it, each value has its own bucket"))],
    others: STRICT,
};

pub(crate) const TOKEN_BUCKET: Schema = Schema {
    name: "envoy.type.v3.TokenBucket",
    fields: &[
        ("max_tokens", Read("")),
        ("tokens_per_fill", Read("refilled evenly over the interval")),
        ("fill_interval", Read("at least 50 ms")),
    ],
    others: HARMLESS,
};
