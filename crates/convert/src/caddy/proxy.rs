//! `reverse_proxy`, as an upstream and keys of routes.

use super::{
    json::{Json, Notes},
    placeholder,
};
use crate::{
    draft::Draft,
    values,
    yaml::{Map, Value},
};
use std::cell::RefCell;

/// An upstream, and the keys of routes to it.
pub(super) struct Proxied {
    pub(super) upstream: String,
    pub(super) keys: Map,
}

/// Converts a handler `reverse_proxy`.
///
/// # Errors
/// If its servers are not known, or it does not speak HTTP to them.
pub(super) fn convert(
    handler: Json<'_>,
    notes: &Notes<'_>,
    draft: &RefCell<Draft>,
) -> Result<Proxied, String> {
    let transport = handler.at(&["transport"]);
    if !matches!(transport.at(&["protocol"]).text(), "" | "http") {
        return Err("servers of FastCGI are not reached: keep a server that speaks it".to_owned());
    }
    let tls = transport.at(&["tls"]);
    let default_port = if tls.is_missing() { 80 } else { 443 };
    let mut servers = Vec::new();
    for upstream in handler.at(&["upstreams"]).items() {
        let dial = upstream.at(&["dial"]).text();
        let dial = match dial.strip_prefix("unix/") {
            Some(path) => format!("unix:{path}"),
            None => dial.strip_prefix("tcp/").unwrap_or(dial).to_owned(),
        };
        let address = if dial.starts_with(':') { format!("127.0.0.1{dial}") } else { dial };
        servers.push(
            values::server_address(&address, default_port)
                .ok_or_else(|| format!("`{address}` is not `host:port`"))?,
        );
    }
    if servers.is_empty() {
        return Err("its servers are not in the configuration".to_owned());
    }
    let mut keys = Map::new();
    let mut upstream = Map::of("servers", servers.clone());
    let name = servers[0].replace(['/', ':', '[', ']'], "-");
    policy(handler.at(&["load_balancing", "selection_policy"]), &mut upstream, &mut keys, notes);
    if let Some(count) = handler.at(&["load_balancing", "retries"]).number() {
        upstream.set("retries", count.min(10));
    }
    health(handler.at(&["health_checks"]), &mut upstream);
    if !tls.is_missing() {
        upstream.set("tls", of_tls(tls));
    }
    let versions = transport.at(&["versions"]).texts();
    if versions.iter().any(|one| one == "h2c") {
        upstream.set("protocol", "http2");
    }
    for (key, name) in [("dial_timeout", "connect"), ("read_timeout", "read"), ("write_timeout", "write")] {
        if let Some(time) = transport.at(&[key]).duration() {
            upstream.inner("timeouts").set(name, time);
        }
    }
    if let Some(version) =
        Some(transport.at(&["proxy_protocol"]).text()).filter(|one| ["v1", "v2"].contains(one))
    {
        upstream.set("proxy_protocol", version);
    }
    headers(handler.at(&["headers", "request"]), "request_headers", &mut keys, notes);
    headers(handler.at(&["headers", "response"]), "response_headers", &mut keys, notes);
    let upstream = draft.borrow_mut().upstream(&name, upstream);
    Ok(Proxied { upstream, keys })
}

fn policy(policy: Json<'_>, upstream: &mut Map, keys: &mut Map, notes: &Notes<'_>) {
    let text = policy.at(&["policy"]).text();
    let field = policy.at(&["field"]).text();
    match text {
        "" | "random" => upstream.set("balance", "random"),
        "round_robin" => {}
        "least_conn" | "random_choose" => upstream.set("balance", "least_request"),
        "ip_hash" | "client_ip_hash" => upstream.set("balance", "client_ip"),
        "header" if !field.is_empty() => {
            upstream.set("balance", "hash");
            keys.set("sticky", vec![Map::of("header", field)]);
        }
        "cookie" => {
            let name = policy.at(&["name"]).text();
            upstream.set("balance", "hash");
            let name = if name.is_empty() { "lb" } else { name };
            keys.set("sticky", vec![Map::of("cookie", name).with("lifetime", "0s")]);
        }
        "query" => {
            upstream.set("balance", "hash");
            keys.set("sticky", vec![Map::of("query", policy.at(&["key"]).text())]);
        }
        "weighted_round_robin" => {
            let weights: Vec<_> = policy.at(&["weights"]).items().filter_map(Json::number).collect();
            if let Some(Value::List(servers)) = upstream.get("servers").cloned() {
                let weighted =
                    servers.into_iter().enumerate().map(|(index, server)| match weights.get(index) {
                        Some(weight) if *weight > 1 => {
                            Value::Map(Map::of("address", server).with("weight", *weight))
                        }
                        _ => server,
                    });
                upstream.set("servers", weighted.collect::<Vec<_>>());
            }
        }
        other => {
            notes.refused(
                &format!("lb_policy {other}"),
                "choose one of `balance`; requests go to servers in turn",
            );
        }
    }
    // A single server needs no policy.
    let is_single = matches!(upstream.get("servers"), Some(Value::List(servers)) if servers.len() == 1);
    if is_single && upstream.get("balance") == Some(&Value::from("random")) {
        upstream.remove("balance");
    }
}

