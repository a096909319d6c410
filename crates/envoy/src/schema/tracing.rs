//! Traces of requests.

use super::{
    FieldPolicy::{self, Accepted, Ignored, Read, Refused, RefusedWith},
    HARMLESS, Schema,
};

const NAMES: FieldPolicy = Ignored("spans are named by the direction, and by a route's `decorator`");

pub(crate) const HTTP_TRACING: Schema = Schema {
    name: "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.Tracing",
    fields: &[
        ("client_sampling", Read("whole percents")),
        ("random_sampling", Read("")),
        ("overall_sampling", Read("")),
        ("verbose", Ignored("spans have no events")),
        ("max_path_tag_length", Read("256 if it is left out")),
        ("custom_tags", Read("")),
        ("provider", Read("OpenTelemetry; without it, and with another, no spans are made")),
        ("spawn_upstream_span", Read("")),
        ("operation", NAMES),
        ("upstream_operation", NAMES),
        ("no_context_propagation", Refused("servers are told of traces")),
    ],
    others: HARMLESS,
};

pub(crate) const TRACING_PROVIDER: Schema = Schema {
    name: "envoy.config.trace.v3.Tracing.Http",
    fields: &[
        ("name", Accepted("the type of `typed_config` decides")),
        ("typed_config", Read("`envoy.config.trace.v3.OpenTelemetryConfig`")),
    ],
    others: HARMLESS,
};

pub(crate) const OPEN_TELEMETRY: Schema = Schema {
    name: "envoy.config.trace.v3.OpenTelemetryConfig",
    fields: &[
        ("grpc_service", Read("")),
        ("http_service", Read("")),
        ("service_name", Read("`unknown_service:envoy` if it is left out")),
        (
            "resource_detectors",
            Ignored("spans say `service_name` and Quadrille's version, and not more of where they are from"),
        ),
        (
            "sampler",
            RefusedWith(
                "what is recorded is said in one place",
                "write `random_sampling` of the connection manager",
            ),
        ),
        ("max_cache_size", Ignored("the spans of 4,096 requests wait")),
    ],
    others: HARMLESS,
};

pub(crate) const TRACING_GRPC_SERVICE: Schema = Schema {
    name: "envoy.config.core.v3.GrpcService (traces)",
    fields: &[
        ("envoy_grpc", Read("")),
        ("google_grpc", RefusedWith("there is no second gRPC library", "write `envoy_grpc`")),
        ("timeout", Read("10 s if it is left out")),
        ("initial_metadata", Read("without variables")),
        ("retry_policy", Ignored("spans are sent once")),
    ],
    others: HARMLESS,
};

pub(crate) const TRACING_HTTP_SERVICE: Schema = Schema {
    name: "envoy.config.core.v3.HttpService",
    fields: &[
        ("http_uri", Read("its host and path; the cluster says where the server is")),
        ("request_headers_to_add", Read("without variables; each takes the place of others")),
    ],
    others: HARMLESS,
};

pub(crate) const TRACING_HEADER: Schema = Schema {
    name: "envoy.config.core.v3.HeaderValueOption (traces)",
    fields: &[
        ("header", Read("")),
        ("append", Accepted("there is one of each")),
        ("append_action", Accepted("there is one of each")),
        ("keep_empty_value", Accepted("")),
    ],
    others: HARMLESS,
};

pub(crate) const CUSTOM_TAG: Schema = Schema {
    name: "envoy.type.tracing.v3.CustomTag",
    fields: &[
        ("tag", Read("")),
        ("literal", Read("")),
        ("environment", Read("not on the word of control planes, for which its default holds")),
        ("request_header", Read("")),
        ("metadata", Ignored("metadata is not told")),
        ("value", Ignored("variables are not put in; write `request_header`")),
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
        ("client_sampling", Read("100 % if it is left out")),
        ("random_sampling", Read("100 % if it is left out")),
        ("overall_sampling", Read("100 % if it is left out")),
        ("custom_tags", Read("before the connection manager's of the same name")),
        ("operation", NAMES),
        ("upstream_operation", NAMES),
    ],
    others: HARMLESS,
};

pub(crate) const DECORATOR: Schema = Schema {
    name: "envoy.config.route.v3.Decorator",
    fields: &[
        ("operation", Read("the name of spans; answers do not tell it")),
        ("propagate", Read("in requests of listeners that are `OUTBOUND`")),
    ],
    others: HARMLESS,
};
