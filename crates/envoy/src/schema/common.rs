//! Messages used in several places.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, Refused, RefusedWith},
    HARMLESS, STRICT, Schema,
};

pub(crate) const DATA_SOURCE: Schema = Schema {
    name: "envoy.config.core.v3.DataSource",
    fields: &[
        (
            "filename",
            Read(
                "relative to the working directory; reloaded when the file changes; from control planes only below `--control-plane-files`",
            ),
        ),
        ("inline_bytes", Read("base64")),
        ("inline_string", Read("")),
        ("environment_variable", Read("read at start and at every reload; refused from control planes")),
        ("watched_directory", Accepted("files are always watched, including renamed directories")),
    ],
    others: STRICT,
};

pub(crate) const ADDRESS: Schema = Schema {
    name: "envoy.config.core.v3.Address",
    fields: &[
        ("socket_address", Read("")),
        ("pipe", Read("only for clusters of control planes")),
        ("envoy_internal_address", Refused("internal listeners are not supported")),
    ],
    others: STRICT,
};

pub(crate) const SOCKET_ADDRESS: Schema = Schema {
    name: "envoy.config.core.v3.SocketAddress",
    fields: &[
        ("protocol", Read("`TCP`; for listeners also `UDP`")),
        ("address", Read("")),
        ("port_value", Read("")),
        ("named_port", Refused("write `port_value`")),
        ("resolver_name", Ignored("names are resolved by the system")),
        ("ipv4_compat", Read("for listeners: `::` accepts IPv4 too in any case")),
        ("network_namespace_filepath", Refused("listeners open in the process's own network namespace")),
    ],
    others: HARMLESS,
};

pub(crate) const PIPE: Schema = Schema {
    name: "envoy.config.core.v3.Pipe",
    fields: &[("path", Read("")), ("mode", Ignored("the socket belongs to the peer"))],
    others: HARMLESS,
};

pub(crate) const CONFIG_SOURCE: Schema = Schema {
    name: "envoy.config.core.v3.ConfigSource",
    fields: &[
        ("path", Read("a file of resources, reloaded when it changes")),
        ("path_config_source", Read("a file of resources, reloaded when it changes")),
        (
            "api_config_source",
            Read("`GRPC`, `DELTA_GRPC`, `AGGREGATED_GRPC`, `AGGREGATED_DELTA_GRPC`; REST is not supported"),
        ),
        ("ads", Read("")),
        ("self", Read("means ADS")),
        ("initial_fetch_timeout", Read("")),
        ("resource_api_version", Read("`V3`")),
        ("authorities", Ignored("resources are named without authorities")),
    ],
    others: HARMLESS,
};

pub(crate) const PATH_CONFIG_SOURCE: Schema = Schema {
    name: "envoy.config.core.v3.PathConfigSource",
    fields: &[
        ("path", Read("")),
        ("watched_directory", Accepted("files are always watched, including renamed directories")),
    ],
    others: HARMLESS,
};

pub(crate) const API_CONFIG_SOURCE: Schema = Schema {
    name: "envoy.config.core.v3.ApiConfigSource",
    fields: &[
        ("api_type", Read("")),
        ("transport_api_version", Read("`V3`")),
        ("grpc_services", Read("the first that has `envoy_grpc`")),
        ("cluster_names", RefusedWith("REST is not supported", "use `grpc_services`")),
        ("set_node_on_first_message_only", Accepted("the node is sent in the first message")),
        ("request_timeout", Ignored("streams have no timeout")),
        ("refresh_delay", Ignored("only for REST polling")),
        ("rate_limit_settings", Ignored("requests are only sent after responses")),
        ("config_validators", Ignored("unsupported configuration is always refused")),
    ],
    others: HARMLESS,
};

pub(crate) const GRPC_SERVICE: Schema = Schema {
    name: "envoy.config.core.v3.GrpcService",
    fields: &[
        ("envoy_grpc", Read("")),
        ("google_grpc", Refused("write `envoy_grpc` with a cluster")),
        ("timeout", Ignored("streams have no timeout")),
        ("initial_metadata", Read("")),
        ("retry_policy", Ignored("a broken stream is reopened with backoff")),
    ],
    others: HARMLESS,
};

pub(crate) const ENVOY_GRPC: Schema = Schema {
    name: "envoy.config.core.v3.GrpcService.EnvoyGrpc",
    fields: &[("cluster_name", Read("")), ("authority", Read(""))],
    others: HARMLESS,
};

pub(crate) const ACCESS_LOG: Schema = Schema {
    name: "envoy.config.accesslog.v3.AccessLog",
    fields: &[
        ("name", Accepted("the type of `typed_config` is used")),
        ("filter", Ignored("every request is recorded")),
        ("typed_config", Read("a file, or standard output")),
    ],
    others: HARMLESS,
};

pub(crate) const FILE_ACCESS_LOG: Schema = Schema {
    name: "envoy.extensions.access_loggers.file.v3.FileAccessLog",
    fields: &[
        ("path", Read("process-wide: the first one applies")),
        ("format", Ignored("records have Quadrille's own format")),
        ("json_format", Ignored("records have Quadrille's own format")),
        ("typed_json_format", Ignored("records have Quadrille's own format")),
        ("log_format", Ignored("records have Quadrille's own format")),
    ],
    others: HARMLESS,
};

pub(crate) const HEADER_VALUE: Schema = Schema {
    name: "envoy.config.core.v3.HeaderValue",
    fields: &[("key", Read("")), ("value", Read("")), ("raw_value", Read("base64"))],
    others: HARMLESS,
};

pub(crate) const STRING_MATCHER: Schema = Schema {
    name: "envoy.type.matcher.v3.StringMatcher",
    fields: &[
        ("exact", Read("")),
        ("prefix", Read("")),
        ("suffix", Read("")),
        ("contains", Read("")),
        ("safe_regex", Read("")),
        ("ignore_case", Read("")),
        ("custom", Refused("custom matchers are not supported")),
    ],
    others: STRICT,
};

pub(crate) const REGEX_MATCHER: Schema = Schema {
    name: "envoy.type.matcher.v3.RegexMatcher",
    fields: &[("regex", Read("RE2's syntax")), ("google_re2", Accepted("it is the only engine"))],
    others: STRICT,
};
