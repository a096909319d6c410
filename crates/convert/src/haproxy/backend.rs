//! Backends, as upstreams.

use super::{
    section::{Line, Section},
    world::{World, duration},
};
use crate::yaml::{Map, Value};

/// An upstream, and the keys of routes to it.
#[derive(Clone, Debug)]
pub(super) struct Backend {
    pub(super) upstream: String,
    /// `sticky` and the like.
    pub(super) route: Map,
}

/// Converts the servers of a section `backend` or `listen`.
///
/// # Errors
/// If it has no server that can be used.
pub(super) fn convert(section: &Section, world: &World<'_>) -> Result<Backend, String> {
    let (mut upstream, mut route, mut servers) = (Map::new(), Map::new(), Vec::new());
    let is_http = section.last(&["mode"]).is_some_and(|line| line.word(1) == "http");
    let defaults = section.last(&["default-server"]).map(|line| line.words[1..].to_vec()).unwrap_or_default();
    let all_backups = section.last(&["option", "allbackups"]).is_some();
    let (mut checks, mut backups) = (None, 0);
    for line in section.lines.iter().filter(|line| line.word(0) == "server") {
        let options: Vec<String> = line.words.iter().skip(3).cloned().chain(defaults.clone()).collect();
        let options = Line { id: line.id, words: options };
        // One backup after the other, unless all are used together.
        let priority = options.has("backup").then(|| {
            backups = if all_backups { 1 } else { backups + 1 };
            backups
        });
        if let Some(server) = server(line, &options, section, world, &mut upstream, priority) {
            if servers.iter().any(|other| address(other) == address(&server)) {
                world.differs(line, "its address is in the list already: give that server a larger `weight`");
            } else {
                servers.push(server);
            }
        }
        if options.has("check") && checks.is_none() {
            checks = Some(options);
        }
    }
    if servers.is_empty() {
        return Err(format!("the backend `{}` has no server that can be used", section.name()));
    }
    if let Some(options) = checks {
        health(section, &options, world, &mut upstream);
    }
    balance(section, world, &mut upstream, &mut route);
    for (words, key) in [(["timeout", "connect"], "connect"), (["timeout", "server"], "read")] {
        if let Some(time) = section.last(&words).and_then(|line| duration(line.word(2))) {
            upstream.inner("timeouts").set(key, time);
        }
    }
    if let Some(count) = section.last(&["retries"]).and_then(|line| line.word(1).parse::<u64>().ok()) {
        upstream.set("retries", count.min(10));
    }
    retry(section, &mut route);
    if !is_http {
        for key in ["retries", "protocol"] {
            upstream.remove(key);
        }
        if upstream.get("balance") == Some(&Value::from("hash")) {
            upstream.remove("balance");
        }
    }
    let mut all = Map::of("servers", servers);
    all.extend(upstream);
    let name = world.draft.borrow_mut().upstream(section.name(), all);
    Ok(Backend { upstream: name, route })
}

fn server(
    line: &Line,
    options: &Line,
    section: &Section,
    world: &World<'_>,
    upstream: &mut Map,
    priority: Option<u64>,
) -> Option<Value> {
    if options.has("disabled") {
        world.converted(line);
        return None;
    }
    let text = line.word(2);
    let text =
        ["ipv4@", "ipv6@", "tcp@", "tcp4@"].iter().find_map(|kind| text.strip_prefix(kind)).unwrap_or(text);
    let text = match text.strip_prefix("unix@") {
        Some(path) => format!("unix:{path}"),
        None if text.starts_with('/') => format!("unix:{text}"),
        None => text.to_owned(),
    };
    let Ok(address) = quadrille_config::values::server_address(&text) else {
        world.refused(line, "write the server as `host:port` or `unix:/path`");
        return None;
    };
    if options.has("ssl") && section.kind() != "peers" {
        upstream.set("tls", tls(options, world));
    }
    if options.has("send-proxy-v2") || options.has("send-proxy-v2-ssl") {
        upstream.set("proxy_protocol", "v2");
    } else if options.has("send-proxy") {
        upstream.set("proxy_protocol", "v1");
    }
    if options.after("proto") == Some("h2") {
        upstream.set("protocol", "http2");
    }
    world.converted(line);
    if let Some(time) = options.after("slowstart").and_then(duration) {
        upstream.set("slow_start", time);
    }
    let number = |name: &str, default: u64| -> Option<u64> {
        options.after(name)?.parse().ok().filter(|number| *number > default)
    };
    let mut server = Map::new();
    for (key, value) in
        [("weight", number("weight", 1)), ("max_connections", number("maxconn", 0)), ("priority", priority)]
    {
        if let Some(value) = value {
            server.set(key, value);
        }
    }
    if server.is_empty() {
        return Some(address.into());
    }
    let mut all = Map::of("address", address);
    all.extend(server);
    Some(all.into())
}

/// Returns the address of a server, which is a text or a mapping.
fn address(server: &Value) -> Option<&Value> {
    match server {
        Value::Map(map) => map.get("address"),
        text => Some(text),
    }
}

