//! Local reply modification.

use super::{
    FieldPolicy::{Accepted, Read, Refused, RefusedWith},
    STRICT, Schema,
};

const OTHER_FILTER: super::FieldPolicy = RefusedWith(
    "local replies are matched by their status and by request headers",
    "write `status_code_filter`, `header_filter`, `and_filter` or `or_filter`",
);

pub(crate) const LOCAL_REPLY: Schema = Schema {
    name: "envoy.extensions.filters.network.http_connection_manager.v3.LocalReplyConfig",
    fields: &[
        ("mappers", Read("also for `direct_response` and `redirect`; not for errors of the HTTP library")),
        ("body_format", Read("")),
    ],
    others: STRICT,
};

pub(crate) const RESPONSE_MAPPER: Schema = Schema {
    name: "envoy.extensions.filters.network.http_connection_manager.v3.ResponseMapper",
    fields: &[
        ("filter", Read("")),
        ("status_code", Read("")),
        ("body", Read("inline")),
        ("body_format_override", Read("")),
        ("headers_to_add", Read("")),
    ],
    others: STRICT,
};

pub(crate) const SUBSTITUTION_FORMAT: Schema = Schema {
    name: "envoy.config.core.v3.SubstitutionFormatString",
    fields: &[
        ("text_format", Read("")),
        ("text_format_source", Read("inline")),
        ("json_format", Read("values are text; `%RESPONSE_CODE%` alone is a number")),
        ("omit_empty_values", Read("")),
        ("content_type", Read("`text/plain` or `application/json` if omitted")),
        ("formatters", Refused("only built-in formatters are supported")),
        ("json_format_options", Accepted("members are sorted by name")),
    ],
    others: STRICT,
};

pub(crate) const ACCESS_LOG_FILTER: Schema = Schema {
    name: "envoy.config.accesslog.v3.AccessLogFilter",
    fields: &[
        ("status_code_filter", Read("")),
        ("header_filter", Read("")),
        ("and_filter", Read("")),
        ("or_filter", Read("")),
        ("duration_filter", OTHER_FILTER),
        ("not_health_check_filter", OTHER_FILTER),
        ("traceable_filter", OTHER_FILTER),
        ("runtime_filter", OTHER_FILTER),
        ("response_flag_filter", OTHER_FILTER),
        ("grpc_status_filter", OTHER_FILTER),
        ("extension_filter", OTHER_FILTER),
        ("metadata_filter", OTHER_FILTER),
        ("log_type_filter", OTHER_FILTER),
    ],
    others: STRICT,
};

pub(crate) const STATUS_CODE_FILTER: Schema = Schema {
    name: "envoy.config.accesslog.v3.StatusCodeFilter",
    fields: &[("comparison", Read(""))],
    others: STRICT,
};

pub(crate) const COMPARISON_FILTER: Schema = Schema {
    name: "envoy.config.accesslog.v3.ComparisonFilter",
    fields: &[("op", Read("`EQ`, `GE`, `LE`, `NE`")), ("value", Read(""))],
    others: STRICT,
};

pub(crate) const RUNTIME_NUMBER: Schema = Schema {
    name: "envoy.config.core.v3.RuntimeUInt32",
    fields: &[("default_value", Read("")), ("runtime_key", Accepted("runtime is not supported"))],
    others: STRICT,
};

pub(crate) const HEADER_FILTER: Schema = Schema {
    name: "envoy.config.accesslog.v3.HeaderFilter",
    fields: &[("header", Read(""))],
    others: STRICT,
};

pub(crate) const AND_FILTER: Schema =
    Schema { name: "envoy.config.accesslog.v3.AndFilter", fields: &[("filters", Read(""))], others: STRICT };

pub(crate) const OR_FILTER: Schema =
    Schema { name: "envoy.config.accesslog.v3.OrFilter", fields: &[("filters", Read(""))], others: STRICT };
