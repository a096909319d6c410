//! The HTTP connection manager.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, Refused},
    HARMLESS, STRICT, Schema,
};

const NO_LOG: FieldPolicy = Ignored("records have Quadrille's own format");
const CLIENT_SAID: FieldPolicy =
    Ignored("`x-forwarded-for` and `x-forwarded-proto` are set from the connection");
use super::FieldPolicy;

pub(crate) const HTTP_MANAGER: Schema = Schema {
    name: "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    fields: &[
        (
            "codec_type",
            Read(
                "`AUTO`, `HTTP1`, `HTTP2`: the protocol follows from ALPN or the first bytes; over UDP `HTTP3`",
            ),
        ),
        ("stat_prefix", Read("for `/stats`")),
        ("rds", Read("")),
        ("route_config", Read("")),
        ("scoped_routes", Refused("use `rds` or `route_config`")),
        ("http_filters", Read("the router, RBAC, and filters without effect here")),
        ("normalize_path", Read("")),
        ("merge_slashes", Read("")),
        ("path_with_escaped_slashes_action", Read("`KEEP_UNCHANGED`")),
        ("common_http_protocol_options", Read("")),
        ("http_protocol_options", Accepted("")),
        ("http2_protocol_options", Accepted("limits are the built-in ones")),
        ("http3_protocol_options", Read("")),
        ("request_headers_timeout", Read("")),
        ("stream_idle_timeout", Ignored("the cluster's and the route's timeouts apply")),
        ("request_timeout", Read("from the end of the header to the end of the body")),
        ("drain_timeout", Ignored("there is one drain limit for the process")),
        ("delayed_close_timeout", Ignored("")),
        ("access_log", Read("in Quadrille's own format; process-wide: the first one applies")),
        ("access_log_options", NO_LOG),
        ("access_log_flush_interval", NO_LOG),
        ("flush_access_log_on_new_request", NO_LOG),
        (
            "use_remote_address",
            Read(
                "required by RBAC with `remote_ip`; clients' `x-request-id` and `x-envoy-*` are replaced; \
                 client information is always forwarded to upstreams",
            ),
        ),
        (
            "xff_num_trusted_hops",
            Read(
                "for `x-envoy-external-address`; refused by RBAC with `remote_ip`; `x-forwarded-for` is set from the connection",
            ),
        ),
        ("original_ip_detection_extensions", Refused("use the PROXY protocol")),
        ("internal_address_config", Read("without it, no address is internal")),
        ("skip_xff_append", CLIENT_SAID),
        ("via", Ignored("no `via` is added")),
        ("server_name", Ignored("responses keep the upstream's `server`")),
        ("server_header_transformation", Ignored("responses keep the upstream's `server`")),
        ("generate_request_id", Read("`x-request-id` for upstreams; `true` if omitted")),
        ("request_id_extension", Ignored("`x-request-id` is a random UUID")),
        (
            "preserve_external_request_id",
            Read("with `use_remote_address`; otherwise the client's value is kept"),
        ),
        ("always_set_request_id_in_response", Read("")),
        (
            "forward_client_cert_details",
            Read("a comma, `;` or a quote in a URI or DNS name of a certificate is percent-encoded"),
        ),
        ("set_current_client_cert_details", Read("")),
        ("forward_client_cert_matcher", Refused("one rule applies to all requests")),
        ("tracing", Read("spans for OpenTelemetry")),
        ("upgrade_configs", Read("WebSocket is enabled by default")),
        ("proxy_100_continue", Accepted("it is forwarded")),
        ("max_request_headers_kb", Read("64 KiB if omitted, at most 8 MiB")),
        ("strip_matching_host_port", Read("")),
        ("strip_any_host_port", Read("")),
        ("strip_trailing_host_dot", Accepted("")),
        ("local_reply_config", Read("")),
        ("stream_error_on_invalid_http_message", Ignored("")),
        ("scheme_header_transformation", Ignored("")),
        ("add_proxy_protocol_connection_state", Ignored("")),
        ("append_x_forwarded_port", Ignored("")),
        ("append_local_overload", Ignored("")),
        ("represent_ipv4_remote_address_as_ipv4_mapped_ipv6", Ignored("")),
        ("early_header_mutation_extensions", Refused("change headers in the routes")),
        ("typed_header_validation_config", Ignored("headers are always validated")),
        ("http1_safe_max_connection_duration", Ignored("")),
    ],
    others: HARMLESS,
};

