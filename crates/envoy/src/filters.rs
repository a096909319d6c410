//! Filters: some are supported, some have no effect here, and filters that control access are refused.

use crate::{
    reader::{Field, Message, ReadMessage},
    schema::{FILTER, FieldPolicy, HTTP_FILTER, LISTENER_FILTER, Schema},
};
use FieldPolicy::{Accepted, Ignored, Read, Refused, RefusedWith};
use quadrille_config::{Problem, quote};

/// A filter with an effect, with its configuration.
pub(crate) struct Filter<'a> {
    /// Type of its configuration, or the filter's name if it has none.
    pub(crate) kind: &'a str,
    /// Name of the filter.
    pub(crate) name: &'a str,
    /// Whether it is active on routes without per-route settings.
    pub(crate) is_on: bool,
    /// Configuration, if any.
    pub(crate) config: Option<Field<'a>>,
    /// Connections to which a listener filter does not apply.
    pub(crate) disabled_at: Option<Field<'a>>,
    /// The filter's field.
    pub(crate) field: Field<'a>,
}

/// Policies of filters, by the type of their configuration or by their name. A final `*` matches any suffix.
pub(crate) type Known = &'static [(&'static str, FieldPolicy)];

const METADATA: FieldPolicy = Accepted("only for Istio's telemetry");
const TELEMETRY: FieldPolicy = Accepted("telemetry; Quadrille has its own");
const GRANTS_ACCESS: FieldPolicy = RefusedWith(
    "it controls access, and ignoring it would allow all requests",
    "remove it, or control access behind Quadrille",
);
const RUNS_CODE: FieldPolicy = Refused("the behavior of its code is unknown: it may control access");
const LIMITS: FieldPolicy = RefusedWith(
    "it limits clients, and ignoring it would lift the limit",
    "remove it, or limit behind Quadrille",
);

/// Listener filters.
pub(crate) const LISTENER_FILTERS: Known = &[
    (TLS_INSPECTOR, Read("for chains that match SNI, ALPN or TLS")),
    (TLS_INSPECTOR_NAME, Read("as above")),
    (HTTP_INSPECTOR, Read("for chains that match `http/1.0`, `http/1.1` or `h2c`")),
    (HTTP_INSPECTOR_NAME, Read("as above")),
    (ORIGINAL_DST, Read("restores the original destination of redirected connections")),
    (ORIGINAL_DST_NAME, Read("as above")),
    (
        "envoy.extensions.filters.listener.original_src.v3.OriginalSrc",
        Ignored("upstreams see Quadrille's address; use the PROXY protocol"),
    ),
    ("envoy.extensions.filters.listener.local_ratelimit.v3.LocalRateLimit", LIMITS),
];

/// Network filters.
pub(crate) const NETWORK_FILTERS: Known = &[
    ("envoy.tcp.metadataexchange.config.MetadataExchange", METADATA),
    ("istio.metadata_exchange", METADATA),
    ("io.istio.http.peer_metadata.Config", METADATA),
    ("stats.PluginConfig", TELEMETRY),
    ("istio.stats", TELEMETRY),
    ("envoy.extensions.filters.network.sni_cluster.v3.SniCluster", Refused("set the cluster in `tcp_proxy`")),
    ("envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit", LIMITS),
    ("envoy.extensions.filters.network.local_ratelimit.v3.LocalRateLimit", LIMITS),
    ("envoy.extensions.filters.network.ratelimit.v3.RateLimit", LIMITS),
    ("envoy.extensions.filters.network.ext_authz.v3.ExtAuthz", GRANTS_ACCESS),
    ("envoy.extensions.filters.network.wasm.v3.Wasm", RUNS_CODE),
    ("envoy.extensions.filters.network.ext_proc.v3.NetworkExternalProcessor", RUNS_CODE),
];

