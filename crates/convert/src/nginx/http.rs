//! The servers of `http`, as listeners.

use super::{
    listen::{self, Listen, Names},
    process,
    scope::Scope,
    server::{self, Server},
    statement::Statement,
    tls::{self, ServerTls},
    world::World,
};
use crate::values;
use crate::{
    draft::{Listener, Route},
    yaml::{Map, Value},
};
use quadrille_draft::variables::Context;
use std::net::IpAddr;

/// A server with its addresses and its TLS settings.
struct Host<'a> {
    scope: Scope<'a>,
    listens: Vec<Listen>,
    names: Names,
    tls: ServerTls,
}

/// Servers that share an address.
struct Group<'h, 'a> {
    ip: Option<IpAddr>,
    port: u16,
    members: Vec<(&'h Host<'a>, Listen)>,
}

/// Converts all servers of a block `http`.
pub(super) fn convert(block: &[Statement], world: &World<'_>) {
    let outer = Scope::default().within(block);
    let hosts: Vec<_> = block
        .iter()
        .filter(|one| one.name == "server")
        .map(|one| {
            world.ledger.converted(one.id);
            let scope = outer.within(one.statements());
            Host {
                listens: listen::listens(one.statements(), world),
                names: listen::names(one.statements(), world),
                tls: tls::of_server(&scope, world),
                scope,
            }
        })
        .collect();
    for definition in world.definitions.values().chain(world.upstreams.values()) {
        world.ledger.converted(definition.id);
        if definition.name != "upstream" {
            world.convert_all(definition);
        }
    }
    world.zones.values().for_each(|zone| world.ledger.converted(zone.id));
    for zone in block.iter().filter(|one| one.name == "limit_conn_zone") {
        world.ledger.converted(zone.id);
    }
    world.sort_out(block.iter());
    for host in &hosts {
        process::access_log(&host.scope, world);
        process::resolver(&host.scope, world);
        tls::resumption(&host.scope, world);
    }
    let mut listeners = Vec::new();
    for group in groups(&hosts) {
        listeners.extend(group.listeners(world));
    }
    avoid_admin_port(&listeners, world);
    world.draft.borrow_mut().listeners.extend(listeners);
}

/// The admin pages use port 9901 of loopback, unless a listener needs it.
fn avoid_admin_port(listeners: &[Listener], world: &World<'_>) {
    if listeners.iter().any(|listener| listener.address.ends_with(":9901")) {
        world.draft.borrow_mut().top.set("admin", "127.0.0.1:9902");
    }
}

fn groups<'h, 'a>(hosts: &'h [Host<'a>]) -> Vec<Group<'h, 'a>> {
    let mut groups: Vec<Group<'h, 'a>> = Vec::new();
    for host in hosts {
        for listen in &host.listens {
            let known = groups.iter_mut().find(|group| (group.ip, group.port) == (listen.ip, listen.port));
            let group = match known {
                Some(group) => group,
                None => {
                    groups.push(Group { ip: listen.ip, port: listen.port, members: Vec::new() });
                    let last = groups.len() - 1;
                    &mut groups[last]
                }
            };
            match group.members.iter_mut().find(|(known, _)| std::ptr::eq(*known, host)) {
                // IPv4 and IPv6, or TCP and UDP, of one server.
                Some((_, known)) => {
                    known.ipv6 |= listen.ipv6;
                    known.quic |= listen.quic;
                    known.tls |= listen.tls;
                    known.is_default |= listen.is_default;
                }
                None => group.members.push((host, listen.clone())),
            }
        }
    }
    groups
}

