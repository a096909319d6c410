//! Per-route filter settings.

use crate::{
    buffer, compressor,
    cross_origin::cors,
    fault::fault,
    local_rate_limit::local_rate_limit,
    rate_limit_service,
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{
    Problem,
    model::{Compression, Cors, Fault, FilterOnRoute, RateLimit, RouteBodyLimit, RouteRateLimits},
    yaml::Value,
};
use std::sync::Arc;

/// Per-route settings of supported filters: unset, disabled, or overridden.
#[derive(Clone, Default)]
pub(crate) struct PerRoute {
    pub(crate) cors: Option<Option<Cors>>,
    pub(crate) fault: Option<Option<Fault>>,
    limits: Option<Vec<RateLimit>>,
    /// Whether compression is disabled.
    uncompressed: Option<bool>,
    body: Option<RouteBodyLimit>,
    /// Settings of rate limit service filters, by filter name.
    services: Vec<(String, FilterOnRoute)>,
}

impl PerRoute {
    /// Returns these settings, with those of the level above for filters that are unset here.
    pub(crate) fn or(self, above: &Self) -> Self {
        Self {
            cors: self.cors.or_else(|| above.cors.clone()),
            fault: self.fault.or_else(|| above.fault.clone()),
            limits: self.limits.or_else(|| above.limits.clone()),
            uncompressed: self.uncompressed.or(above.uncompressed),
            body: self.body.or(above.body),
            services: {
                let own = |name: &str| self.services.iter().any(|(own, _)| own == name);
                let inherited: Vec<_> =
                    above.services.iter().filter(|(name, _)| !own(name)).cloned().collect();
                [self.services.as_slice(), &inherited].concat()
            },
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cors.is_none() && self.fault.is_none()
    }

    /// Returns the compression that disables all others, if compression is disabled here.
    pub(crate) fn compression(&self) -> Option<Arc<Compression>> {
        (self.uncompressed == Some(true)).then(compressor::none)
    }

    /// Returns the request body limit.
    pub(crate) fn body_limit(&self) -> RouteBodyLimit {
        self.body.unwrap_or_default()
    }

    /// Returns whether local rate limits are set.
    pub(crate) fn limits(&self) -> bool {
        self.limits.is_some() || !self.services.is_empty()
    }

    /// Returns the settings of rate limit service filters.
    pub(crate) fn services(&self) -> &[(String, FilterOnRoute)] {
        &self.services
    }

    /// Returns the limits that replace the filter's own, if any are set.
    pub(crate) fn rate_limits(&self) -> RouteRateLimits {
        self.limits.clone().map_or_else(RouteRateLimits::default, RouteRateLimits::InPlace)
    }
}

/// Reads the settings. Per-route access control is refused: ignoring it could allow unauthorized requests. Settings
/// of filters without effect have no effect either.
pub(crate) fn per_route(message: &Message<'_>) -> Option<PerRoute> {
    let mut found = PerRoute::default();
    let Some(field) = message.get("typed_per_filter_config") else { return Some(found) };
    let Value::Mapping(entries) = &field.node().value else {
        return field.fail("expected a mapping of filter names to settings");
    };
    for entry in entries {
        let settings = field.child(entry);
        let (kind, config) = settings.any()?;
        if may_decide(&entry.key, kind, &config)? {
            return settings.fail(Problem::new(
                "refused: it may control access to some routes, and ignoring it could grant access",
                "use the filter's own rules, by host and path",
            ));
        }
        if kind == schema::CORS_POLICY.name {
            found.cors = Some(cors(&config)?);
        } else if kind == schema::HTTP_FAULT.name {
            found.fault = Some(fault(&config)?);
        } else if kind == schema::COMPRESSOR_PER_ROUTE.name {
            found.uncompressed = Some(compressor::is_off(&config)?);
        } else if entry.key.contains("compressor") && is_switched_off(kind, &config) {
            found.uncompressed = Some(true);
        } else if kind == schema::BUFFER_PER_ROUTE.name {
            found.body = Some(buffer::of_route(&config)?);
        } else if entry.key.contains("buffer") && is_switched_off(kind, &config) {
            found.body = Some(RouteBodyLimit::Unlimited);
        } else if let Some(limits) = limits(&entry.key, kind, &config)? {
            found.limits = Some(limits);
        } else if let Some(said) = rate_limit_service(&entry.key, kind, &config)? {
            found.services.push((entry.key.clone(), said));
        } else {
            let text = "ignored: it configures a filter without effect here";
            settings.warn("typed_per_filter_config", text);
        }
    }
    Some(found)
}

/// Returns whether it disables a filter of any type.
fn is_switched_off(kind: &str, config: &Field<'_>) -> bool {
    kind == FILTER_CONFIG && config.entry("disabled").and_then(|field| field.text()) == Some("true")
}

/// Settings of a filter in a wrapper, which may be empty and disable or enable the filter.
struct Wrapper<'a> {
    off: bool,
    /// The wrapped settings, with their type.
    settings: Option<(&'a str, Field<'a>)>,
}

/// Reads a wrapper; `Some(None)` if it is not one.
fn wrapper<'a>(kind: &str, config: &Field<'a>) -> Option<Option<Wrapper<'a>>> {
    if kind != FILTER_CONFIG {
        return Some(None);
    }
    let settings = match config.entry("config") {
        Some(settings) => Some(settings.any()?),
        None => None,
    };
    Some(Some(Wrapper { off: is_switched_off(kind, config), settings }))
}

