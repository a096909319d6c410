//! What is done to requests besides routing them: faults, other origins, and by what they keep to a server.

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
        ("filter_enabled", Read("0 switches it off; else it holds for all requests")),
        ("shadow_enabled", Ignored("nothing is only counted")),
        ("allow_private_network_access", Ignored("the header of private networks is not sent")),
        ("forward_not_matching_preflights", Read("")),
    ],
    others: STRICT,
};

pub(crate) const HTTP_FAULT: Schema = Schema {
    name: "envoy.extensions.filters.http.fault.v3.HTTPFault",
    fields: &[
        ("delay", Read("")),
        ("abort", Read("")),
        ("upstream_cluster", Refused("faults are for all upstreams of a route")),
        ("headers", Refused("faults are for all requests of a route")),
        ("downstream_nodes", Refused("faults are for all clients")),
        ("max_active_faults", Ignored("as many as there are requests")),
        ("response_rate_limit", Ignored("answers are not slowed down")),
    ],
    others: HARMLESS,
};

pub(crate) const FAULT_DELAY: Schema = Schema {
    name: "envoy.extensions.filters.common.fault.v3.FaultDelay",
    fields: &[
        ("fixed_delay", Read("")),
        ("percentage", Read("")),
        ("header_delay", Refused("requests do not say what is done to them")),
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
        ("header_abort", Refused("requests do not say what is done to them")),
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
        ("filter_state", Ignored("filters leave nothing behind")),
        ("terminal", Read("")),
    ],
    others: HARMLESS,
};

pub(crate) const HASH_HEADER: Schema = Schema {
    name: "envoy.config.route.v3.RouteAction.HashPolicy.Header",
    fields: &[("header_name", Read("")), ("regex_rewrite", Ignored("the whole value counts"))],
    others: HARMLESS,
};

pub(crate) const HASH_COOKIE: Schema = Schema {
    name: "envoy.config.route.v3.RouteAction.HashPolicy.Cookie",
    fields: &[
        ("name", Read("")),
        ("ttl", Read("")),
        ("path", Read("")),
        ("attributes", Ignored("a cookie that is set is `HttpOnly`, and `Secure` over TLS")),
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
