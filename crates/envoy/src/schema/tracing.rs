//! Request tracing.

use super::{
    FieldPolicy::{self, Accepted, Ignored, Read, Refused, RefusedWith},
    HARMLESS, Schema,
};

const NAMES: FieldPolicy = Ignored("spans are named by the direction or the route's `decorator`");

pub(crate) const HTTP_TRACING: Schema = Schema {
    name: "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.Tracing",
    fields: &[
        ("client_sampling", Read("whole percents")),
        ("random_sampling", Read("")),
        ("overall_sampling", Read("")),
        ("verbose", Ignored("spans have no events")),
        ("max_path_tag_length", Read("256 if omitted")),
        ("custom_tags", Read("")),
        ("provider", Read("OpenTelemetry; with no or another provider, no spans are created")),
        ("spawn_upstream_span", Read("")),
        ("operation", NAMES),
        ("upstream_operation", NAMES),
        ("no_context_propagation", Refused("trace context is sent to upstreams")),
    ],
    others: HARMLESS,
};

pub(crate) const TRACING_PROVIDER: Schema = Schema {
    name: "envoy.config.trace.v3.Tracing.Http",
    fields: &[
        ("name", Accepted("the type of `typed_config` is used")),
        ("typed_config", Read("`envoy.config.trace.v3.OpenTelemetryConfig`")),
    ],
    others: HARMLESS,
};

pub(crate) const OPEN_TELEMETRY: Schema = Schema {
    name: "envoy.config.trace.v3.OpenTelemetryConfig",
    fields: &[
        ("grpc_service", Read("")),
        ("http_service", Read("")),
        ("service_name", Read("`unknown_service:envoy` if omitted")),
        (
            "resource_detectors",
            Ignored("the resource of spans has only `service_name` and Quadrille's version"),
        ),
        (
            "sampler",
            RefusedWith(
                "sampling is configured in one place",
                "write `random_sampling` of the connection manager",
            ),
        ),
        ("max_cache_size", Ignored("spans of 4,096 requests are buffered")),
    ],
    others: HARMLESS,
};

pub(crate) const TRACING_GRPC_SERVICE: Schema = Schema {
    name: "envoy.config.core.v3.GrpcService (traces)",
    fields: &[
        ("envoy_grpc", Read("")),
        ("google_grpc", RefusedWith("Google gRPC is not supported", "write `envoy_grpc`")),
        ("timeout", Read("10 s if omitted")),
        ("initial_metadata", Read("without variables")),
        ("retry_policy", Ignored("exports are not retried")),
    ],
    others: HARMLESS,
};

pub(crate) const TRACING_HTTP_SERVICE: Schema = Schema {
    name: "envoy.config.core.v3.HttpService",
    fields: &[
        ("http_uri", Read("its host and path; the server's address is that of the cluster")),
        ("request_headers_to_add", Read("without variables; each replaces others")),
    ],
    others: HARMLESS,
};

pub(crate) const TRACING_HEADER: Schema = Schema {
    name: "envoy.config.core.v3.HeaderValueOption (traces)",
    fields: &[
        ("header", Read("")),
        ("append", Accepted("each header occurs once")),
        ("append_action", Accepted("each header occurs once")),
        ("keep_empty_value", Accepted("")),
    ],
    others: HARMLESS,
};

pub(crate) const CUSTOM_TAG: Schema = Schema {
    name: "envoy.type.tracing.v3.CustomTag",
    fields: &[
        ("tag", Read("")),
        ("literal", Read("")),
        ("environment", Read("not from control planes, for which its default is used")),
        ("request_header", Read("")),
        ("metadata", Ignored("metadata tags are not supported")),
        ("value", Ignored("variables are not substituted; write `request_header`")),
    ],
    others: HARMLESS,
};

pub(crate) const LITERAL_TAG: Schema = Schema {
    name: "envoy.type.tracing.v3.CustomTag.Literal",
    fields: &[("value", Read(""))],
    others: HARMLESS,
};

pub(crate) const NAMED_TAG: Schema = Schema {
    name: "envoy.type.tracing.v3.CustomTag.Header (and Environment)",
    fields: &[("name", Read("")), ("default_value", Read(""))],
    others: HARMLESS,
};

pub(crate) const ROUTE_TRACING: Schema = Schema {
    name: "envoy.config.route.v3.Tracing",
    fields: &[
        ("client_sampling", Read("100 % if omitted")),
        ("random_sampling", Read("100 % if omitted")),
        ("overall_sampling", Read("100 % if omitted")),
        ("custom_tags", Read("overrides the connection manager's of the same name")),
        ("operation", NAMES),
        ("upstream_operation", NAMES),
    ],
    others: HARMLESS,
};

pub(crate) const DECORATOR: Schema = Schema {
    name: "envoy.config.route.v3.Decorator",
    fields: &[
        ("operation", Read("the name of spans; not sent in responses")),
        ("propagate", Read("in requests of `OUTBOUND` listeners")),
    ],
    others: HARMLESS,
};
