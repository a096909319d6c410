//! Rules of HTTPRoutes: matches, filters, weights and timeouts of a location.

use crate::{
    annotation::{Annotations, canary, redirect, snippet, text::list},
    object::{Backend, PathType},
    selection,
    site::{Location, Site, Source},
};
use quadrille_draft::yaml::{Map, Value};

/// Annotations that rules express, wholly or in part; the part that they do not has a comment of its own.
pub(super) const EXPRESSED: &[&str] = &[
    "app-root",
    "canary",
    "canary-by-header",
    "canary-by-header-pattern",
    "canary-by-header-value",
    "canary-weight",
    "canary-weight-total",
    "cors-allow-credentials",
    "cors-allow-headers",
    "cors-allow-methods",
    "cors-allow-origin",
    "cors-expose-headers",
    "cors-max-age",
    "custom-headers",
    "enable-cors",
    "force-ssl-redirect",
    "permanent-redirect",
    "permanent-redirect-code",
    "proxy-read-timeout",
    "rewrite-target",
    "server-alias",
    "ssl-redirect",
    "temporal-redirect",
    "temporal-redirect-code",
    "upstream-vhost",
    "use-regex",
    "x-forwarded-prefix",
];

/// Annotations that guard, and that rules cannot express.
const GUARDS: &[&str] = &[
    "allowlist-source-range",
    "auth-tls-secret",
    "auth-type",
    "auth-url",
    "denylist-source-range",
    "limit-connections",
    "limit-rpm",
    "limit-rps",
];

