//! Headers of requests and responses, compression and caching of a location.

use super::{scope::Scope, statement::Statement, world::World};
use crate::values;
use crate::{draft::Route, yaml::Map};
use quadrille_draft::variables::{Context, header_value};

/// Headers that the gateway sets by itself, or that only concern nginx's connections to servers.
const OWN: [&str; 9] = [
    "upgrade",
    "connection",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-scheme",
    "te",
    "keep-alive",
    "transfer-encoding",
];

/// Sets the headers that servers receive. `host` is the `Host` that nginx sends by default.
pub(super) fn of_request(
    route: &mut Route,
    scope: &Scope<'_>,
    host: &str,
    context: &Context,
    world: &World<'_>,
) {
    let context = Context { proxy_host: Some(host.to_owned()), ..context.clone() };
    let mut upstream_host = Some(host.to_owned());
    let copied = scope.all("auth_request_set");
    for one in scope.all("proxy_set_header") {
        let name = one.arg(0).to_ascii_lowercase();
        if name == "host" {
            upstream_host = self::upstream_host(one, &context, world);
            continue;
        }
        if copied.iter().any(|set| set.arg(0) == one.arg(1)) {
            continue;
        }
        if name == "x-request-id" && one.arg(1) == "$request_id" {
            world.draft.borrow_mut().top.set("request_ids", "on");
            world.ledger.converted(one.id);
            continue;
        }
        if OWN.contains(&name.as_str()) {
            own(one, &name, &context, route, world);
            continue;
        }
        change(one, one.arg(0), one.arg(1), "set", &context, world, |map| {
            route.keys.push("request_headers", map);
        });
    }
    if let Some(host) = upstream_host {
        let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
        let is_usable = quadrille_config::values::host(name).is_ok();
        route.keys.set("upstream_host", if is_usable { host } else { "server".to_owned() });
    }
}

/// Returns the host that servers receive; `None` for that of the request.
fn upstream_host(one: &Statement, context: &Context, world: &World<'_>) -> Option<String> {
    let value = one.arg(1);
    match value {
        "$host" | "$http_host" | "$host:$server_port" | "$host:$proxy_port" => {
            world.ledger.converted(one.id);
            None
        }
        _ => match header_value(value, context) {
            Ok(host) if !host.contains('{') && !host.is_empty() => {
                world.ledger.converted(one.id);
                Some(host)
            }
            _ => {
                world.ledger.refused(one.id, "write a fixed host under `upstream_host`");
                None
            }
        },
    }
}

/// Handles a header that the gateway sets by itself.
fn own(one: &Statement, name: &str, context: &Context, route: &mut Route, world: &World<'_>) {
    let value = one.arg(1);
    match (name, value) {
        ("x-forwarded-for", "$proxy_add_x_forwarded_for") => world
            .ledger
            .differs(one.id, "`X-Forwarded-For` of clients is replaced, unless they are `trusted_proxies`"),
        ("x-forwarded-for", "$remote_addr" | "$realip_remote_addr")
        | ("x-forwarded-proto" | "x-forwarded-scheme", "$scheme")
        | ("x-forwarded-host", "$host" | "$http_host")
        | ("upgrade" | "connection" | "te" | "keep-alive" | "transfer-encoding", _) => {
            world.ledger.converted(one.id);
        }
        _ => change(one, one.arg(0), value, "set", context, world, |map| {
            route.keys.push("request_headers", map);
        }),
    }
    if (name, value) == ("x-forwarded-scheme", "$scheme") {
        route.keys.push("request_headers", Map::of("set", one.arg(0)).with("value", "{scheme}"));
    }
}

/// Adds one change of a header.
fn change(
    one: &Statement,
    name: &str,
    value: &str,
    kind: &str,
    context: &Context,
    world: &World<'_>,
    add: impl FnOnce(Map),
) {
    if !values::is_changeable(name) {
        return world.ledger.refused(one.id, format!("`{name}` is not a header that can be changed"));
    }
    if value.is_empty() {
        world.ledger.converted(one.id);
        // nginx sends no header with an empty value, and adds none to responses.
        if kind == "set" {
            add(Map::of("remove", name));
        }
        return;
    }
    match header_value(value, context) {
        Ok(value) => {
            add(Map::of(kind, name).with("value", value));
            world.ledger.converted(one.id);
        }
        Err(problem) => world.ledger.refused(one.id, format!("{problem}: write another value of the header")),
    }
}