impl<'a> Group<'_, 'a> {
    fn listeners(&self, world: &World<'_>) -> Vec<Listener> {
        let tls = self.members.iter().any(|(_, listen)| listen.tls);
        let default = self.members.iter().position(|(_, listen)| listen.is_default).unwrap_or_default();
        // The default server is first, so that its certificate serves clients without SNI.
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        order.sort_by_key(|index| *index != default);
        let rejects = tls && self.rejects(default, world);
        let mut parts: Vec<(Map, Vec<usize>)> = Vec::new();
        for index in order.into_iter().filter(|index| !(rejects && *index == default)) {
            let settings = if tls { self.members[index].0.tls.settings.clone() } else { Map::new() };
            match parts.iter_mut().find(|(known, _)| *known == settings) {
                Some((_, members)) => members.push(index),
                None => parts.push((settings, vec![index])),
            }
        }
        let shares = parts.len() > 1 || rejects;
        let parts = parts.into_iter();
        parts
            .filter_map(|(settings, members)| self.listener(tls, settings, &members, default, shares, world))
            .collect()
    }

    /// Returns whether clients without a known SNI are rejected in the handshake.
    fn rejects(&self, default: usize, world: &World<'_>) -> bool {
        let one = self.members[default].0.scope.one("ssl_reject_handshake");
        one.iter().for_each(|one| world.ledger.converted(one.id));
        let rejects = one.is_some_and(Statement::is_on);
        if rejects {
            let own = self.members[default].0.scope.own();
            own.iter()
                .filter(|one| ["return", "location"].contains(&one.name.as_str()))
                .for_each(|one| world.convert_all(one));
            world.sort_out(own.iter());
        }
        rejects
    }

    /// Returns the listener of the members with these TLS settings.
    fn listener(
        &self,
        tls: bool,
        settings: Map,
        members: &[usize],
        default: usize,
        shares: bool,
        world: &World<'_>,
    ) -> Option<Listener> {
        let mut listener = Listener { address: self.address(), ..Listener::default() };
        let hosts: Vec<_> =
            members.iter().flat_map(|index| self.members[*index].0.names.hosts.clone()).collect();
        let has_default = members.contains(&default);
        if shares && !has_default {
            if hosts.is_empty() {
                return None;
            }
            listener.keys.set("match", Map::of("server_names", without_repetitions(&hosts)));
        }
        let certificates = if tls { self.certificates(members) } else { Vec::new() };
        if tls && certificates.is_empty() {
            self.refuse(members, world);
            return None;
        }
        let max = settings.get("max").cloned();
        match tls {
            true => {
                listener.keys.set("certificates", certificates);
                if !settings.is_empty() {
                    listener.keys.set("tls", settings.clone());
                }
            }
            false => listener.keys.set("tls", "off"),
        }
        if self.members.iter().any(|(_, listen)| listen.quic) && max.is_none() {
            listener.keys.set("http3", "on");
        }
        let first = &self.members[default].0.scope;
        self.connections(&mut listener, first, members, world);
        let requests_certificates = settings.get("client_auth").is_some();
        for index in members {
            let (host, _) = &self.members[*index];
            let is_default = *index == default;
            if !is_default && host.names.hosts.is_empty() && host.names.others.is_empty() {
                world.sort_out(host.scope.own().iter());
                continue;
            }
            let others = self.members.iter().enumerate().filter(|(other, _)| other != index);
            let others: Vec<_> = others.flat_map(|(_, (host, _))| host.names.hosts.clone()).collect();
            let server = Server {
                scope: host.scope.clone(),
                names: host.names.clone(),
                is_default,
                others: without_repetitions(&others),
                closed: host.tls.closed.clone(),
            };
            let plain = host.names.hosts.iter().find(|name| !name.starts_with('*'));
            let context = Context {
                tls,
                port: self.port,
                server_name: plain.cloned(),
                requests_certificates,
                ..Context::default()
            };
            let (rules, routes) = server::convert(&server, &context, world);
            listener.rules.extend(rules);
            // A server whose names no route can have is closed by its rules.
            if is_default || !host.names.hosts.is_empty() {
                listener.routes.extend(routes);
            }
        }
        simplify(&mut listener);
        Some(listener)
    }

    fn address(&self) -> String {
        match self.ip {
            Some(IpAddr::V6(ip)) => format!("[{ip}]:{}", self.port),
            Some(IpAddr::V4(ip)) => format!("{ip}:{}", self.port),
            None if self.members.iter().any(|(_, listen)| listen.ipv6) => format!("[::]:{}", self.port),
            None => format!("0.0.0.0:{}", self.port),
        }
    }

    fn certificates(&self, members: &[usize]) -> Vec<Map> {
        let mut certificates: Vec<Map> = Vec::new();
        for index in members {
            for certificate in &self.members[*index].0.tls.certificates {
                if !certificates.contains(certificate) {
                    certificates.push(certificate.clone());
                }
            }
        }
        certificates
    }

    /// Notes that servers with TLS have no certificate.
    fn refuse(&self, members: &[usize], world: &World<'_>) {
        for index in members {
            let listens = self.members[*index].0.scope.own().iter().filter(|one| one.name == "listen");
            listens.for_each(|one| {
                world.ledger.refused(one.id, "add a certificate: `certificates: [{ chain: ..., key: ... }]`");
            });
        }
    }

    /// Sets what concerns connections: timeouts, limits, and proxies in front.
    fn connections(&self, listener: &mut Listener, scope: &Scope<'_>, members: &[usize], world: &World<'_>) {
        let keys = &mut listener.keys;
        if self.members.iter().any(|(_, listen)| listen.proxy_protocol) {
            keys.set("proxy_protocol", "required");
        }
        let proxies = scope.all("set_real_ip_from");
        let networks: Vec<_> = proxies.iter().map(|one| one.arg(0)).filter(|text| is_network(text)).collect();
        for one in &proxies {
            match is_network(one.arg(0)) {
                true => world.ledger.converted(one.id),
                false => world.ledger.refused(one.id, "write the network under `trusted_proxies`"),
            }
        }
        if !networks.is_empty() {
            keys.set("trusted_proxies", networks);
        }
        if let Some(one) = scope.one("real_ip_header") {
            match one.arg(0).to_ascii_lowercase().as_str() {
                "x-forwarded-for" | "proxy_protocol" => world.ledger.converted(one.id),
                _ => world.ledger.differs(
                    one.id,
                    "the client's address is read from `X-Forwarded-For`: proxies must send it",
                ),
            }
        }
        timeouts(keys, scope, world);
        if let Some(one) = members.iter().find_map(|index| longest_read(&self.members[*index].0.scope)) {
            // Connections of WebSockets are closed after this time.
            let current = scope.one("keepalive_timeout").and_then(|one| values::milliseconds(one.arg(0)));
            if one > current.unwrap_or(75_000)
                && let Some(time) = values::shown(one)
            {
                keys.inner("timeouts").set("idle", time);
            }
        }
        limits(keys, scope, world);
        if let Some(one) = scope.one("merge_slashes") {
            if !one.is_on() {
                keys.set("paths", Map::of("merge_slashes", "off"));
            }
            world.ledger.converted(one.id);
        }
    }
}