/// Returns the annotations of an Ingress that guard its paths, or the whole host.
pub(super) fn guards(annotations: &Annotations<'_, '_>, site: &Site<'_>) -> Vec<&'static str> {
    let mut found: Vec<_> = GUARDS.iter().copied().filter(|name| annotations.value(name).is_some()).collect();
    if site.client_auth.is_some() && !found.contains(&"auth-tls-secret") {
        found.push("auth-tls-secret");
    }
    found.extend(snippet::guarding(annotations));
    found
}

/// Returns the rules of a location, those of canaries first.
pub(super) fn rules(
    site: &Site<'_>,
    location: &Location<'_>,
    sources: &[Source<'_, '_>],
    guards: &[&str],
) -> Vec<Map> {
    let annotations = &sources[location.source].annotations;
    let mut rules = Vec::new();
    if let Some(path) = annotations.value("app-root").filter(|_| location.path == "/") {
        let to = Map::of("path", full(path)).with("statusCode", "302");
        let rule = Map::of("matches", vec![Map::of("path", exact("/"))]);
        rules.push(rule.with("filters", vec![redirect_filter(to)]));
    }
    let mut rule = Map::new();
    let matched = path(site, location, sources, &mut rule);
    let mut filters = filters(annotations, location, &mut rule);
    if let Some(filter) = whole(annotations, &mut rule) {
        rule.set("matches", vec![Map::of("path", matched)]);
        rule.set("filters", vec![filter]);
        rules.push(rule);
        return rules;
    }
    if !filters.is_empty() {
        rule.set("filters", std::mem::take(&mut filters));
    }
    if let Some(seconds) = annotations.value("proxy-read-timeout").and_then(|text| text.parse::<u64>().ok()) {
        rule.set("timeouts", Map::of("backendRequest", format!("{seconds}s")));
        rule.comment("proxy-read-timeout: `backendRequest` limits the whole response, not only its pauses");
    }
    let mut main = vec![reference(location.backend, &mut rule)];
    if let Some((number, backend)) = location.canary {
        let canary = canary::read(&sources[number].annotations);
        let to = reference(backend, &mut rule);
        for (conditions, goes) in &canary.conditions {
            let Some(Value::List(headers)) = conditions.get("headers") else {
                rule.comment("canary-by-cookie: Gateway API has no condition on cookies");
                continue;
            };
            let mut one = rule.clone();
            let headers: Vec<_> = headers.iter().filter_map(header).collect();
            one.set("matches", vec![Map::of("path", matched.clone()).with("headers", headers)]);
            let backends = vec![if *goes { to.clone() } else { main[0].clone() }];
            finish(&mut one, backends, guards);
            rules.push(one);
        }
        if let Some((weight, total)) = canary.weight {
            main[0].set("weight", total - weight);
            main.push(to.with("weight", weight));
        }
    }
    rule.set("matches", vec![Map::of("path", matched)]);
    finish(&mut rule, main, guards);
    rules.push(rule);
    rules
}

/// Adds the backends, unless something guards them.
fn finish(rule: &mut Map, backends: Vec<Map>, guards: &[&str]) {
    if guards.is_empty() {
        rule.set("backendRefs", backends);
        return;
    }
    rule.comment(format!(
        "CLOSED: {} cannot be expressed: attach a policy of the implementation, then add `backendRefs: {}`",
        guards.join(", "),
        Value::from(backends).flow()
    ));
}

fn reference(backend: &Backend, rule: &mut Map) -> Map {
    let reference = Map::of("name", &backend.service);
    match backend.port.parse::<u16>() {
        Ok(port) => reference.with("port", u64::from(port)),
        Err(_) => {
            rule.comment(format!("write the number of the port `{}` of `{}`", backend.port, backend.service));
            reference.with("port", "80")
        }
    }
}

fn exact(path: &str) -> Map {
    Map::of("type", "Exact").with("value", path)
}

fn full(path: &str) -> Map {
    Map::of("type", "ReplaceFullPath").with("replaceFullPath", path)
}

fn redirect_filter(to: Map) -> Map {
    Map::of("type", "RequestRedirect").with("requestRedirect", to)
}

fn header(condition: &Value) -> Option<Map> {
    let Value::Map(condition) = condition else { return None };
    let name = condition.get("name")?.clone();
    let made = |kind: &str, value: &Value| {
        Map::of("type", kind).with("name", name.clone()).with("value", value.clone())
    };
    match (condition.get("exact"), condition.get("regex")) {
        (Some(value), _) => Some(made("Exact", value)),
        (_, Some(value)) => Some(made("RegularExpression", value)),
        _ => None,
    }
}

/// Returns the match of a location's path.
fn path(site: &Site<'_>, location: &Location<'_>, sources: &[Source<'_, '_>], rule: &mut Map) -> Map {
    let annotations = &sources[location.source].annotations;
    if let Some(prefix) = prefix_of_groups(annotations, location) {
        return Map::of("type", "PathPrefix").with("value", prefix);
    }
    let is_plain = !location.path.contains(['(', '[', '*', '+', '?', '|', '\\', '^', '$', '.']);
    match location.kind {
        PathType::Exact if !selection::is_regex(site, sources) => exact(location.path),
        _ if is_plain => {
            if location.kind != PathType::Prefix && location.path != "/" {
                rule.comment("`PathPrefix` matches whole segments, ingress-nginx the beginning of the path");
            }
            if selection::is_regex(site, sources) {
                rule.comment("ingress-nginx compares this path without regard to case: `use-regex` applies to the host");
            }
            Map::of("type", "PathPrefix").with("value", location.path)
        }
        _ => {
            rule.comment("the syntax of expressions depends on the implementation");
            let value = format!("(?i){}.*", location.path);
            Map::of("type", "RegularExpression").with("value", value)
        }
    }
}

/// Returns the prefix of a path such as `/app(/|$)(.*)` whose `rewrite-target` is `/$2`: a prefix that is replaced.
fn prefix_of_groups<'l>(annotations: &Annotations<'_, '_>, location: &Location<'l>) -> Option<&'l str> {
    let prefix = location.path.strip_suffix("(/|$)(.*)")?;
    let is_plain = prefix.chars().all(|c| c.is_ascii_alphanumeric() || "/_-".contains(c));
    (is_plain && annotations.value("rewrite-target") == Some("/$2")).then_some(prefix)
}

