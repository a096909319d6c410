//! Filters: a few are served, some change nothing here, and whoever is let in by the others is not let in here.

use crate::{
    reader::{Field, Message, ReadMessage},
    schema::{FILTER, FieldPolicy, HTTP_FILTER, LISTENER_FILTER, Schema},
};
use FieldPolicy::{Accepted, Ignored, Read, Refused, RefusedWith};
use quadrille_config::{Problem, quote};

/// A filter that has its effect, with its own configuration.
pub(crate) struct Filter<'a> {
    /// The type of its configuration, or the filter's name if it has none.
    pub(crate) kind: &'a str,
    /// Its own name.
    pub(crate) name: &'a str,
    /// It does something on routes that say nothing of it.
    pub(crate) is_on: bool,
    /// Its configuration, if it has one.
    pub(crate) config: Option<Field<'a>>,
    /// For which connections a listener's filter is left out.
    pub(crate) disabled_at: Option<Field<'a>>,
    /// Where it stands.
    pub(crate) field: Field<'a>,
}

/// What becomes of filters, by the type of their configuration or by their name. A final `*` stands for any ending.
pub(crate) type Known = &'static [(&'static str, FieldPolicy)];

const METADATA: FieldPolicy = Accepted("it tells Istio's telemetry who is who");
const TELEMETRY: FieldPolicy = Accepted("telemetry; Quadrille has its own");
const LETS_IN: FieldPolicy = RefusedWith(
    "it decides who is let in, and ignoring it would let everybody in",
    "remove it, or decide behind Quadrille",
);
const RUNS_CODE: FieldPolicy = Refused("what its code does cannot be known: it may decide who is let in");
const LIMITS: FieldPolicy = RefusedWith(
    "it limits clients, and ignoring it would lift the limit",
    "remove it, or limit behind Quadrille",
);

/// Filters of listeners.
pub(crate) const LISTENER_FILTERS: Known = &[
    (TLS_INSPECTOR, Read("as far as chains are told apart by SNI, ALPN or TLS itself")),
    (TLS_INSPECTOR_NAME, Read("the same")),
    (HTTP_INSPECTOR, Read("as far as chains are told apart by `http/1.0`, `http/1.1` or `h2c`")),
    (HTTP_INSPECTOR_NAME, Read("the same")),
    (ORIGINAL_DST, Read("where a redirected connection was going is its destination")),
    (ORIGINAL_DST_NAME, Read("the same")),
    (
        "envoy.extensions.filters.listener.original_src.v3.OriginalSrc",
        Ignored("servers see Quadrille's address; use the PROXY protocol"),
    ),
    ("envoy.extensions.filters.listener.local_ratelimit.v3.LocalRateLimit", LIMITS),
];

/// Filters of connections.
pub(crate) const NETWORK_FILTERS: Known = &[
    ("envoy.tcp.metadataexchange.config.MetadataExchange", METADATA),
    ("istio.metadata_exchange", METADATA),
    ("io.istio.http.peer_metadata.Config", METADATA),
    ("stats.PluginConfig", TELEMETRY),
    ("istio.stats", TELEMETRY),
    (
        "envoy.extensions.filters.network.sni_cluster.v3.SniCluster",
        Refused("the cluster is named in `tcp_proxy`"),
    ),
    ("envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit", LIMITS),
    ("envoy.extensions.filters.network.local_ratelimit.v3.LocalRateLimit", LIMITS),
    ("envoy.extensions.filters.network.ratelimit.v3.RateLimit", LIMITS),
    ("envoy.extensions.filters.network.ext_authz.v3.ExtAuthz", LETS_IN),
    ("envoy.extensions.filters.network.wasm.v3.Wasm", RUNS_CODE),
    ("envoy.extensions.filters.network.ext_proc.v3.NetworkExternalProcessor", RUNS_CODE),
];

