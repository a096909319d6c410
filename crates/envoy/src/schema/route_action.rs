//! Route actions.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, Refused},
    HARMLESS, Schema,
    route::PER_ROUTE,
};

pub(crate) const ROUTE_ACTION: Schema = Schema {
    name: "envoy.config.route.v3.RouteAction",
    fields: &[
        ("cluster", Read("")),
        ("weighted_clusters", Read("")),
        ("cluster_header", Refused("use `cluster` or `weighted_clusters`")),
        ("cluster_specifier_plugin", Refused("use `cluster` or `weighted_clusters`")),
        ("inline_cluster_specifier_plugin", Refused("use `cluster` or `weighted_clusters`")),
        ("cluster_not_found_response_code", Read("`SERVICE_UNAVAILABLE`")),
        ("metadata_match", Refused("subsets are not supported")),
        ("prefix_rewrite", Read("replaces the whole path if the route has a `safe_regex`")),
        ("regex_rewrite", Read("")),
        ("path_rewrite_policy", Refused("path templates are not supported")),
        ("host_rewrite_literal", Read("")),
        ("auto_host_rewrite", Read("")),
        ("host_rewrite_header", Read("")),
        ("host_rewrite_path_regex", Refused("use `host_rewrite_literal` or `host_rewrite_header`")),
        ("append_x_forwarded_host", Ignored("`x-forwarded-host` is not added")),
        ("timeout", Read("15 s if omitted; `0s` disables the limit")),
        ("idle_timeout", Read("")),
        ("retry_policy", Read("")),
        ("retry_policy_typed_config", Refused("write `retry_policy`")),
        ("request_mirror_policies", Read("")),
        ("priority", Accepted("priorities are not supported")),
        ("rate_limits", Read("for the rate limit service filter")),
        ("include_vh_rate_limits", Read("")),
        ("hash_policy", Read("for `RING_HASH` and `MAGLEV`")),
        ("cors", Refused("write `typed_per_filter_config`")),
        ("max_grpc_timeout", Ignored("`timeout` applies")),
        ("grpc_timeout_offset", Ignored("`timeout` applies")),
        ("upgrade_configs", Read("WebSocket is enabled by default")),
        ("internal_redirect_policy", Ignored("redirects are sent to the client")),
        ("internal_redirect_action", Ignored("redirects are sent to the client")),
        ("max_internal_redirects", Ignored("redirects are sent to the client")),
        ("hedge_policy", Ignored("requests are not hedged")),
        ("max_stream_duration", Read("")),
        ("early_data_policy", Ignored("early data is disabled")),
    ],
    others: HARMLESS,
};

pub(crate) const ROUTE_UPGRADE: Schema = Schema {
    name: "envoy.config.route.v3.RouteAction.UpgradeConfig",
    fields: &[
        ("upgrade_type", Read("any but `CONNECT`, `CONNECT-UDP`, `CONNECT-IP` and `h2c`, which are ignored")),
        (
            "enabled",
            Read("if `false`, WebSocket requests get 403, and others are served without the upgrade"),
        ),
        ("connect_config", Refused("CONNECT tunnels are not supported")),
    ],
    others: HARMLESS,
};

pub(crate) const REQUEST_MIRROR_POLICY: Schema = Schema {
    name: "envoy.config.route.v3.RouteAction.RequestMirrorPolicy",
    fields: &[
        ("cluster", Read("")),
        ("cluster_header", Refused("use `cluster`")),
        ("runtime_fraction", Read("")),
        ("trace_sampled", Accepted("there are no traces")),
        ("disable_shadow_host_suffix_append", Read("")),
        ("request_headers_mutations", Refused("mirrored requests have the original headers")),
        ("host_rewrite_literal", Refused("mirrored requests have the original host with `-shadow`")),
    ],
    others: HARMLESS,
};

pub(crate) const WEIGHTED_CLUSTER: Schema = Schema {
    name: "envoy.config.route.v3.WeightedCluster",
    fields: &[
        ("clusters", Read("")),
        ("total_weight", Read("must equal the sum of the weights")),
        ("runtime_key_prefix", Ignored("there are no runtime flags")),
        ("header_name", Refused("the cluster is selected at random")),
        ("use_hash_policy", Ignored("the cluster is selected at random")),
    ],
    others: HARMLESS,
};