/// HTTP filters.
pub(crate) const HTTP_FILTERS: Known = &[
    ("envoy.tcp.metadataexchange.config.MetadataExchange", METADATA),
    ("istio.metadata_exchange", METADATA),
    ("io.istio.http.peer_metadata.Config", METADATA),
    ("stats.PluginConfig", TELEMETRY),
    ("istio.stats", TELEMETRY),
    (
        "istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig",
        Accepted("the cluster determines the upstream protocol"),
    ),
    ("istio.alpn", Accepted("the cluster determines the upstream protocol")),
    (
        "istio.envoy.config.filter.http.authn.v2alpha1.FilterConfig",
        Accepted("the RBAC filter uses the connection itself"),
    ),
    ("istio_authn", Accepted("the RBAC filter uses the connection itself")),
    ("envoy.extensions.filters.http.grpc_stats.v3.FilterConfig", TELEMETRY),
    ("envoy.extensions.filters.http.tap.v3.Tap", Ignored("requests are not recorded")),
    ("envoy.filters.http.fault", Accepted("configured by routes")),
    ("envoy.extensions.filters.http.cors.v3.Cors", Accepted("configured by routes")),
    ("envoy.filters.http.cors", Accepted("configured by routes")),
    (
        "envoy.extensions.filters.http.decompressor.v3.Decompressor",
        Ignored("request bodies are forwarded unchanged"),
    ),
    ("envoy.extensions.filters.http.grpc_web.v3.GrpcWeb", Ignored("gRPC-Web is forwarded unchanged")),
    ("envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec", Accepted("")),
    (
        "envoy.extensions.filters.http.alternate_protocols_cache.v3.FilterConfig",
        Ignored("HTTP/3 to upstreams is not supported"),
    ),
    ("envoy.extensions.filters.http.cache.v3.CacheConfig", Ignored("caching is not supported")),
    ("envoy.filters.http.rbac", GRANTS_ACCESS),
    ("envoy.filters.http.ext_authz", GRANTS_ACCESS),
    ("envoy.filters.http.jwt_authn", GRANTS_ACCESS),
    ("envoy.extensions.filters.http.oauth2.v3.OAuth2", GRANTS_ACCESS),
    ("envoy.filters.http.basic_auth", GRANTS_ACCESS),
    ("envoy.extensions.filters.http.api_key_auth.v3.ApiKeyAuth", GRANTS_ACCESS),
    ("envoy.extensions.filters.http.csrf.v3.CsrfPolicy", GRANTS_ACCESS),
    ("envoy.filters.http.local_ratelimit", LIMITS),
    ("envoy.filters.http.ratelimit", LIMITS),
    ("envoy.extensions.filters.http.admission_control.v3.AdmissionControl", LIMITS),
    ("envoy.extensions.filters.http.wasm.v3.Wasm", RUNS_CODE),
    ("envoy.extensions.filters.http.lua.v3.Lua", RUNS_CODE),
    ("envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor", RUNS_CODE),
];

/// Returns the filters of a chain or of an HTTP connection manager that remain after applying the policies of
/// `known`. `served` are the types that the caller supports.
pub(crate) fn filters<'a>(
    fields: Vec<Field<'a>>,
    schema: &'static Schema,
    known: Known,
    served: &[&str],
) -> Option<Vec<Filter<'a>>> {
    let mut left = Vec::new();
    let mut good = true;
    for field in fields {
        match filter(&field, schema, known, served) {
            Some(filter) => left.extend(filter),
            None => good = false,
        }
    }
    good.then_some(left)
}

/// Reads a filter; `None` if it is invalid, `Some(None)` if it has no effect.
fn filter<'a>(
    field: &Field<'a>,
    schema: &'static Schema,
    known: Known,
    served: &[&str],
) -> Option<Option<Filter<'a>>> {
    let message = field.message(schema)?;
    let flag = |name| schema.field(name).is_some() && message.flag(name);
    let optional = flag("is_optional");
    if flag("disabled") {
        return disabled(field, &message);
    }
    let name = name(&message)?;
    let (kind, config) = match message.get("typed_config") {
        Some(config) => config.any().map(|(kind, config)| (kind, Some(config)))?,
        None => (name, None),
    };
    if served.contains(&kind) {
        let has_condition = schema.field("filter_disabled").is_some();
        let disabled_at = has_condition.then(|| message.get("filter_disabled")).flatten();
        return Some(Some(Filter { kind, name, is_on: true, config, disabled_at, field: field.clone() }));
    }
    // Some of Istio's own filters are Wasm in some versions and built into its Envoy: no code is fetched.
    let known_as = if kind.ends_with(".Wasm") && name.starts_with("istio.") { name } else { kind };
    let policy = known.iter().find(|(known, _)| *known == known_as).map(|(_, policy)| *policy);
    let shown = shown(kind);
    match policy {
        Some(FieldPolicy::Read(_) | Accepted(_)) => Some(None),
        Some(Ignored(why)) => {
            field.warn(&format!("filter {known_as}"), format!("the filter {shown} is ignored: {why}"));
            Some(None)
        }
        Some(Refused(why)) => field.fail(format!("the filter {shown} is refused: {why}")),
        Some(RefusedWith(why, remedy)) => {
            field.fail(Problem::new(format!("the filter {shown} is refused: {why}"), remedy))
        }
        None if optional => {
            field.warn(&format!("filter {known_as}"), format!("the filter {shown} is unknown but optional"));
            Some(None)
        }
        None => field.fail(Problem::new(
            format!("the filter {shown} is refused: Quadrille does not know it, and it may control access"),
            "remove it, or set `is_optional: true`",
        )),
    }
}

