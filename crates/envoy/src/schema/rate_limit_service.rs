//! Envoy's rate limit filter with an external service, and the descriptors sent to it.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, Refused, RefusedWith},
    STRICT, Schema,
};

const WOULD_LIFT: super::FieldPolicy =
    Refused("the service would receive less, and ignoring it could lift a limit");

pub(crate) const RATE_LIMIT_SERVICE: Schema = Schema {
    name: "envoy.extensions.filters.http.ratelimit.v3.RateLimit",
    fields: &[
        ("domain", Read("also the label `limit` of `quadrille_rate_limited_total`")),
        ("stage", Read("0 to 10")),
        (
            "request_type",
            Read("`internal`, `external`, `both`; internal addresses: `internal_address_config`"),
        ),
        ("timeout", Read("20 ms if omitted; `0s` is refused")),
        ("failure_mode_deny", Read("")),
        ("rate_limited_as_resource_exhausted", Read("")),
        ("rate_limit_service", Read("")),
        ("enable_x_ratelimit_headers", Read("`DRAFT_VERSION_03`")),
        ("disable_x_envoy_ratelimited_header", Read("")),
        ("rate_limited_status", Read("429 if omitted, or not an error status")),
        ("response_headers_to_add", Read("")),
        ("status_on_error", Read("500 if omitted")),
        ("stat_prefix", Accepted("")),
        ("filter_enabled", Read("all requests if omitted")),
        ("filter_enforced", Read("likewise")),
        ("failure_mode_deny_percent", Read("replaces `failure_mode_deny`")),
        ("rate_limits", Read("replaces those of routes and hosts")),
        ("metadata_namespace", Accepted("the service's metadata is not stored")),
        ("enable_retry_after_header", Ignored("`retry-after` is not sent to clients")),
    ],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_PER_ROUTE: Schema = Schema {
    name: "envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute",
    fields: &[
        ("vh_rate_limits", Read("")),
        ("override_option", Refused("without effect in Envoy")),
        ("rate_limits", Read("replaces those of the route and its host")),
        ("domain", Read("replaces the filter's")),
    ],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_SERVICE_CONFIG: Schema = Schema {
    name: "envoy.config.ratelimit.v3.RateLimitServiceConfig",
    fields: &[("grpc_service", Read("")), ("transport_api_version", Read("`V3`"))],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_GRPC_SERVICE: Schema = Schema {
    name: "envoy.config.core.v3.GrpcService (ratelimit)",
    fields: &[
        ("envoy_grpc", Read("")),
        ("google_grpc", RefusedWith("Google gRPC is not supported", "write `envoy_grpc`")),
        ("timeout", Accepted("the filter's own timeout applies")),
        ("initial_metadata", Refused("only descriptors are sent to the service")),
        ("retry_policy", Refused("requests to the service are not retried")),
    ],
    others: STRICT,
};

pub(crate) const RATE_LIMIT: Schema = Schema {
    name: "envoy.config.route.v3.RateLimit",
    fields: &[
        ("stage", Read("0 to 10; not within a filter")),
        ("disable_key", Accepted("there are no runtime flags")),
        ("actions", Read("")),
        ("limit", Read("")),
        (
            "hits_addend",
            Read("for descriptors of filters; those of routes and hosts count as one, as in Envoy"),
        ),
        ("apply_on_stream_done", Refused("the service is queried before a request is served")),
        ("x_ratelimit_option", Ignored("the filter controls the response headers")),
    ],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_HITS: Schema = Schema {
    name: "envoy.config.route.v3.RateLimit.HitsAddend",
    fields: &[
        ("number", Read("at most 1000000000")),
        ("format", WOULD_LIFT),
        ("is_negative_hits", Refused("hits cannot be subtracted")),
    ],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_OVERRIDE: Schema = Schema {
    name: "envoy.config.route.v3.RateLimit.Override",
    fields: &[("dynamic_metadata", Refused("no filter sets limits in metadata")), ("rate_limit", Read(""))],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_OVERRIDE_VALUE: Schema = Schema {
    name: "envoy.config.route.v3.RateLimit.Override.RateLimitOverride",
    fields: &[("requests_per_unit", Read("")), ("unit", Read(""))],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_ACTION: Schema = Schema {
    name: "envoy.config.route.v3.RateLimit.Action",
    fields: &[
        (
            "source_cluster",
            RefusedWith(
                "the name of this process's cluster is not sent",
                "write `generic_key` with `descriptor_key: source_cluster`",
            ),
        ),
        ("destination_cluster", Read("for routes with a single cluster")),
        ("request_headers", Read("")),
        ("query_parameters", Read("")),
        ("remote_address", Read("")),
        ("generic_key", Read("")),
        ("header_value_match", Read("")),
        ("dynamic_metadata", Refused("write `metadata`, which replaces it")),
        ("metadata", Read("")),
        ("extension", WOULD_LIFT),
        ("masked_remote_address", Read("")),
        ("query_parameter_value_match", Read("")),
        ("remote_address_match", Read("")),
    ],
    others: STRICT,
};

/// Message without fields that are read.
pub(crate) const RATE_LIMIT_BARE_ACTION: Schema = Schema {
    name: "envoy.config.route.v3.RateLimit.Action.RemoteAddress (and DestinationCluster)",
    fields: &[],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_HEADER: Schema = Schema {
    name: "envoy.config.route.v3.RateLimit.Action.RequestHeaders",
    fields: &[
        ("header_name", Read("the first header line is used")),
        ("descriptor_key", Read("")),
        ("skip_if_absent", Read("")),
    ],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_QUERY: Schema = Schema {
    name: "envoy.config.route.v3.RateLimit.Action.QueryParameters",
    fields: &[
        ("query_parameter_name", Read("the first parameter of this name is used")),
        ("descriptor_key", Read("")),
        ("skip_if_absent", Read("")),
    ],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_MASKED_ADDRESS: Schema = Schema {
    name: "envoy.config.route.v3.RateLimit.Action.MaskedRemoteAddress",
    fields: &[("v4_prefix_mask_len", Read("32 if omitted")), ("v6_prefix_mask_len", Read("128"))],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_GENERIC_KEY: Schema = Schema {
    name: "envoy.config.route.v3.RateLimit.Action.GenericKey",
    fields: &[
        ("descriptor_value", Read("used literally, as in Envoy 1.40")),
        ("default_value", Accepted("the value is never empty")),
        ("descriptor_key", Read("`generic_key` if omitted")),
    ],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_HEADER_MATCH: Schema = Schema {
    name: "envoy.config.route.v3.RateLimit.Action.HeaderValueMatch",
    fields: &[
        ("descriptor_value", Read("used literally, as in Envoy 1.40")),
        ("default_value", Accepted("the value is never empty")),
        ("descriptor_key", Read("`header_match` if omitted")),
        ("expect_match", Read("")),
        ("headers", Read("")),
    ],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_QUERY_MATCH: Schema = Schema {
    name: "envoy.config.route.v3.RateLimit.Action.QueryParameterValueMatch",
    fields: &[
        ("descriptor_value", Read("used literally, as in Envoy 1.40")),
        ("default_value", Accepted("the value is never empty")),
        ("descriptor_key", Read("`query_match` if omitted")),
        ("expect_match", Read("")),
        ("query_parameters", Read("")),
    ],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_ADDRESS_MATCH: Schema = Schema {
    name: "envoy.config.route.v3.RateLimit.Action.RemoteAddressMatch",
    fields: &[
        ("descriptor_value", Read("used literally, as in Envoy 1.40")),
        ("default_value", Accepted("the value is never empty")),
        ("descriptor_key", Read("`remote_address_match` if omitted")),
        ("address_matcher", Read("")),
    ],
    others: STRICT,
};

pub(crate) const ADDRESS_MATCHER: Schema = Schema {
    name: "envoy.type.matcher.v3.AddressMatcher",
    fields: &[("ranges", Read("")), ("invert_match", Read(""))],
    others: STRICT,
};

pub(crate) const RATE_LIMIT_METADATA: Schema = Schema {
    name: "envoy.config.route.v3.RateLimit.Action.MetaData",
    fields: &[
        ("descriptor_key", Read("")),
        ("metadata_key", Read("")),
        ("default_value", Read("")),
        ("source", Read("`DYNAMIC`: dynamic metadata of filters")),
        ("skip_if_absent", Read("")),
    ],
    others: STRICT,
};

pub(crate) const METADATA_KEY: Schema = Schema {
    name: "envoy.type.metadata.v3.MetadataKey",
    fields: &[
        ("key", Read("`envoy.filters.http.jwt_authn` or `envoy.filters.http.rbac`")),
        ("path", Read("")),
    ],
    others: STRICT,
};

pub(crate) const METADATA_KEY_SEGMENT: Schema = Schema {
    name: "envoy.type.metadata.v3.MetadataKey.PathSegment",
    fields: &[("key", Read(""))],
    others: STRICT,
};