fn is_network(text: &str) -> bool {
    let address = text.split('/').next().unwrap_or_default();
    address.parse::<IpAddr>().is_ok()
}

/// Returns the longest `proxy_read_timeout` of locations that forward upgrades, in milliseconds.
fn longest_read(scope: &Scope<'_>) -> Option<u64> {
    let upgrades = |block: &[Statement]| {
        block.iter().any(|one| one.name == "proxy_set_header" && one.arg(0).eq_ignore_ascii_case("upgrade"))
    };
    let of_location = |one: &Statement| {
        let own = scope.own();
        let is_upgrade = upgrades(one.statements()) || upgrades(own);
        let timeout = one.statements().iter().chain(own).find(|one| one.name == "proxy_read_timeout")?;
        is_upgrade.then(|| values::milliseconds(timeout.arg(0)))?
    };
    scope.own().iter().filter(|one| one.name == "location").filter_map(of_location).max()
}

fn timeouts(keys: &mut Map, scope: &Scope<'_>, world: &World<'_>) {
    for (name, key) in [("client_header_timeout", "header"), ("keepalive_timeout", "idle")] {
        let Some(one) = scope.one(name) else { continue };
        match values::duration(one.arg(0)) {
            Some(time) => {
                keys.inner("timeouts").set(key, time);
                world.ledger.converted(one.id);
            }
            None => world
                .ledger
                .differs(one.id, "connections stay open between requests, for `timeouts: { idle }`"),
        }
    }
    for name in ["client_body_timeout", "send_timeout"] {
        for one in scope.all(name) {
            world
                .ledger
                .differs(one.id, "`timeouts: { idle }` of the listener limits the pauses of a client");
        }
    }
}

fn limits(keys: &mut Map, scope: &Scope<'_>, world: &World<'_>) {
    let limit = scope.one("client_max_body_size").and_then(|one| values::bytes(one.arg(0)));
    let body = match limit {
        None => "1MiB".to_owned(),
        Some(0) => "off".to_owned(),
        Some(limit) => values::size(limit),
    };
    keys.inner("limits").set("body", body);
    let Some(one) = scope.one("large_client_header_buffers") else { return };
    let (count, size) = (one.arg(0).parse::<u64>().ok(), values::bytes(one.arg(1)));
    if let (Some(count), Some(size)) = (count, size) {
        let header = (count * size).clamp(4 << 10, 8 << 20);
        keys.inner("limits").set("header", values::size(header));
        if size < header {
            keys.inner("limits").set("url", values::size(size.max(256)));
        }
        world.ledger.converted(one.id);
    }
}

fn without_repetitions(texts: &[String]) -> Vec<String> {
    let mut seen = Vec::new();
    for text in texts {
        if !seen.contains(text) {
            seen.push(text.clone());
        }
    }
    seen
}

/// Moves what all routes have in common to the listener.
fn simplify(listener: &mut Listener) {
    let body = match listener.keys.get("limits") {
        Some(Value::Map(limits)) => limits.get("body").cloned(),
        _ => None,
    };
    for route in &mut listener.routes {
        let is_same = matches!(route.keys.get("limits"), Some(Value::Map(limits)) if limits.get("body").cloned() == body);
        if is_same {
            route.keys.remove("limits");
        }
    }
    let forwards = |route: &&mut Route| route.action.forwards();
    hoist(listener, "compression", forwards);
    hoist(listener, "error_pages", |_| true);
    hoist(listener, "response_headers", |_| true);
    if listener.routes.is_empty() {
        listener.keys.set("respond", Map::of("status", "404"));
    }
}

/// Moves a key to the listener if all routes that can have it have the same value.
fn hoist(listener: &mut Listener, key: &str, can_have: impl Fn(&&mut Route) -> bool) {
    let mut routes: Vec<_> = listener.routes.iter_mut().filter(can_have).collect();
    let Some(value) = routes.first().and_then(|route| route.keys.get(key).cloned()) else { return };
    if routes.iter().all(|route| route.keys.get(key) == Some(&value)) {
        routes.iter_mut().for_each(|route| route.keys.remove(key));
        listener.keys.set(key, value);
    }
}
