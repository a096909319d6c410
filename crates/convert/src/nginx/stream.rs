//! The servers of `stream`: TCP connections, and TLS that passes through.

use super::{access, listen, scope::Scope, statement::Statement, tls, upstream, world::World};
use crate::values;
use crate::{
    draft::Listener,
    yaml::{Map, Value},
};

/// Converts all servers of a block `stream`.
pub(super) fn convert(block: &[Statement], world: &World<'_>) {
    let outer = Scope::default().within(block);
    for definition in world.definitions.values().chain(world.upstreams.values()) {
        world.ledger.converted(definition.id);
    }
    for one in block.iter().filter(|one| one.name == "server") {
        let scope = outer.within(one.statements());
        match server(&scope, world) {
            Ok(listeners) => {
                world.ledger.converted(one.id);
                world.draft.borrow_mut().listeners.extend(listeners);
            }
            Err(problem) => world.refuse_all(one, &format!("{problem}: write a listener with `mode: tcp`")),
        }
        super::process::access_log(&scope, world);
    }
    world.sort_out(block.iter());
}

fn server(scope: &Scope<'_>, world: &World<'_>) -> Result<Vec<Listener>, String> {
    let pass = scope.own().iter().find(|one| one.name == "proxy_pass").ok_or("it has no `proxy_pass`")?;
    let listens = listen::listens(scope.own(), world);
    if listens.is_empty() {
        return Err("no TCP address that can be used".to_owned());
    }
    let guard = world.sort_out(scope.everything());
    if let Some((guard, remedy)) = guard {
        return Err(format!("{}: {remedy}", world.ledger.shown(guard.id)));
    }
    let targets = targets(pass, scope, world)?;
    let clients = access::networks(&scope.any(&["allow", "deny"]), world).ok_or("no client is allowed")?;
    let mut listeners = Vec::new();
    // IPv4 and IPv6 of one port are one listener.
    let mut seen = Vec::new();
    for listen in &listens {
        if seen.contains(&(listen.ip, listen.port)) {
            continue;
        }
        seen.push((listen.ip, listen.port));
        let ipv6 = listens.iter().any(|other| other.port == listen.port && other.ipv6);
        let host = match listen.ip {
            Some(std::net::IpAddr::V6(ip)) => format!("[{ip}]"),
            Some(ip) => ip.to_string(),
            None if ipv6 => "[::]".to_owned(),
            None => "0.0.0.0".to_owned(),
        };
        for (names, upstream) in &targets {
            let mut keys = Map::new();
            if !names.is_empty() {
                keys.set("match", Map::of("server_names", names.clone()).with("transport", "tls"));
            }
            keys.set("mode", "tcp");
            if listen.tls {
                let settings = tls::of_server(scope, world);
                if settings.certificates.is_empty() || settings.closed.is_some() {
                    return Err("its certificates or those of its clients cannot be used".to_owned());
                }
                keys.set("certificates", settings.certificates);
                if !settings.settings.is_empty() {
                    keys.set("tls", settings.settings);
                }
            } else {
                keys.set("tls", "off");
            }
            if listen.proxy_protocol {
                keys.set("proxy_protocol", "required");
            }
            if !clients.is_empty() {
                keys.set("clients", clients.clone());
            }
            if let Some(one) = scope.one("proxy_timeout") {
                world.ledger.converted(one.id);
                if let Some(time) = values::duration(one.arg(0)) {
                    keys.set("timeouts", Map::of("idle", time));
                }
            }
            keys.set("upstream", upstream);
            let address = format!("{host}:{}", listen.port);
            listeners.push(Listener { address, keys, ..Listener::default() });
        }
    }
    scope.all("ssl_preread").iter().for_each(|one| world.ledger.converted(one.id));
    Ok(listeners)
}

/// Returns the upstreams of a server, each with the SNI that selects it; empty for all others.
fn targets(
    pass: &Statement,
    scope: &Scope<'_>,
    world: &World<'_>,
) -> Result<Vec<(Vec<String>, String)>, String> {
    let text = pass.arg(0);
    let Some(variable) = text.strip_prefix('$') else {
        let upstream = destination(text, pass, scope, world)?;
        return Ok(vec![(Vec::new(), upstream)]);
    };
    let definition =
        world.definitions.get(variable).ok_or_else(|| format!("`{text}` is not defined by `map`"))?;
    if definition.arg(0) != "$ssl_preread_server_name" {
        return Err(format!("`{text}` does not depend on the SNI alone"));
    }
    let mut targets: Vec<(Vec<String>, String)> = Vec::new();
    for entry in definition.statements() {
        let names = match entry.name.as_str() {
            "default" => Vec::new(),
            "hostnames" => {
                world.ledger.converted(entry.id);
                continue;
            }
            name => match name.strip_prefix('.') {
                Some(domain) => vec![domain.to_owned(), format!("*.{domain}")],
                None => vec![name.to_owned()],
            },
        };
        if names.iter().any(|name| quadrille_config::values::route_host(name).is_err()) {
            world.ledger.refused(entry.id, "list the names under `match: { server_names: ... }`");
            continue;
        }
        let upstream = destination(entry.arg(0), pass, scope, world)?;
        world.ledger.converted(entry.id);
        match targets
            .iter_mut()
            .find(|(known, name)| *name == upstream && known.is_empty() == names.is_empty())
        {
            Some((known, _)) => known.extend(names),
            None => targets.push((names, upstream)),
        }
    }
    Ok(targets)
}

fn destination(text: &str, pass: &Statement, scope: &Scope<'_>, world: &World<'_>) -> Result<String, String> {
    let mut upstream = match world.upstreams.get(text) {
        Some(block) => upstream::servers(block, 0, world)?.0,
        None => {
            let address =
                values::server_address(text, 0).ok_or_else(|| format!("`{text}` is not `host:port`"))?;
            Map::of("servers", vec![address])
        }
    };
    if scope.one("proxy_ssl").is_some_and(Statement::is_on) {
        upstream.set("tls", tls::of_upstream(text, scope, world));
    }
    scope.all("proxy_ssl").iter().for_each(|one| world.ledger.converted(one.id));
    for one in scope.all("proxy_protocol") {
        if one.is_on() {
            upstream.set("proxy_protocol", "v1");
        }
        world.ledger.converted(one.id);
    }
    if let Some(one) = scope.one("proxy_connect_timeout") {
        if let Some(time) = values::duration(one.arg(0)) {
            upstream.inner("timeouts").set("connect", time);
        }
        world.ledger.converted(one.id);
    }
    // Affinity by requests does not exist in a stream of bytes.
    if upstream.get("balance") == Some(&Value::from("hash")) {
        upstream.remove("balance");
    }
    world.ledger.converted(pass.id);
    let name = if world.upstreams.contains_key(text) {
        text.to_owned()
    } else {
        text.replace(['/', ':', '[', ']'], "-")
    };
    Ok(world.draft.borrow_mut().upstream(&name, upstream))
}