/// Returns the redirect of a whole Ingress.
fn whole(annotations: &Annotations<'_, '_>, rule: &mut Map) -> Option<Map> {
    let (name, code_name, usual) = match annotations.value("temporal-redirect") {
        Some(_) => ("temporal-redirect", "temporal-redirect-code", "302"),
        None => ("permanent-redirect", "permanent-redirect-code", "301"),
    };
    let url = annotations.value(name)?;
    let mut to = Map::of("statusCode", annotations.value(code_name).unwrap_or(usual));
    let (scheme, rest) = url.split_once("://").unwrap_or(("$scheme", url));
    if scheme != "$scheme" {
        to.set("scheme", scheme);
    }
    let (host, path) = rest.split_at(rest.find(['/', '$']).unwrap_or(rest.len()));
    if !host.is_empty() {
        to.set("hostname", host);
    }
    match path {
        "$request_uri" => {}
        path if path.contains('$') => {
            rule.comment(format!("{name}: write the target of `{url}`, which has variables"));
        }
        path => to.set("path", full(if path.is_empty() { "/" } else { path })),
    }
    Some(redirect_filter(to))
}

fn filters(annotations: &Annotations<'_, '_>, location: &Location<'_>, rule: &mut Map) -> Vec<Map> {
    let mut filters = Vec::new();
    let mut rewrite = Map::new();
    if prefix_of_groups(annotations, location).is_some() {
        let prefix = Map::of("type", "ReplacePrefixMatch").with("replacePrefixMatch", "/");
        rewrite.set("path", prefix);
    } else if let Some(target) = annotations.value("rewrite-target") {
        match target.contains('$') {
            true => rule.comment(format!(
                "rewrite-target: Gateway API has no groups for `{target}`: this rule sends the path as it is"
            )),
            false => rewrite.set("path", full(target)),
        }
    }
    if let Some(host) = annotations.value("upstream-vhost").filter(|host| !host.contains('$')) {
        rewrite.set("hostname", host);
    }
    if !rewrite.is_empty() {
        filters.push(Map::of("type", "URLRewrite").with("urlRewrite", rewrite));
    }
    if let Some(prefix) = annotations.value("x-forwarded-prefix").filter(|text| !text.contains('$')) {
        let set = vec![Map::of("name", "X-Forwarded-Prefix").with("value", prefix)];
        filters.push(
            Map::of("type", "RequestHeaderModifier").with("requestHeaderModifier", Map::of("set", set)),
        );
    }
    if let Some(set) = custom_headers(annotations) {
        filters.push(
            Map::of("type", "ResponseHeaderModifier").with("responseHeaderModifier", Map::of("set", set)),
        );
    }
    if annotations.flag("enable-cors") == Some(true) {
        filters.push(Map::of("type", "CORS").with("cors", cors(annotations)));
    }
    if redirect::www(annotations, "example.com").is_some() {
        rule.comment("from-to-www-redirect: write an HTTPRoute of the other host with a redirect");
    }
    filters
}

fn custom_headers(annotations: &Annotations<'_, '_>) -> Option<Vec<Map>> {
    let name = annotations.value("custom-headers")?;
    let (namespace, name) = name.split_once('/').unwrap_or((&annotations.meta.namespace, name));
    let map = annotations.world.objects.config_map(namespace, name)?;
    let header = |(name, value): &(String, String)| Map::of("name", name).with("value", value);
    Some(map.data.iter().map(header).collect())
}

fn cors(annotations: &Annotations<'_, '_>) -> Map {
    let mut cors = Map::new();
    for (name, field, default) in [
        ("cors-allow-origin", "allowOrigins", "*"),
        ("cors-allow-methods", "allowMethods", "GET, PUT, POST, DELETE, PATCH, OPTIONS"),
        (
            "cors-allow-headers",
            "allowHeaders",
            "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization",
        ),
        ("cors-expose-headers", "exposeHeaders", ""),
    ] {
        let items: Vec<_> = list(annotations.value(name).unwrap_or(default)).collect();
        if !items.is_empty() {
            cors.set(field, items);
        }
    }
    cors.set("maxAge", annotations.value("cors-max-age").unwrap_or("1728000"));
    if annotations.flag("cors-allow-credentials").unwrap_or(true)
        && annotations.value("cors-allow-origin").is_some()
    {
        cors.set("allowCredentials", "true");
    }
    cors
}