/// Sets the headers of responses.
pub(super) fn of_response(route: &mut Route, scope: &Scope<'_>, context: &Context, world: &World<'_>) {
    for one in scope.all("proxy_hide_header") {
        if values::is_changeable(one.arg(0)) {
            route.keys.push("response_headers", Map::of("remove", one.arg(0)));
        }
        world.ledger.converted(one.id);
    }
    for one in scope.all("add_header") {
        if one.arg(0).eq_ignore_ascii_case("alt-svc") {
            world.ledger.converted(one.id);
            continue;
        }
        change(one, one.arg(0), one.arg(1), "append", context, world, |map| {
            route.keys.push("response_headers", map);
        });
        if !one.has("always") && !one.arg(1).is_empty() {
            world.ledger.differs(one.id, "the header is in responses with any status");
        }
    }
    for one in scope.all("more_set_headers") {
        for arg in one.args.iter().filter(|arg| !arg.starts_with('-')) {
            let (name, value) = arg.split_once(':').unwrap_or((arg, ""));
            let (name, value) = (name.trim(), value.trim());
            change(one, name, value, "set", context, world, |map| route.keys.push("response_headers", map));
        }
    }
    for one in scope.all("more_clear_headers") {
        for name in one.args.iter().filter(|name| values::is_changeable(name)) {
            route.keys.push("response_headers", Map::of("remove", name));
        }
        world.ledger.converted(one.id);
    }
    expires(route, scope, world);
}

fn expires(route: &mut Route, scope: &Scope<'_>, world: &World<'_>) {
    let Some(one) = scope.one("expires") else { return };
    let value = match one.arg(0) {
        "off" => return world.ledger.converted(one.id),
        "max" => "max-age=315360000".to_owned(),
        "epoch" => "no-cache".to_owned(),
        time if time.starts_with('-') => "no-cache".to_owned(),
        time => match values::milliseconds(time) {
            Some(milliseconds) => format!("max-age={}", milliseconds / 1000),
            None => return world.ledger.refused(one.id, "set `Cache-Control` under `response_headers`"),
        },
    };
    route.keys.push("response_headers", Map::of("set", "Cache-Control").with("value", value));
    world
        .ledger
        .differs(one.id, "`Cache-Control` is in responses with any status, and `Expires` is not sent");
}

/// Sets the compression of responses.
pub(super) fn compression(route: &mut Route, scope: &Scope<'_>, world: &World<'_>) {
    let mut algorithms = Vec::new();
    let (mut types, mut minimum) = (vec!["text/html".to_owned()], None);
    for (name, algorithm) in [("brotli", "br"), ("gzip", "gzip")] {
        for suffix in ["", "_types", "_min_length"] {
            scope.all(&format!("{name}{suffix}")).iter().for_each(|one| world.ledger.converted(one.id));
        }
        if !scope.one(name).is_some_and(Statement::is_on) {
            continue;
        }
        algorithms.push(algorithm);
        if let Some(one) = scope.one(&format!("{name}_types")) {
            types.extend(one.args.iter().filter(|one| *one != "*").cloned());
        }
        if let Some(one) = scope.one(&format!("{name}_min_length")) {
            minimum = values::bytes(one.arg(0)).map(values::size);
        }
    }
    if algorithms.is_empty() {
        return;
    }
    types.sort();
    types.dedup();
    types
        .retain(|one| one.split_once('/').is_some_and(|(group, kind)| !group.is_empty() && !kind.is_empty()));
    let mut compression = Map::of("algorithms", algorithms).with("types", types);
    if let Some(minimum) = minimum {
        compression.set("minimum", minimum);
    }
    route.keys.set("compression", compression);
}
