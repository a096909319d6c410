//! How many requests are served in a time: Envoy's filter that limits them locally.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, RefusedWith},
    HARMLESS, STRICT, Schema,
};

const ONE_BUCKET: super::FieldPolicy = RefusedWith(
    "requests have one bucket for all of them, and ignoring this would lift a limit",
    "write `token_bucket` for routes, or `rate_limits` in Quadrille's own form",
);

pub(crate) const LOCAL_RATE_LIMIT: Schema = Schema {
    name: "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
    fields: &[
        ("stat_prefix", Read("the label `limit` of `quadrille_rate_limited_total`")),
        ("status", Read("429 if it is left out, or no error")),
        ("token_bucket", Read("without it, nothing is limited; a route's takes the place of the filter's")),
        ("filter_enabled", Read("none if it is left out, as in Envoy")),
        ("filter_enforced", Read("none if it is left out, as in Envoy")),
        ("response_headers_to_add", Read("")),
        (
            "request_headers_to_add_when_not_enforced",
            Ignored("servers are not told of requests that were too many"),
        ),
        ("descriptors", ONE_BUCKET),
        ("rate_limits", ONE_BUCKET),
        ("stage", Accepted("it is of descriptors")),
        ("local_rate_limit_per_downstream_connection", ONE_BUCKET),
        ("local_cluster_rate_limit", ONE_BUCKET),
        ("enable_x_ratelimit_headers", Ignored("clients are not told what is left")),
        ("vh_rate_limits", Accepted("it is of descriptors")),
        ("always_consume_default_token_bucket", Accepted("it is of descriptors")),
        ("rate_limited_as_resource_exhausted", Read("")),
        ("max_dynamic_descriptors", Accepted("it is of descriptors")),
    ],
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