pub(crate) const CLUSTER_WEIGHT: Schema = Schema {
    name: "envoy.config.route.v3.WeightedCluster.ClusterWeight",
    fields: &[
        ("name", Read("")),
        ("cluster_header", Refused("use `cluster`")),
        ("weight", Read("")),
        ("metadata_match", Refused("subsets are not supported")),
        ("request_headers_to_add", Read("")),
        ("request_headers_to_remove", Read("")),
        ("response_headers_to_add", Read("")),
        ("response_headers_to_remove", Read("")),
        ("typed_per_filter_config", Read(PER_ROUTE)),
        ("host_rewrite_literal", Refused("write it in the route")),
    ],
    others: HARMLESS,
};

pub(crate) const MAX_STREAM_DURATION: Schema = Schema {
    name: "envoy.config.route.v3.RouteAction.MaxStreamDuration",
    fields: &[
        ("max_stream_duration", Read("replaces `timeout`")),
        ("grpc_timeout_header_max", Ignored("clients do not set timeouts")),
        ("grpc_timeout_header_offset", Ignored("clients do not set timeouts")),
    ],
    others: HARMLESS,
};

pub(crate) const RETRY_POLICY: Schema = Schema {
    name: "envoy.config.route.v3.RetryPolicy",
    fields: &[
        (
            "retry_on",
            Read(
                "`5xx`, `gateway-error`, `reset`, `reset-before-request`, `connect-failure`, `refused-stream`, \
                  `retriable-4xx`, `retriable-status-codes`; conditions on the gRPC status never match",
            ),
        ),
        ("num_retries", Read("")),
        ("per_try_timeout", Read("")),
        ("per_try_idle_timeout", Ignored("`idle_timeout` applies")),
        ("retriable_status_codes", Read("")),
        ("retriable_headers", Ignored("response headers do not trigger retries")),
        ("retriable_request_headers", Ignored("applies to all requests")),
        ("retry_back_off", Ignored("the next endpoint is tried immediately")),
        ("rate_limited_retry_back_off", Ignored("the next endpoint is tried immediately")),
        ("retry_priority", Ignored("the next endpoint is tried")),
        ("retry_host_predicate", Accepted("the next endpoint is tried")),
        ("host_selection_retry_max_attempts", Accepted("")),
        ("retry_options_predicates", Ignored("")),
    ],
    others: HARMLESS,
};

pub(crate) const REGEX_REWRITE: Schema = Schema {
    name: "envoy.type.matcher.v3.RegexMatchAndSubstitute",
    fields: &[("pattern", Read("")), ("substitution", Read("`\\1` is the first group"))],
    others: HARMLESS,
};

pub(crate) const REDIRECT: Schema = Schema {
    name: "envoy.config.route.v3.RedirectAction",
    fields: &[
        ("https_redirect", Read("")),
        ("scheme_redirect", Read("")),
        ("host_redirect", Read("")),
        ("port_redirect", Read("")),
        ("path_redirect", Read("")),
        ("prefix_rewrite", Read("replaces the whole path if the route has a `safe_regex`")),
        ("regex_rewrite", Read("")),
        ("response_code", Read("301, 302, 303, 307, 308")),
        ("strip_query", Read("")),
    ],
    others: HARMLESS,
};

pub(crate) const DIRECT_RESPONSE: Schema = Schema {
    name: "envoy.config.route.v3.DirectResponseAction",
    fields: &[("status", Read("200 to 599")), ("body", Read("")), ("body_format", Refused("write `body`"))],
    others: HARMLESS,
};

pub(crate) const HEADER_OPTION: Schema = Schema {
    name: "envoy.config.core.v3.HeaderValueOption",
    fields: &[
        ("header", Read("with Envoy's `%...%` command operators")),
        ("append", Read("")),
        ("append_action", Read("")),
        ("keep_empty_value", Ignored("headers with empty values are not added")),
    ],
    others: HARMLESS,
};
