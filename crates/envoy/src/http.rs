//! The HTTP connection manager.

use crate::{
    access_log::access_log,
    basic_auth::basic_auth,
    buffer::buffer,
    common::{Protocol, duration},
    compressor::compressor,
    config_source::{ConfigSource, config_source},
    envoy_headers::{envoy_headers, forwarded_certificate},
    ext_authz::ext_authz,
    fault::fault,
    filters,
    jwt::jwt_authentication,
    local_rate_limit::local_rate_limit,
    local_reply::local_replies,
    rate_limit_service::rate_limit_service,
    rbac,
    reader::{Field, Message, ReadMessage},
    request_id::request_ids,
    route::route_configuration,
    schema,
    tracing::http_tracing,
    upgrades::upgrades,
    values::{enumeration, number},
};
use quadrille_config::{
    Diagnostic, Problem,
    model::{
        AccessLog, AccessRules, AccessStep, Compression, EnvoyHeaders, ForwardedCertificate, HttpTracing,
        LocalReplies, Paths, Place, RequestIds, RequestLimits, RouteTable, StripPort, Upgrades,
    },
};
use std::{num::NonZeroUsize, sync::Arc, time::Duration};

/// `envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager`.
#[derive(Debug)]
pub(crate) struct HttpManager {
    pub(crate) stat_prefix: String,
    pub(crate) routes: Routes,
    pub(crate) limits: RequestLimits,
    pub(crate) local_replies: Option<Arc<LocalReplies>>,
    pub(crate) paths: Paths,
    /// Access control steps.
    pub(crate) access: Vec<AccessStep>,
    /// Place of a rule that uses the address of the direct peer.
    pub(crate) direct: Option<Place>,
    /// Idle timeout of client connections.
    pub(crate) idle: Option<Duration>,
    /// Time limit for a request's header.
    pub(crate) header_timeout: Option<Duration>,
    /// Time limit for a request's body.
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) request_ids: Option<RequestIds>,
    /// Compression of upstream responses.
    pub(crate) compression: Option<Arc<Compression>>,
    pub(crate) forwarded_certificate: ForwardedCertificate,
    pub(crate) envoy_headers: EnvoyHeaders,
    pub(crate) strip_port: StripPort,
    /// Protocols that requests may switch to if routes do not configure it.
    pub(crate) upgrades: Upgrades,
    pub(crate) tracing: Option<HttpTracing>,
}

/// Inline routes, or the name of a route configuration.
#[derive(Debug)]
pub(crate) enum Routes {
    Here(Arc<RouteTable>),
    Named(RoutesReference),
}

/// A route configuration delivered by RDS.
#[derive(Clone, Debug)]
pub struct RoutesReference {
    /// Name of the route configuration.
    pub name: String,
    /// Source of the route configuration.
    pub source: ConfigSource,
    pub(crate) place: Place,
}

