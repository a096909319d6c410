//! Who is let in: Envoy's filter that asks an authorization server.

use super::{
    FieldPolicy::{Accepted, Read, Refused, RefusedWith},
    STRICT, Schema,
};

const NOT_TOLD: super::FieldPolicy = Refused("the server is told of requests, and not more");

pub(crate) const EXT_AUTHZ: Schema = Schema {
    name: "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
    fields: &[
        ("grpc_service", Read("")),
        ("http_service", Read("")),
        ("transport_api_version", Read("`V3`")),
        ("failure_mode_allow", Read("")),
        ("failure_mode_allow_header_add", Read("")),
        ("with_request_body", Read("not of WebSocket handshakes")),
        ("clear_route_cache", Accepted("requests are routed after that in any case")),
        ("status_on_error", Read("403 if it is left out")),
        ("metadata_context_namespaces", NOT_TOLD),
        ("typed_metadata_context_namespaces", NOT_TOLD),
        ("route_metadata_context_namespaces", NOT_TOLD),
        ("route_typed_metadata_context_namespaces", NOT_TOLD),
        (
            "filter_enabled",
            Refused("every request is asked about, or those that `filter_enabled_metadata` says"),
        ),
        ("filter_enabled_metadata", Read("")),
        ("deny_at_disable", Refused("the filter is on for all routes")),
        ("include_peer_certificate", NOT_TOLD),
        ("include_tls_session", NOT_TOLD),
        ("stat_prefix", Accepted("")),
        ("bootstrap_metadata_labels_key", NOT_TOLD),
        ("allowed_headers", Read("without them, all by gRPC, and `authorization` by HTTP")),
        ("disallowed_headers", Read("")),
        ("decoder_header_mutation_rules", Refused("what frames a message, and `host`, is never changed")),
        ("enable_dynamic_metadata_ingestion", Accepted("the server's metadata is not kept")),
        ("charge_cluster_response_stats", Accepted("")),
        ("encode_raw_headers", Refused("headers are told as text")),
        ("filter_metadata", Accepted("")),
        ("emit_filter_state_stats", Accepted("")),
        ("validate_mutations", Accepted("an answer that is not valid decides nothing")),
    ],
    others: STRICT,
};

pub(crate) const AUTHZ_BODY: Schema = Schema {
    name: "envoy.extensions.filters.http.ext_authz.v3.BufferSettings",
    fields: &[
        ("max_request_bytes", Read("16 MiB at most")),
        ("allow_partial_message", Read("without it, a longer body is answered with 413")),
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
        ("allowed_headers", RefusedWith("it is read in one place", "write `allowed_headers` of the filter")),
    ],
    others: STRICT,
};

pub(crate) const EXT_AUTHZ_RESPONSE: Schema = Schema {
    name: "envoy.extensions.filters.http.ext_authz.v3.AuthorizationResponse",
    fields: &[
        ("allowed_upstream_headers", Read("")),
        ("allowed_upstream_headers_to_append", Read("")),
        ("allowed_client_headers", Read("without them, all")),
        ("allowed_client_headers_on_success", Read("")),
        ("dynamic_metadata_from_headers", Refused("the server's metadata is not kept")),
    ],
    others: STRICT,
};

pub(crate) const HTTP_URI: Schema = Schema {
    name: "envoy.config.core.v3.HttpUri",
    fields: &[
        ("uri", Read("its path, for keys of tokens; the cluster says where the server is")),
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
        ("google_grpc", RefusedWith("there is no second gRPC library", "write `envoy_grpc`")),
        ("timeout", Read("200 ms if it is left out")),
        ("initial_metadata", Refused("the server is told of requests, and not more")),
        ("retry_policy", Refused("a server is asked once")),
    ],
    others: STRICT,
};
