//! Traffic policies other than routing: faults, CORS and hash policies.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, Refused},
    HARMLESS, STRICT, Schema,
};

pub(crate) const CORS_POLICY: Schema = Schema {
    name: "envoy.extensions.filters.http.cors.v3.CorsPolicy",
    fields: &[
        ("allow_origin_string_match", Read("")),
        ("allow_methods", Read("")),
        ("allow_headers", Read("")),
        ("expose_headers", Read("")),
        ("max_age", Read("")),
        ("allow_credentials", Read("")),
        ("filter_enabled", Read("0 disables it; otherwise it applies to all requests")),
        ("shadow_enabled", Ignored("shadow mode is not supported")),
        ("allow_private_network_access", Ignored("private network access headers are not sent")),
        ("forward_not_matching_preflights", Read("")),
    ],
    others: STRICT,
};

pub(crate) const HTTP_FAULT: Schema = Schema {
    name: "envoy.extensions.filters.http.fault.v3.HTTPFault",
    fields: &[
        ("delay", Read("")),
        ("abort", Read("")),
        ("upstream_cluster", Refused("faults apply to all upstreams of a route")),
        ("headers", Refused("faults apply to all requests of a route")),
        ("downstream_nodes", Refused("faults apply to all clients")),
        ("max_active_faults", Ignored("no limit")),
        ("response_rate_limit", Ignored("responses are not throttled")),
    ],
    others: HARMLESS,
};

pub(crate) const FAULT_DELAY: Schema = Schema {
    name: "envoy.extensions.filters.common.fault.v3.FaultDelay",
    fields: &[
        ("fixed_delay", Read("")),
        ("percentage", Read("")),
        ("header_delay", Refused("requests cannot select faults")),
        ("type", Accepted("")),
    ],
    others: HARMLESS,
};

pub(crate) const FAULT_ABORT: Schema = Schema {
    name: "envoy.extensions.filters.http.fault.v3.FaultAbort",
    fields: &[
        ("http_status", Read("")),
        ("percentage", Read("")),
        ("grpc_status", Refused("write `http_status`")),
        ("header_abort", Refused("requests cannot select faults")),
    ],
    others: HARMLESS,
};

pub(crate) const FRACTIONAL_PERCENT: Schema = Schema {
    name: "envoy.type.v3.FractionalPercent",
    fields: &[("numerator", Read("")), ("denominator", Read(""))],
    others: HARMLESS,
};

pub(crate) const RUNTIME_FRACTION: Schema = Schema {
    name: "envoy.config.core.v3.RuntimeFractionalPercent",
    fields: &[("default_value", Read("")), ("runtime_key", Accepted("there are no runtime flags"))],
    others: HARMLESS,
};

pub(crate) const HASH_POLICY: Schema = Schema {
    name: "envoy.config.route.v3.RouteAction.HashPolicy",
    fields: &[
        ("header", Read("")),
        ("cookie", Read("")),
        ("connection_properties", Read("")),
        ("query_parameter", Read("")),
        ("filter_state", Ignored("filter state is not supported")),
        ("terminal", Read("")),
    ],
    others: HARMLESS,
};

pub(crate) const HASH_HEADER: Schema = Schema {
    name: "envoy.config.route.v3.RouteAction.HashPolicy.Header",
    fields: &[("header_name", Read("")), ("regex_rewrite", Ignored("the whole value is hashed"))],
    others: HARMLESS,
};

pub(crate) const HASH_COOKIE: Schema = Schema {
    name: "envoy.config.route.v3.RouteAction.HashPolicy.Cookie",
    fields: &[
        ("name", Read("")),
        ("ttl", Read("")),
        ("path", Read("")),
        ("attributes", Ignored("generated cookies are `HttpOnly`, and `Secure` over TLS")),
    ],
    others: HARMLESS,
};

pub(crate) const HASH_CONNECTION: Schema = Schema {
    name: "envoy.config.route.v3.RouteAction.HashPolicy.ConnectionProperties",
    fields: &[("source_ip", Read(""))],
    others: HARMLESS,
};

pub(crate) const HASH_QUERY: Schema = Schema {
    name: "envoy.config.route.v3.RouteAction.HashPolicy.QueryParameter",
    fields: &[("name", Read(""))],
    others: HARMLESS,
};