/// Filters of HTTP requests.
pub(crate) const HTTP_FILTERS: Known = &[
    ("envoy.tcp.metadataexchange.config.MetadataExchange", METADATA),
    ("istio.metadata_exchange", METADATA),
    ("io.istio.http.peer_metadata.Config", METADATA),
    ("stats.PluginConfig", TELEMETRY),
    ("istio.stats", TELEMETRY),
    (
        "istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig",
        Accepted("the protocol towards servers follows from the cluster"),
    ),
    ("istio.alpn", Accepted("the protocol towards servers follows from the cluster")),
    (
        "istio.envoy.config.filter.http.authn.v2alpha1.FilterConfig",
        Accepted("the RBAC filter asks the connection itself"),
    ),
    ("istio_authn", Accepted("the RBAC filter asks the connection itself")),
    ("envoy.extensions.filters.http.grpc_stats.v3.FilterConfig", TELEMETRY),
    ("envoy.extensions.filters.http.tap.v3.Tap", Ignored("requests are not recorded")),
    ("envoy.filters.http.fault", Accepted("routes say what is done")),
    ("envoy.extensions.filters.http.cors.v3.Cors", Accepted("routes say who may")),
    ("envoy.filters.http.cors", Accepted("routes say who may")),
    (
        "envoy.extensions.filters.http.decompressor.v3.Decompressor",
        Ignored("bodies are passed on as they are"),
    ),
    ("envoy.extensions.filters.http.grpc_web.v3.GrpcWeb", Ignored("gRPC-Web is passed on as it is")),
    ("envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec", Accepted("")),
    (
        "envoy.extensions.filters.http.alternate_protocols_cache.v3.FilterConfig",
        Ignored("HTTP/3 is not spoken towards servers"),
    ),
    ("envoy.extensions.filters.http.cache.v3.CacheConfig", Ignored("nothing is cached")),
    ("envoy.filters.http.rbac", LETS_IN),
    ("envoy.filters.http.ext_authz", LETS_IN),
    ("envoy.filters.http.jwt_authn", LETS_IN),
    ("envoy.extensions.filters.http.oauth2.v3.OAuth2", LETS_IN),
    ("envoy.filters.http.basic_auth", LETS_IN),
    ("envoy.extensions.filters.http.api_key_auth.v3.ApiKeyAuth", LETS_IN),
    ("envoy.extensions.filters.http.csrf.v3.CsrfPolicy", LETS_IN),
    ("envoy.filters.http.local_ratelimit", LIMITS),
    ("envoy.filters.http.ratelimit", LIMITS),
    ("envoy.extensions.filters.http.admission_control.v3.AdmissionControl", LIMITS),
    ("envoy.extensions.filters.http.wasm.v3.Wasm", RUNS_CODE),
    ("envoy.extensions.filters.http.lua.v3.Lua", RUNS_CODE),
    ("envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor", RUNS_CODE),
];

/// Filters of a chain or of an HTTP connection manager that are left when those of `known` have gone their way.
/// `served` are the ones that the caller understands.
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

/// `None` is a mistake, `Some(None)` a filter without effect.
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
    // Istio's own are Wasm in some versions, built into its Envoy: no code is fetched.
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
            field.warn(
                &format!("filter {known_as}"),
                format!("the filter {shown} is unknown, and it is optional"),
            );
            Some(None)
        }
        None => field.fail(Problem::new(
            format!(
                "the filter {shown} is refused: Quadrille does not know it, and it may decide who is let in"
            ),
            "remove it, or say `is_optional: true`",
        )),
    }
}

/// A filter that routes may switch on is left.
fn disabled<'a>(field: &Field<'a>, message: &Message<'a>) -> Option<Option<Filter<'a>>> {
    let Some(config) = message.get("typed_config") else { return Some(None) };
    let (kind, config) = config.any()?;
    // What a service is asked about stands in the filter, and what a bucket holds in the route.
    let config = (kind == RATE_LIMIT_SERVICE).then_some(config);
    let left =
        Filter { kind, name: name(message)?, is_on: false, config, disabled_at: None, field: field.clone() };
    Some([LOCAL_RATE_LIMIT, RATE_LIMIT_SERVICE].contains(&kind).then_some(left))
}

/// A type's name is longer than what is quoted elsewhere, and never a key.
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

/// The filters of a connection.
pub(crate) fn network<'a>(fields: Vec<Field<'a>>) -> Option<Vec<Filter<'a>>> {
    filters(fields, &FILTER, NETWORK_FILTERS, &[HTTP_MANAGER, TCP_PROXY, NETWORK_RBAC])
}

/// The filters of connections to servers, of which none is served.
pub(crate) fn cluster(fields: Vec<Field<'_>>) -> Option<()> {
    filters(fields, &FILTER, NETWORK_FILTERS, &[]).map(drop)
}

/// The filters of requests.
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

/// The filters of a listener.
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