fn tls(options: &Line, world: &World<'_>) -> Map {
    let mut tls = Map::new();
    let name =
        options.after("sni").and_then(|sni| sni.strip_prefix("str(")).map(|name| name.trim_end_matches(')'));
    let name = options.after("verifyhost").or(name);
    if let Some(name) = name.filter(|name| quadrille_config::values::host(name).is_ok()) {
        tls.set("server_name", name);
    }
    match (options.after("verify"), options.after("ca-file")) {
        (Some("none"), _) => tls.set("verify", "off"),
        (_, Some("@system-ca") | None) => {}
        (_, Some(ca)) => tls.set("ca", world.file(ca, "ca-base")),
    }
    if let Some(pair) = options.after("crt") {
        let pair = world.file(pair, "crt-base");
        tls.set("certificate", Map::of("chain", &pair).with("key", &pair));
    }
    for (word, key) in [("ssl-min-ver", "min"), ("ssl-max-ver", "max")] {
        if let Some(version) = options.after(word).and_then(|version| version.strip_prefix("TLSv")) {
            tls.set(key, version);
        }
    }
    tls
}

/// Sets active health checks.
fn health(section: &Section, options: &Line, world: &World<'_>, upstream: &mut Map) {
    let mut health = Map::new();
    let check = section.last(&["option", "httpchk"]);
    let sent = section.last(&["http-check", "send"]);
    let path = match (check, sent) {
        (_, Some(sent)) => sent.after("uri").or_else(|| check.map(|_| "/")),
        (Some(check), None) => match &check.words[2..] {
            [] => Some("/"),
            [uri] => Some(uri.as_str()),
            [_, uri, ..] => Some(uri.as_str()),
        },
        (None, None) => None,
    };
    let is_get = check.is_none_or(|check| check.words.len() < 4 || check.word(2) == "GET")
        && sent.is_none_or(|sent| sent.after("meth").is_none_or(|method| method == "GET"));
    if let Some(path) = path.and_then(|path| quadrille_config::values::path(path).ok()) {
        health.set("path", path);
        let expected = section.last(&["http-check", "expect"]);
        let is_ok = expected.is_none_or(|line| line.words[2..] == ["status".to_owned(), "200".to_owned()]);
        if let Some(line) = expected.or(sent).or(check).filter(|_| !is_get || !is_ok) {
            world.differs(line, "a check is a `GET` that expects 200");
        }
    }
    for (word, key) in [("rise", "healthy"), ("fall", "unhealthy")] {
        if let Some(count) =
            options.after(word).and_then(|count| count.parse::<u64>().ok()).filter(|count| *count > 0)
        {
            health.set(key, count);
        }
    }
    if let Some(time) = options.after("inter").and_then(duration) {
        health.set("interval", time);
    }
    if let Some(time) = section.last(&["timeout", "check"]).and_then(|line| duration(line.word(2))) {
        health.set("timeout", time);
    }
    match health.is_empty() {
        true => upstream.set("health", "on"),
        false => upstream.set("health", health),
    }
}

fn balance(section: &Section, world: &World<'_>, upstream: &mut Map, route: &mut Map) {
    if let Some(line) = section.last(&["balance"]) {
        let algorithm = line.word(1);
        let (name, argument) = match algorithm.split_once('(') {
            Some((name, argument)) => (name, argument.trim_end_matches(')')),
            None => (algorithm, line.word(2)),
        };
        let by = |kind: &str| vec![Map::of(kind, argument)];
        match name {
            "roundrobin" | "static-rr" => {}
            "leastconn" => upstream.set("balance", "least_request"),
            "random" => upstream.set("balance", "random"),
            "source" => upstream.set("balance", "client_ip"),
            "hdr" if quadrille_config::values::header_name(argument).is_ok() => {
                upstream.set("balance", "hash");
                route.set("sticky", by("header"));
            }
            "url_param" if !argument.is_empty() => {
                upstream.set("balance", "hash");
                route.set("sticky", by("query"));
            }
            _ => {
                world
                    .refused(line, "balance by the client, a header, a parameter or a cookie: see `balance`");
            }
        }
    }
    if let Some(line) = section.last(&["cookie"])
        && quadrille_config::values::header_name(line.word(1)).is_ok()
    {
        upstream.set("balance", "hash");
        let mut cookie = Map::of("cookie", line.word(1));
        if line.has("insert") || line.has("rewrite") {
            cookie.set("lifetime", "0s");
        }
        route.set("sticky", vec![cookie]);
        world.differs(line, "the cookie's value is random, and does not name the server");
    }
    if let Some(line) = section.lines.iter().find(|line| line.begins(&["stick"])) {
        match line.begins(&["stick", "on", "src"]) {
            true => {
                upstream.set("balance", "client_ip");
                world.converted(line);
            }
            false => world.refused(line, "use `balance: hash` with `sticky` of the routes"),
        }
    }
}

fn retry(section: &Section, route: &mut Map) {
    let Some(line) = section.last(&["retry-on"]) else { return };
    let failure = |word: &String| match word.as_str() {
        "conn-failure" => Some("connect-failure".to_owned()),
        "empty-response" | "junk-response" | "response-timeout" | "0rtt-rejected" => Some("reset".to_owned()),
        status if status.parse::<u16>().is_ok() => Some(status.to_owned()),
        _ => None,
    };
    let mut on: Vec<_> = line.words[1..].iter().filter_map(failure).collect();
    on.dedup();
    if !on.is_empty() {
        route.set("retry", Map::of("on", on));
    }
}
