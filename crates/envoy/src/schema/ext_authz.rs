//! Access control: Envoy's external authorization filter.

use super::{
    FieldPolicy::{Accepted, Read, Refused, RefusedWith},
    STRICT, Schema,
};

const NOT_TOLD: super::FieldPolicy = Refused("only request attributes are sent to the server");

pub(crate) const EXT_AUTHZ: Schema = Schema {
    name: "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
    fields: &[
        ("grpc_service", Read("")),
        ("http_service", Read("")),
        ("transport_api_version", Read("`V3`")),
        ("failure_mode_allow", Read("")),
        ("failure_mode_allow_header_add", Read("")),
        ("with_request_body", Read("except for WebSocket handshakes")),
        ("clear_route_cache", Accepted("requests are always routed after authorization")),
        ("status_on_error", Read("403 if omitted")),
        ("metadata_context_namespaces", NOT_TOLD),
        ("typed_metadata_context_namespaces", NOT_TOLD),
        ("route_metadata_context_namespaces", NOT_TOLD),
        ("route_typed_metadata_context_namespaces", NOT_TOLD),
        (
            "filter_enabled",
            Refused("every request is checked, or those selected by `filter_enabled_metadata`"),
        ),
        ("filter_enabled_metadata", Read("")),
        ("deny_at_disable", Refused("the filter is on for all routes")),
        ("include_peer_certificate", NOT_TOLD),
        ("include_tls_session", NOT_TOLD),
        ("stat_prefix", Accepted("")),
        ("bootstrap_metadata_labels_key", NOT_TOLD),
        ("allowed_headers", Read("if omitted, all for gRPC, and `authorization` for HTTP")),
        ("disallowed_headers", Read("")),
        ("decoder_header_mutation_rules", Refused("framing headers and `host` are never changed")),
        ("enable_dynamic_metadata_ingestion", Accepted("the server's metadata is not stored")),
        ("charge_cluster_response_stats", Accepted("")),
        ("encode_raw_headers", Refused("headers are sent as text")),
        ("filter_metadata", Accepted("")),
        ("emit_filter_state_stats", Accepted("")),
        ("validate_mutations", Accepted("an invalid response is treated as a failure")),
    ],
    others: STRICT,
};

pub(crate) const AUTHZ_BODY: Schema = Schema {
    name: "envoy.extensions.filters.http.ext_authz.v3.BufferSettings",
    fields: &[
        ("max_request_bytes", Read("at most 16 MiB")),
        ("allow_partial_message", Read("without it, a larger body gets 413")),
        ("pack_as_bytes", Read("")),
    ],
    others: STRICT,
};

pub(crate) const EXT_AUTHZ_HTTP: Schema = Schema {
    name: "envoy.extensions.filters.http.ext_authz.v3.HttpService",
    fields: &[
        ("server_uri", Read("")),
        ("path_prefix", Read("")),
        ("authorization_request", Read("")),
        ("authorization_response", Read("")),
    ],
    others: STRICT,
};

pub(crate) const EXT_AUTHZ_REQUEST: Schema = Schema {
    name: "envoy.extensions.filters.http.ext_authz.v3.AuthorizationRequest",
    fields: &[
        ("headers_to_add", Read("without variables")),
        (
            "allowed_headers",
            RefusedWith("it is supported in one place", "write `allowed_headers` of the filter"),
        ),
    ],
    others: STRICT,
};

pub(crate) const EXT_AUTHZ_RESPONSE: Schema = Schema {
    name: "envoy.extensions.filters.http.ext_authz.v3.AuthorizationResponse",
    fields: &[
        ("allowed_upstream_headers", Read("")),
        ("allowed_upstream_headers_to_append", Read("")),
        ("allowed_client_headers", Read("all if omitted")),
        ("allowed_client_headers_on_success", Read("")),
        ("dynamic_metadata_from_headers", Refused("the server's metadata is not stored")),
    ],
    others: STRICT,
};

pub(crate) const HTTP_URI: Schema = Schema {
    name: "envoy.config.core.v3.HttpUri",
    fields: &[
        ("uri", Read("its path, for JWKS; the server's address is that of the cluster")),
        ("cluster", Read("")),
        ("timeout", Read("")),
    ],
    others: STRICT,
};

pub(crate) const HTTP_STATUS: Schema = Schema {
    name: "envoy.type.v3.HttpStatus",
    fields: &[("code", Read("its name or number"))],
    others: STRICT,
};

pub(crate) const STRING_MATCHERS: Schema = Schema {
    name: "envoy.type.matcher.v3.ListStringMatcher",
    fields: &[("patterns", Read(""))],
    others: STRICT,
};

pub(crate) const AUTHZ_GRPC_SERVICE: Schema = Schema {
    name: "envoy.config.core.v3.GrpcService (ext_authz)",
    fields: &[
        ("envoy_grpc", Read("")),
        ("google_grpc", RefusedWith("Google gRPC is not supported", "write `envoy_grpc`")),
        ("timeout", Read("200 ms if omitted")),
        ("initial_metadata", Refused("only request attributes are sent to the server")),
        ("retry_policy", Refused("requests to the server are not retried")),
    ],
    others: STRICT,
};