pub(crate) fn http_manager(field: &Field<'_>, protocol: Protocol) -> Option<HttpManager> {
    let message = field.message(&schema::HTTP_MANAGER)?;
    fixed(&message, protocol)?;
    let Access { steps, direct, behind_proxies, compression, body_limit, suppresses_headers, child_spans } =
        access(&message)?;
    let mut limits = RequestLimits { body: body_limit, ..RequestLimits::default() };
    if let Some(kibibytes) = message.number("max_request_headers_kb") {
        // Envoy has the same maximum.
        limits.header = kibibytes.min(8192) as usize * 1024;
    }
    trusts_no_proxy(&message, behind_proxies.as_ref())?;
    let mut idle = None;
    if let Some(common) = message.get("common_http_protocol_options") {
        const UNDERSCORES: &[(&str, u32, ())] = &[("ALLOW", 0, ())];
        let common = common.message(&schema::COMMON_HTTP_OPTIONS)?;
        if let Some(action) = common.get("headers_with_underscores_action") {
            action.parse(enumeration(UNDERSCORES))?;
        }
        if let Some(count) = common.get("max_headers_count") {
            limits.fields = count.parse(header_count)?;
        }
        if let Some(field) = common.get("idle_timeout") {
            let time = duration(&field)?;
            idle = Some(if time.is_zero() { Duration::from_secs(7 * 24 * 3600) } else { time });
        }
    }
    let routes = match message.one_of(&["route_config", "rds"]) {
        Some(("route_config", config)) => Routes::Here(route_configuration(&config)?.1.table),
        Some((_, rds)) => {
            let rds_message = rds.message(&schema::RDS)?;
            Routes::Named(RoutesReference {
                name: rds_message.require("route_config_name")?.text()?.to_owned(),
                source: config_source(&rds_message.require("config_source")?)?,
                place: rds.place(),
            })
        }
        None => return field.fail("`route_config` or `rds` is missing"),
    };
    Some(HttpManager {
        stat_prefix: message.string("stat_prefix"),
        routes,
        limits,
        local_replies: match message.get("local_reply_config") {
            Some(config) => Some(Arc::new(local_replies(&config)?)),
            None => None,
        },
        paths: Paths {
            normalize: message.flag("normalize_path"),
            merge_slashes: message.flag("merge_slashes"),
            ..Paths::UNCHANGED
        },
        access: steps,
        direct,
        idle,
        access_log: access_log(&message)?,
        header_timeout: message.duration("request_headers_timeout").filter(|time| !time.is_zero()),
        request_timeout: message.duration("request_timeout").filter(|time| !time.is_zero()),
        request_ids: request_ids(&message),
        compression: compression.map(Arc::new),
        forwarded_certificate: forwarded_certificate(&message)?,
        envoy_headers: envoy_headers(&message, suppresses_headers)?,
        strip_port: match (message.flag("strip_any_host_port"), message.flag("strip_matching_host_port")) {
            (true, _) => StripPort::Always,
            (false, true) => StripPort::Own,
            (false, false) => StripPort::Never,
        },
        upgrades: upgrades(&message, &schema::UPGRADE)?,
        tracing: http_tracing(&message, child_spans)?,
    })
}

/// Filters that affect access control and responses, and places where they depend on the listener.
#[derive(Default)]
struct Access {
    steps: Vec<AccessStep>,
    direct: Option<Place>,
    behind_proxies: Option<Place>,
    compression: Option<Compression>,
    /// Maximum size of request bodies.
    body_limit: Option<u64>,
    /// Whether the router omits `x-envoy-*`.
    suppresses_headers: bool,
    /// Whether the router creates a span for each attempt.
    child_spans: bool,
}

fn access(message: &Message<'_>) -> Option<Access> {
    let mut access = Access::default();
    let filters = filters::http(message.list("http_filters"))?;
    // Filters that may read the metadata of shadow rules.
    const LOOKERS: [&str; 3] = [filters::EXT_AUTHZ, filters::RATE_LIMIT_SERVICE, filters::LOCAL_RATE_LIMIT];
    let is_watched = filters.iter().any(|filter| LOOKERS.contains(&filter.kind));
    for filter in filters {
        match (&filter.config, filter.kind) {
            (config, filters::LOCAL_RATE_LIMIT) => access.limit(&filter.field, config.as_ref())?,
            (Some(config), filters::HTTP_RBAC) => {
                if is_watched && let Some((read, name)) = rbac::shadow(config)? {
                    access.add(read, |rules| AccessStep::Shadow(rules, name));
                }
                if let Some(read) = rbac::rbac(config, rbac::Of::Requests)? {
                    access.add(read, AccessStep::Rules);
                }
            }
            (Some(config), filters::EXT_AUTHZ) => {
                access.steps.push(AccessStep::Authorization(Arc::new(ext_authz(config)?)));
            }
            (Some(config), filters::RATE_LIMIT_SERVICE) => {
                let service = rate_limit_service(config, filter.name, filter.is_on)?;
                access.steps.push(AccessStep::RateLimitService(Arc::new(service)));
            }
            (Some(config), filters::HTTP_JWT) => {
                access.steps.push(AccessStep::Jwt(Arc::new(jwt_authentication(config)?)));
            }
            (Some(config), filters::BASIC_AUTH) => {
                access.steps.push(AccessStep::BasicAuth(Some(Arc::new(basic_auth(config)?))));
            }
            (Some(config), filters::COMPRESSOR) => compressor(config, &mut access.compression)?,
            (Some(config), filters::BUFFER) => {
                // The smallest of several limits applies.
                let (own, before) = (buffer(config)?, access.body_limit);
                access.body_limit = Some(before.map_or(own, |before| before.min(own)));
            }
            (Some(config), filters::HTTP_FAULT) => warn_of_faults(config)?,
            (Some(config), _) => {
                let router = config.message(&schema::ROUTER)?;
                access.suppresses_headers = router.flag("suppress_envoy_headers");
                access.child_spans = router.flag("start_child_span");
            }
            (None, _) => {}
        }
    }
    Some(access)
}