fn health(checks: Json<'_>, upstream: &mut Map) {
    let active = checks.at(&["active"]);
    let uri = active.at(&["uri"]).text();
    let uri = if uri.is_empty() { active.at(&["path"]).text() } else { uri };
    if let Ok(path) = quadrille_config::values::path(uri.split('?').next().unwrap_or_default()) {
        let mut health = Map::of("path", path);
        for key in ["interval", "timeout"] {
            if let Some(time) = active.at(&[key]).duration() {
                health.set(key, time);
            }
        }
        upstream.set("health", health);
    }
    let passive = checks.at(&["passive"]);
    if let Some(fails) = passive.at(&["max_fails"]).number().filter(|fails| *fails > 0) {
        let mut outliers = Map::of("errors", fails);
        if let Some(time) = passive.at(&["fail_duration"]).duration() {
            outliers.set("ejection", time);
        }
        upstream.set("outlier_detection", outliers);
    }
    if let Some(count) = passive.at(&["unhealthy_request_count"]).number().filter(|count| *count > 0) {
        upstream.set("limits", Map::of("requests", count));
    }
}

fn of_tls(tls: Json<'_>) -> Value {
    let mut map = Map::new();
    let name = tls.at(&["server_name"]).text();
    if quadrille_config::values::host(name).is_ok() {
        map.set("server_name", name);
    }
    let files = [tls.at(&["root_ca_pem_files"]).texts(), tls.at(&["ca", "pem_files"]).texts()].concat();
    match (tls.at(&["insecure_skip_verify"]).value.as_bool(), files.first()) {
        (Some(true), _) => map.set("verify", "off"),
        (_, Some(file)) => map.set("ca", file),
        (_, None) => {}
    }
    let (chain, key) =
        (tls.at(&["client_certificate_file"]).text(), tls.at(&["client_certificate_key_file"]).text());
    if !chain.is_empty() && !key.is_empty() {
        map.set("certificate", Map::of("chain", chain).with("key", key));
    }
    if map.is_empty() { "on".into() } else { map.into() }
}

/// Adds changes of headers.
pub(super) fn headers(ops: Json<'_>, key: &'static str, keys: &mut Map, notes: &Notes<'_>) {
    for change in changes(ops, key == "request_headers", keys, notes) {
        keys.push(key, change);
    }
}

/// Returns changes of headers; the `Host` of requests is set among the keys.
pub(super) fn changes(ops: Json<'_>, of_request: bool, keys: &mut Map, notes: &Notes<'_>) -> Vec<Map> {
    let mut changes = Vec::new();
    for name in ops.at(&["delete"]).texts() {
        if values::is_changeable(&name) {
            changes.push(Map::of("remove", name));
        }
    }
    for (action, kind) in [("set", "set"), ("add", "append")] {
        for (name, value) in ops.at(&[action]).entries() {
            let text = value.items().next().map_or("", Json::text);
            let lower = name.to_ascii_lowercase();
            if of_request && lower == "host" {
                match text {
                    "{http.reverse_proxy.upstream.hostport}" | "{http.reverse_proxy.upstream.host}" => {
                        keys.set("upstream_host", "server");
                    }
                    "{http.request.host}" | "{http.request.hostport}" => {}
                    host if quadrille_config::values::host(host).is_ok() => keys.set("upstream_host", host),
                    _ => _ = notes.refused("header_up Host", "write a fixed host under `upstream_host`"),
                }
                continue;
            }
            if of_request
                && ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"].contains(&lower.as_str())
            {
                continue;
            }
            let value = placeholder::header_value(text);
            match value.filter(|_| values::is_changeable(name)) {
                Some(value) => changes.push(Map::of(kind, name).with("value", value)),
                None => {
                    _ = notes.refused(
                        &format!("header {name}"),
                        "write another value; variables are in the reference",
                    );
                }
            }
        }
    }
    if ops.at(&["replace"]).entries().next().is_some() {
        notes.refused("header with a replacement", "set the whole value of the header");
    }
    changes
}
