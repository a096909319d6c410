//! Upstreams: `upstream` blocks and the servers of `proxy_pass`, with the settings that nginx has in locations.

use super::{scope::Scope, statement::Statement, tls, world::World};
use crate::values;
use crate::yaml::Map;
use quadrille_draft::variables::Context;

/// The servers of a `proxy_pass`.
#[derive(Debug)]
pub(super) struct Destination {
    /// Name of the upstream.
    pub(super) upstream: String,
    /// The path that replaces the location's, if one is given.
    pub(super) uri: Option<String>,
    /// `Host` that servers receive by default.
    pub(super) host: String,
    /// Value of `sticky` of the route.
    pub(super) sticky: Option<Map>,
}

/// Converts `proxy_pass` or `grpc_pass`.
///
/// # Errors
/// With the reason, if its servers are not known.
pub(super) fn destination(
    pass: &Statement,
    scope: &Scope<'_>,
    context: &Context,
    world: &World<'_>,
) -> Result<Destination, String> {
    let text = pass.arg(0);
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    // The path of the request, which servers receive anyway.
    let rest = rest.strip_suffix("$request_uri").unwrap_or(rest);
    let (tls, http2) = match scheme {
        "http" => (false, false),
        "https" => (true, false),
        "grpc" => (false, true),
        "grpcs" => (true, true),
        "$scheme" => (context.tls, false),
        _ => return Err(format!("`{text}` is not a URL of HTTP")),
    };
    let (authority, uri) = match rest.strip_prefix("unix:") {
        Some(socket) => match socket.split_once(':') {
            Some((path, uri)) => (format!("unix:{path}"), uri),
            None => (format!("unix:{socket}"), ""),
        },
        None => {
            let end = rest.find('/').unwrap_or(rest.len());
            (rest[..end].to_owned(), &rest[end..])
        }
    };
    if authority.contains('$') {
        return Err("servers that a variable chooses are not known: write a route for each".to_owned());
    }
    if uri.contains(['$', '?']) {
        return Err(format!("the path `{uri}` has a variable or a query"));
    }
    let block = world.upstreams.get(authority.as_str()).copied();
    let port = if tls { 443 } else { 80 };
    let (mut upstream, sticky) = match block {
        Some(block) => servers(block, port, world)?,
        None => {
            let address = values::server_address(&authority, port)
                .ok_or_else(|| format!("`{authority}` is not the address of a server"))?;
            (Map::of("servers", vec![address]), None)
        }
    };
    if http2 {
        upstream.set("protocol", "http2");
    }
    if tls {
        upstream.set("tls", tls::of_upstream(&authority, scope, world));
    }
    timeouts(scope, world, &mut upstream);
    let name = if block.is_some() { authority.clone() } else { authority.replace(['/', ':', '[', ']'], "-") };
    let upstream = world.draft.borrow_mut().upstream(&name, upstream);
    let default = format!(":{port}");
    let host = authority.strip_suffix(&default).unwrap_or(&authority);
    let host = if host.starts_with("unix:") { "localhost" } else { host };
    let uri = (!uri.is_empty()).then(|| uri.to_owned());
    Ok(Destination { upstream, uri, host: host.to_owned(), sticky })
}

/// Converts an `upstream` block; the second value is that of `sticky` of the routes.
pub(super) fn servers(block: &Statement, port: u16, world: &World<'_>) -> Result<(Map, Option<Map>), String> {
    let ledger = world.ledger;
    ledger.converted(block.id);
    let (mut upstream, mut sticky, mut servers) = (Map::new(), None, Vec::new());
    for one in block.statements() {
        match one.name.as_str() {
            "server" => server(one, port, world, &mut servers, &mut upstream),
            "least_conn" | "least_time" => {
                upstream.set("balance", "least_request");
                ledger.converted(one.id);
            }
            "random" => {
                upstream.set("balance", if one.has("two") { "least_request" } else { "random" });
                ledger.converted(one.id);
            }
            "ip_hash" => {
                upstream.set("balance", "client_ip");
                ledger.converted(one.id);
            }
            "hash" => hash(one, world, &mut upstream, &mut sticky),
            "sticky" => stick(one, world, &mut upstream, &mut sticky),
            "keepalive" => match one.arg(0).parse::<u64>() {
                Ok(count) if count > 0 => {
                    upstream.set("pool", count);
                    ledger.converted(one.id);
                }
                _ => ledger.refused(one.id, "connections to servers are kept open: see `pool`"),
            },
            "keepalive_timeout" => {
                if let Some(time) = values::duration(one.arg(0)) {
                    upstream.inner("timeouts").set("idle", time);
                }
                ledger.converted(one.id);
            }
            "keepalive_requests" | "keepalive_time" | "zone" | "resolver" | "resolver_timeout" => {
                ledger.converted(one.id);
            }
            "queue" => match one.arg(0).parse::<u64>() {
                Ok(count) => {
                    upstream.inner("limits").set("pending", count);
                    ledger.converted(one.id);
                }
                Err(_) => ledger.refused(one.id, "write `limits: { pending: ... }` of the upstream"),
            },
            _ => ledger.refused(one.id, "see the keys of upstreams in the reference"),
        }
    }
    if servers.is_empty() {
        return Err(format!("the upstream `{}` has no server that can be used", block.arg(0)));
    }
    let has_backups = block.statements().iter().any(|one| one.name == "server" && one.has("backup"));
    if has_backups && upstream.get("outlier_detection").is_none() {
        // nginx's defaults of `max_fails` and `fail_timeout`.
        passive_check(&mut upstream, 1, "10s");
    }
    let mut all = Map::of("servers", servers);
    all.extend(upstream);
    Ok((all, sticky))
}