/// Reads a disabled filter. A filter that routes may enable is kept.
fn disabled<'a>(field: &Field<'a>, message: &Message<'a>) -> Option<Option<Filter<'a>>> {
    let Some(config) = message.get("typed_config") else { return Some(None) };
    let (kind, config) = config.any()?;
    // The rate limit service is configured in the filter, and local buckets in the route.
    let config = (kind == RATE_LIMIT_SERVICE).then_some(config);
    let left =
        Filter { kind, name: name(message)?, is_on: false, config, disabled_at: None, field: field.clone() };
    Some([LOCAL_RATE_LIMIT, RATE_LIMIT_SERVICE].contains(&kind).then_some(left))
}

/// Shortens a type for messages. Its name is longer than what is quoted elsewhere, and never a key.
fn shown(kind: &str) -> String {
    let plain =
        kind.len() <= 200 && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
    if plain { format!("`{kind}`") } else { quote(kind) }
}

fn name<'a>(message: &Message<'a>) -> Option<&'a str> {
    match message.get("name") {
        Some(name) => name.text(),
        None => Some(""),
    }
}

/// Reads the network filters.
pub(crate) fn network<'a>(fields: Vec<Field<'a>>) -> Option<Vec<Filter<'a>>> {
    filters(fields, &FILTER, NETWORK_FILTERS, &[HTTP_MANAGER, TCP_PROXY, NETWORK_RBAC])
}

/// Reads the upstream filters, which are not supported.
pub(crate) fn cluster(fields: Vec<Field<'_>>) -> Option<()> {
    filters(fields, &FILTER, NETWORK_FILTERS, &[]).map(drop)
}

/// Reads the HTTP filters.
pub(crate) fn http<'a>(fields: Vec<Field<'a>>) -> Option<Vec<Filter<'a>>> {
    filters(
        fields,
        &HTTP_FILTER,
        HTTP_FILTERS,
        &[
            ROUTER,
            ROUTER_NAME,
            HTTP_RBAC,
            HTTP_FAULT,
            HTTP_JWT,
            EXT_AUTHZ,
            BASIC_AUTH,
            LOCAL_RATE_LIMIT,
            RATE_LIMIT_SERVICE,
            COMPRESSOR,
            BUFFER,
        ],
    )
}

/// Reads the listener filters.
pub(crate) fn listener<'a>(fields: Vec<Field<'a>>) -> Option<Vec<Filter<'a>>> {
    filters(
        fields,
        &LISTENER_FILTER,
        LISTENER_FILTERS,
        &[
            PROXY_PROTOCOL,
            PROXY_PROTOCOL_NAME,
            TLS_INSPECTOR,
            TLS_INSPECTOR_NAME,
            HTTP_INSPECTOR,
            HTTP_INSPECTOR_NAME,
            ORIGINAL_DST,
            ORIGINAL_DST_NAME,
        ],
    )
}

pub(crate) const HTTP_MANAGER: &str = crate::schema::HTTP_MANAGER.name;
pub(crate) const TCP_PROXY: &str = crate::schema::TCP_PROXY.name;
pub(crate) const NETWORK_RBAC: &str = crate::schema::NETWORK_RBAC.name;
pub(crate) const HTTP_FAULT: &str = crate::schema::HTTP_FAULT.name;
pub(crate) const EXT_AUTHZ: &str = crate::schema::EXT_AUTHZ.name;
pub(crate) const BUFFER: &str = crate::schema::BUFFER.name;
pub(crate) const COMPRESSOR: &str = crate::schema::COMPRESSOR.name;
pub(crate) const BASIC_AUTH: &str = crate::schema::BASIC_AUTH.name;
pub(crate) const HTTP_JWT: &str = crate::schema::JWT_AUTHENTICATION.name;
pub(crate) const LOCAL_RATE_LIMIT: &str = crate::schema::LOCAL_RATE_LIMIT.name;
pub(crate) const RATE_LIMIT_SERVICE: &str = crate::schema::RATE_LIMIT_SERVICE.name;
pub(crate) const HTTP_RBAC: &str = crate::schema::HTTP_RBAC.name;
const ROUTER: &str = crate::schema::ROUTER.name;
const ROUTER_NAME: &str = "envoy.filters.http.router";
const PROXY_PROTOCOL: &str = crate::schema::PROXY_PROTOCOL.name;
pub(crate) const TLS_INSPECTOR: &str = "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector";
pub(crate) const TLS_INSPECTOR_NAME: &str = "envoy.filters.listener.tls_inspector";
pub(crate) const HTTP_INSPECTOR: &str = "envoy.extensions.filters.listener.http_inspector.v3.HttpInspector";
pub(crate) const HTTP_INSPECTOR_NAME: &str = "envoy.filters.listener.http_inspector";
pub(crate) const ORIGINAL_DST: &str = "envoy.extensions.filters.listener.original_dst.v3.OriginalDst";
pub(crate) const ORIGINAL_DST_NAME: &str = "envoy.filters.listener.original_dst";
const PROXY_PROTOCOL_NAME: &str = "envoy.filters.listener.proxy_protocol";
