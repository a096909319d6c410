//! Route configurations, virtual hosts, and route matching.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, Refused, RefusedWith},
    HARMLESS, Schema,
};

pub(super) const HEADERS_HERE: &str = "";
const MUST_MATCH: super::FieldPolicy = Refused(
    "Quadrille does not know this condition, and ignoring it would route unrelated requests to this route",
);

/// Note on a filter's per-route settings.
pub(super) const PER_ROUTE: &str = "for CORS, faults and rate limits; refused for RBAC, JWT and ext_authz; otherwise ignored: it configures filters without effect here";

pub(crate) const ROUTE_CONFIGURATION: Schema = Schema {
    name: "envoy.config.route.v3.RouteConfiguration",
    fields: &[
        ("name", Read("")),
        ("virtual_hosts", Read("")),
        ("vhds", Refused("VHDS is not supported")),
        (
            "internal_only_headers",
            Read("removed unless the client is internal per `internal_address_config`"),
        ),
        ("request_headers_to_add", Read(HEADERS_HERE)),
        ("request_headers_to_remove", Read("")),
        ("response_headers_to_add", Read("")),
        ("response_headers_to_remove", Read("")),
        ("most_specific_header_mutations_wins", Read("")),
        ("validate_clusters", Accepted("requests to a missing cluster get 503")),
        ("max_direct_response_body_size_bytes", Read("")),
        ("cluster_specifier_plugins", Ignored("a route that uses one is refused")),
        ("request_mirror_policies", Read("for routes and hosts without a policy")),
        ("ignore_port_in_host_matching", Read("")),
        ("ignore_path_parameters_in_path_matching", Refused("path parameters are part of the path")),
        ("typed_per_filter_config", Read(PER_ROUTE)),
        ("metadata", Accepted("")),
    ],
    others: HARMLESS,
};

pub(crate) const VIRTUAL_HOST: Schema = Schema {
    name: "envoy.config.route.v3.VirtualHost",
    fields: &[
        ("name", Read("")),
        ("domains", Read("")),
        ("routes", Read("")),
        ("matcher", Refused("write `routes`")),
        ("require_tls", Read("`EXTERNAL_ONLY` is treated as `ALL`")),
        ("virtual_clusters", Ignored("only used for statistics")),
        ("rate_limits", Read("for the rate limit service filter")),
        ("request_headers_to_add", Read("")),
        ("request_headers_to_remove", Read("")),
        ("response_headers_to_add", Read("")),
        ("response_headers_to_remove", Read("")),
        ("cors", Refused("write `typed_per_filter_config`")),
        ("typed_per_filter_config", Read(PER_ROUTE)),
        ("include_request_attempt_count", Read("")),
        ("include_attempt_count_in_response", Read("")),
        ("include_is_timeout_retry_header", Ignored("the reason for a retry is not sent")),
        ("retry_policy", Read("for routes without a policy")),
        ("retry_policy_typed_config", Refused("write `retry_policy`")),
        ("hedge_policy", Ignored("requests are not hedged")),
        ("per_request_buffer_limit_bytes", Ignored("bodies of up to 64 KiB can be retried")),
        ("request_mirror_policies", Read("for routes without a policy")),
        ("metadata", Accepted("")),
    ],
    others: HARMLESS,
};

pub(crate) const ROUTE: Schema = Schema {
    name: "envoy.config.route.v3.Route",
    fields: &[
        ("name", Read("")),
        ("match", Read("")),
        ("route", Read("")),
        ("redirect", Read("")),
        ("direct_response", Read("")),
        ("filter_action", Refused("filter actions are not supported")),
        ("non_forwarding_action", Refused("library mode is not supported")),
        ("metadata", Accepted("")),
        ("decorator", Read("")),
        ("tracing", Read("")),
        ("typed_per_filter_config", Read(PER_ROUTE)),
        ("request_headers_to_add", Read("")),
        ("request_headers_to_remove", Read("")),
        ("response_headers_to_add", Read("")),
        ("response_headers_to_remove", Read("")),
        ("per_request_buffer_limit_bytes", Ignored("bodies of up to 64 KiB can be retried")),
        ("stat_prefix", Accepted("")),
    ],
    others: HARMLESS,
};

pub(crate) const ROUTE_MATCH: Schema = Schema {
    name: "envoy.config.route.v3.RouteMatch",
    fields: &[
        ("prefix", Read("")),
        ("path", Read("")),
        ("safe_regex", Read("")),
        ("path_separated_prefix", Read("")),
        ("connect_matcher", Refused("CONNECT is not supported")),
        ("path_match_policy", Refused("path templates are not supported")),
        ("case_sensitive", Read("")),
        ("runtime_fraction", RefusedWith("a route matches all requests or none", "use weighted clusters")),
        ("headers", Read("")),
        ("query_parameters", Read("")),
        ("grpc", Read("as a condition on `content-type`")),
        ("tls_context", Refused("client certificates are verified in the handshake, not by routes")),
        ("dynamic_metadata", Refused("dynamic metadata is not supported")),
        ("filter_state", Refused("filter state is not supported")),
        ("cookies", MUST_MATCH),
    ],
    others: MUST_MATCH,
};

pub(crate) const HEADER_MATCHER: Schema = Schema {
    name: "envoy.config.route.v3.HeaderMatcher",
    fields: &[
        ("name", Read("")),
        ("exact_match", Read("")),
        ("safe_regex_match", Read("")),
        ("range_match", Read("")),
        ("present_match", Read("")),
        ("prefix_match", Read("")),
        ("suffix_match", Read("")),
        ("contains_match", Read("")),
        ("string_match", Read("")),
        ("invert_match", Read("")),
        ("treat_missing_header_as_empty", Read("")),
    ],
    others: MUST_MATCH,
};

pub(crate) const INT64_RANGE: Schema = Schema {
    name: "envoy.type.v3.Int64Range",
    fields: &[("start", Read("")), ("end", Read(""))],
    others: MUST_MATCH,
};

pub(crate) const QUERY_MATCHER: Schema = Schema {
    name: "envoy.config.route.v3.QueryParameterMatcher",
    fields: &[("name", Read("")), ("string_match", Read("")), ("present_match", Read("`true`"))],
    others: MUST_MATCH,
};