fn server(
    one: &Statement,
    port: u16,
    world: &World<'_>,
    servers: &mut Vec<crate::yaml::Value>,
    upstream: &mut Map,
) {
    let ledger = world.ledger;
    if one.has("down") {
        return ledger.converted(one.id);
    }
    let Some(address) = values::server_address(one.arg(0), port) else {
        return ledger.refused(one.id, "write the server as `host:port` or `unix:/path`");
    };
    ledger.converted(one.id);
    let mut server = Map::new();
    if let Some(weight) = number_above(one, "weight", 1) {
        server.set("weight", weight);
    }
    if let Some(most) = number_above(one, "max_conns", 0) {
        server.set("max_connections", most);
        ledger.differs(
            one.id,
            "while all servers have `max_conns` requests, others wait (`limits.pending_timeout`)",
        );
    }
    if one.has("backup") {
        server.set("priority", 1u64);
    }
    if server.is_empty() {
        servers.push(address.into());
    } else {
        let mut all = Map::of("address", address);
        all.extend(server);
        servers.push(all.into());
    }
    let fails = one.option("max_fails").and_then(|fails| fails.parse::<u64>().ok());
    let time = one.option("fail_timeout").and_then(values::duration);
    if fails.is_some_and(|fails| fails > 0) || time.is_some() {
        let time = time.unwrap_or_else(|| "10s".to_owned());
        passive_check(upstream, fails.unwrap_or(1).max(1), &time);
    }
    if let Some(time) = one.option("slow_start").and_then(values::duration) {
        upstream.set("slow_start", time);
    }
}

/// Takes a server out of service after so many failed requests in a row, as `max_fails` and `fail_timeout` do.
fn passive_check(upstream: &mut Map, fails: u64, time: &str) {
    let outliers = upstream.inner("outlier_detection");
    outliers.set("errors", "off");
    outliers.set("gateway_errors", fails);
    outliers.set("ejection", time);
}

/// Returns a number of a server above the given one, which is the default.
fn number_above(one: &Statement, name: &str, default: u64) -> Option<u64> {
    one.option(name)?.parse().ok().filter(|number| *number > default)
}

fn hash(one: &Statement, world: &World<'_>, upstream: &mut Map, sticky: &mut Option<Map>) {
    let key = one.arg(0).trim_start_matches('$');
    let by = |kind: &str, name: String| Map::of(kind, name);
    let found = if let "remote_addr" | "binary_remote_addr" = key {
        upstream.set("balance", "client_ip");
        return world.ledger.converted(one.id);
    } else if let Some(name) = key.strip_prefix("http_") {
        by("header", name.replace('_', "-"))
    } else if let Some(name) = key.strip_prefix("cookie_") {
        by("cookie", name.to_owned())
    } else if let Some(name) = key.strip_prefix("arg_") {
        by("query", name.to_owned())
    } else {
        return world
            .ledger
            .refused(one.id, "hash by a cookie, a header, a parameter or the client: see `sticky`");
    };
    upstream.set("balance", "hash");
    *sticky = Some(found);
    world.ledger.converted(one.id);
}

fn stick(one: &Statement, world: &World<'_>, upstream: &mut Map, sticky: &mut Option<Map>) {
    if one.arg(0) != "cookie" || quadrille_config::values::header_name(one.arg(1)).is_err() {
        return world
            .ledger
            .refused(one.id, "use `balance: hash` with `sticky: [{ cookie: NAME, lifetime: 1h }]`");
    }
    let lifetime = one.option("expires").and_then(values::duration).unwrap_or_else(|| "0s".to_owned());
    upstream.set("balance", "hash");
    *sticky = Some(Map::of("cookie", one.arg(1)).with("lifetime", lifetime));
    match one.option("domain") {
        Some(_) => world.ledger.differs(one.id, "the cookie has no `Domain`"),
        None => world.ledger.converted(one.id),
    }
}

/// Timeouts of the location, which Quadrille has in the upstream.
fn timeouts(scope: &Scope<'_>, world: &World<'_>, upstream: &mut Map) {
    for (name, key) in [
        ("proxy_connect_timeout", "connect"),
        ("proxy_read_timeout", "read"),
        ("proxy_send_timeout", "write"),
    ] {
        let Some(one) = scope.one(name) else { continue };
        match values::duration(one.arg(0)) {
            Some(time) => {
                upstream.inner("timeouts").set(key, time);
                world.ledger.converted(one.id);
            }
            None => {
                world.ledger.refused(one.id, "write a time other than zero under `timeouts` of the upstream");
            }
        }
    }
    let off = scope.one("proxy_next_upstream").filter(|one| one.has("off"));
    if let Some(one) = off {
        upstream.set("retries", "0");
        world.ledger.converted(one.id);
    }
}