const FILTER_CONFIG: &str = "envoy.config.route.v3.FilterConfig";

/// Reads local rate limits, if it configures them: by the filter's settings, by these in a wrapper, or by disabling
/// the filter.
fn limits(name: &str, kind: &str, config: &Field<'_>) -> Option<Option<Vec<RateLimit>>> {
    const SETTINGS: &str = schema::LOCAL_RATE_LIMIT.name;
    if kind == SETTINGS {
        return local_rate_limit(config).map(Some);
    }
    let Some(Wrapper { off, settings }) = wrapper(kind, config)? else { return Some(None) };
    match settings {
        Some((SETTINGS, _)) if off => Some(Some(Vec::new())),
        Some((SETTINGS, settings)) => local_rate_limit(&settings).map(Some),
        None if off && name.contains("local_rate") => Some(Some(Vec::new())),
        _ => Some(None),
    }
}

/// Reads the settings of a rate limit service filter, if it configures one: by its own message, by this in a wrapper,
/// or by disabling or enabling it.
fn rate_limit_service(name: &str, kind: &str, config: &Field<'_>) -> Option<Option<FilterOnRoute>> {
    const SETTINGS: &str = schema::RATE_LIMIT_PER_ROUTE.name;
    let on = |settings: &Field<'_>| {
        rate_limit_service::on_route(settings).map(|said| Some(FilterOnRoute::On(Arc::new(said))))
    };
    if kind == SETTINGS {
        return on(config);
    }
    let Some(Wrapper { off, settings }) = wrapper(kind, config)? else { return Some(None) };
    let is_meant = match &settings {
        Some((kind, _)) => *kind == SETTINGS,
        None => name.contains("ratelimit") || name.contains("rate_limit"),
    };
    match settings {
        _ if !is_meant => Some(None),
        _ if off => Some(Some(FilterOnRoute::Off)),
        Some((_, settings)) => on(&settings),
        None => Some(Some(FilterOnRoute::On(Arc::default()))),
    }
}

/// Returns whether it may configure a filter that controls access: RBAC, tokens, passwords, or external
/// authorization.
fn may_decide(name: &str, kind: &str, config: &Field<'_>) -> Option<bool> {
    let decides = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["rbac", "jwt", "authz", "basic_auth"].iter().any(|part| name.contains(part))
    };
    if decides(name) || decides(kind) {
        return Some(true);
    }
    // A wrapper configures another filter, or disables or enables any filter; an enabled filter still controls access
    // here.
    if !kind.ends_with(".FilterConfig") || kind.starts_with("istio.") {
        return Some(false);
    }
    match config.entry("config") {
        Some(inner) => inner.any().map(|(kind, _)| decides(kind)),
        None => Some(config.entry("disabled").and_then(|field| field.text()) != Some("true")),
    }
}