pub(crate) const UPGRADE: Schema = Schema {
    name: "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.UpgradeConfig",
    fields: &[
        ("upgrade_type", Read("any but `CONNECT`, `CONNECT-UDP`, `CONNECT-IP` and `h2c`, which are ignored")),
        (
            "enabled",
            Read(
                "if `false`, WebSocket requests get 403, and others are served without the upgrade, unless a route enables them",
            ),
        ),
        ("filters", Refused("the connection manager's filters apply to upgrades, too")),
    ],
    others: HARMLESS,
};

pub(crate) const RDS: Schema = Schema {
    name: "envoy.extensions.filters.network.http_connection_manager.v3.Rds",
    fields: &[("config_source", Read("")), ("route_config_name", Read(""))],
    others: HARMLESS,
};

pub(crate) const HTTP_FILTER: Schema = Schema {
    name: "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter",
    fields: &[
        ("name", Read("the type of `typed_config` is used if set")),
        ("typed_config", Read("")),
        ("config_discovery", Refused("ECDS is not supported")),
        ("is_optional", Read("")),
        ("disabled", Read("")),
    ],
    others: HARMLESS,
};

pub(crate) const ROUTER: Schema = Schema {
    name: "envoy.extensions.filters.http.router.v3.Router",
    fields: &[
        ("suppress_envoy_headers", Read("")),
        ("start_child_span", Read("")),
        ("upstream_log", NO_LOG),
        ("dynamic_stats", Accepted("")),
    ],
    others: HARMLESS,
};

pub(crate) const INTERNAL_ADDRESS_CONFIG: Schema = Schema {
    name: "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.InternalAddressConfig",
    fields: &[("unix_sockets", Ignored("listeners cannot use Unix sockets")), ("cidr_ranges", Read(""))],
    others: STRICT,
};

pub(crate) const CLIENT_CERTIFICATE_DETAILS: Schema = Schema {
    name: "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.SetCurrentClientCertDetails",
    fields: &[
        ("subject", Read("")),
        ("cert", Read("")),
        ("chain", Read("")),
        ("dns", Read("")),
        ("uri", Read("")),
    ],
    others: HARMLESS,
};

pub(crate) const COMMON_HTTP_OPTIONS: Schema = Schema {
    name: "envoy.config.core.v3.HttpProtocolOptions",
    fields: &[
        ("idle_timeout", Read("")),
        ("max_connection_duration", Ignored("no limit")),
        ("max_headers_count", Read("for listeners; 100 if omitted")),
        ("max_response_headers_kb", Ignored("there is a built-in limit")),
        ("max_stream_duration", Ignored("use the route's `timeout`")),
        ("headers_with_underscores_action", Read("`ALLOW`")),
        ("max_requests_per_connection", Ignored("no limit")),
    ],
    others: HARMLESS,
};

pub(crate) const UPSTREAM_HTTP: Schema = Schema {
    name: "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
    fields: &[
        ("common_http_protocol_options", Read("")),
        ("upstream_http_protocol_options", Read("")),
        ("explicit_http_config", Read("")),
        ("use_downstream_protocol_config", Read("HTTP/2 for requests received over HTTP/2 or HTTP/3")),
        ("auto_config", Read("HTTP/2 if negotiated by ALPN")),
        ("http_filters", Refused("filters belong to the listener")),
        ("header_validation_config", Ignored("headers are always validated")),
    ],
    others: HARMLESS,
};

pub(crate) const UPSTREAM_HTTP_NAME: Schema = Schema {
    name: "envoy.config.core.v3.UpstreamHttpProtocolOptions",
    fields: &[
        ("auto_sni", Read("the host of the request is sent as SNI")),
        ("auto_san_validation", Read("with `auto_sni`")),
        ("override_auto_sni_header", Refused("the host of the request is sent as SNI")),
    ],
    others: HARMLESS,
};

pub(crate) const EXPLICIT_HTTP: Schema = Schema {
    name: "envoy.extensions.upstreams.http.v3.HttpProtocolOptions.ExplicitHttpConfig",
    fields: &[
        ("http_protocol_options", Read("HTTP/1.1")),
        ("http2_protocol_options", Read("HTTP/2; its options are the built-in ones")),
        ("http3_protocol_options", Refused("HTTP/3 to upstreams is not supported")),
    ],
    others: HARMLESS,
};