impl Access {
    /// Reads a local rate limit; without its configuration, only routes define limits.
    fn limit(&mut self, field: &Field<'_>, config: Option<&Field<'_>>) -> Option<()> {
        if self.steps.iter().any(|step| matches!(step, AccessStep::RateLimits(_))) {
            return field.fail(Problem::new(
                "refused: there is another filter of this type, and per-route settings would be ambiguous",
                "use one filter, and per-route limits",
            ));
        }
        let limits = config.map_or_else(|| Some(Vec::new()), local_rate_limit)?;
        self.steps.push(AccessStep::RateLimits(limits));
        Some(())
    }

    fn add(&mut self, read: rbac::Access, step: impl FnOnce(AccessRules) -> AccessStep) {
        self.direct = self.direct.take().or(read.direct);
        self.behind_proxies = self.behind_proxies.take().or(read.behind_proxies);
        self.steps.push(step(read.rules));
    }
}

/// Rejects rules on the client behind proxies unless the client is the direct peer.
fn trusts_no_proxy(message: &Message<'_>, behind_proxies: Option<&Place>) -> Option<()> {
    let hops = message.get("xff_num_trusted_hops").filter(|hops| hops.text() != Some("0"));
    match (&hops, behind_proxies) {
        (None, Some(_)) if message.flag("use_remote_address") => {}
        (_, Some(place)) => {
            // Reported at the rule, whose path marks the listener as access-controlled.
            message.field().report(Diagnostic::new(
                place,
                Problem::new(
                    "`remote_ip` is refused: this connection manager does not trust `x-forwarded-for`",
                    "set `use_remote_address: true` and no `xff_num_trusted_hops`, or use `direct_remote_ip`",
                ),
            ));
            return None;
        }
        (Some(hops), None) => {
            let text =
                "no effect on `x-forwarded-for` and `x-forwarded-proto`, which are set from the connection";
            hops.warn("xff_num_trusted_hops", text);
        }
        (None, None) => {}
    }
    Some(())
}

/// Parses the maximum number of header fields in a request.
fn header_count(text: &str) -> Result<NonZeroUsize, Problem> {
    let count = usize::try_from(number(text)?).ok().and_then(NonZeroUsize::new);
    count.filter(|count| count.get() <= 10_000).ok_or_else(|| {
        Problem::new(format!("{} is not a count from 1 to 10000", quadrille_config::quote(text)), "write one")
    })
}

/// Warns about faults in the filter for all routes, which have no effect.
fn warn_of_faults(config: &Field<'_>) -> Option<()> {
    let found = fault(config)?;
    if found.is_some() {
        config.warn("filter fault", "ignored: faults are configured by routes");
    }
    Some(())
}

/// Checks fields with only one supported value.
fn fixed(message: &Message<'_>, protocol: Protocol) -> Option<()> {
    const OVER_TCP: &[(&str, u32, ())] = &[("AUTO", 0, ()), ("HTTP1", 1, ()), ("HTTP2", 2, ())];
    const OVER_UDP: &[(&str, u32, ())] = &[("AUTO", 0, ()), ("HTTP3", 3, ())];
    const SLASHES: &[(&str, u32, ())] =
        &[("IMPLEMENTATION_SPECIFIC_DEFAULT", 0, ()), ("KEEP_UNCHANGED", 1, ())];
    if let Some(codec) = message.get("codec_type") {
        codec.parse(enumeration(match protocol {
            Protocol::Tcp => OVER_TCP,
            Protocol::Udp => OVER_UDP,
        }))?;
    }
    if let Some(options) = message.get("http3_protocol_options") {
        options.message(&schema::HTTP3_OPTIONS)?;
    }
    if let Some(action) = message.get("path_with_escaped_slashes_action") {
        action.parse(enumeration(SLASHES))?;
    }
    Some(())
}
