//! Load balancing: `load-balance`, `upstream-hash-by`, and session affinity.

use super::{Annotations, Texts};
use quadrille_draft::{
    draft::Route,
    values,
    variables::{Piece, pieces},
    yaml::Map,
};

/// Selects the policy of an upstream, and the properties of requests that it hashes.
pub(crate) fn apply(annotations: &Annotations<'_, '_>, texts: &Texts, route: &mut Route, upstream: &mut Map) {
    let global = annotations.or_global("load-balance").unwrap_or("round_robin");
    match global {
        "round_robin" => {}
        "ewma" => {
            upstream.set("balance", "least_request");
            annotations
                .differ("load-balance", "`least_request`: the server with the fewest active requests of two");
        }
        "least_conn" => upstream.set("balance", "least_request"),
        "ip_hash" => upstream.set("balance", "client_ip"),
        _ => annotations
            .refuse("load-balance", "write \"round_robin\" or \"ewma\"; requests go to servers in turn"),
    }
    if let Some(cookie) = session_cookie(annotations) {
        upstream.set("balance", "hash");
        route.keys.set("sticky", vec![cookie]);
        return;
    }
    if let Some(key) = annotations.value("upstream-hash-by") {
        match hashed(&texts.substituted(key)) {
            Ok(Hashed::Client) => upstream.set("balance", "client_ip"),
            Ok(Hashed::Properties(properties)) => {
                upstream.set("balance", "hash");
                route.keys.set("sticky", properties);
            }
            Err(variable) => annotations.refuse(
                "upstream-hash-by",
                format!(
                    "requests are not hashed by `${variable}`: use a header, a cookie, a parameter or the client's address; they go \
                     to servers in turn"
                ),
            ),
        }
    }
}

/// Properties of requests that select a server.
enum Hashed {
    Client,
    Properties(Vec<Map>),
}

fn hashed(key: &str) -> Result<Hashed, String> {
    let mut properties = Vec::new();
    for piece in pieces(key) {
        let Piece::Variable(name) = piece else { continue };
        if ["remote_addr", "binary_remote_addr", "the_real_ip"].contains(&name) {
            properties.push(None);
        } else if let Some(header) = name.strip_prefix("http_") {
            properties.push(Some(Map::of("header", header.replace('_', "-"))));
        } else if let Some(cookie) = name.strip_prefix("cookie_") {
            properties.push(Some(Map::of("cookie", cookie)));
        } else if let Some(parameter) = name.strip_prefix("arg_") {
            properties.push(Some(Map::of("query", parameter)));
        } else {
            return Err(name.to_owned());
        }
    }
    let others: Vec<Map> = properties.iter().flatten().cloned().collect();
    match (others.is_empty(), properties.is_empty()) {
        (_, true) => Err("text alone".to_owned()),
        (true, false) => Ok(Hashed::Client),
        (false, _) if others.len() == properties.len() => Ok(Hashed::Properties(others)),
        (false, _) => Err("remote_addr with others".to_owned()),
    }
}

fn session_cookie(annotations: &Annotations<'_, '_>) -> Option<Map> {
    let kind = annotations.value("affinity")?;
    if kind != "cookie" {
        annotations.refuse("affinity", "write \"cookie\"; requests go to servers in turn");
        return None;
    }
    let mut name = annotations.value("session-cookie-name").unwrap_or("INGRESSCOOKIE");
    if quadrille_config::values::header_name(name).is_err() {
        annotations.refuse("session-cookie-name", "not the name of a cookie: it is `INGRESSCOOKIE`");
        name = "INGRESSCOOKIE";
    }
    let mut cookie = Map::of("cookie", name);
    let seconds =
        annotations.number("session-cookie-max-age").or_else(|| annotations.number("session-cookie-expires"));
    let lifetime = seconds.and_then(|seconds| values::shown(seconds.saturating_mul(1_000)));
    cookie.set("lifetime", lifetime.unwrap_or_else(|| "0s".to_owned()));
    if let Some(path) = annotations.value("session-cookie-path") {
        match quadrille_config::values::path(path) {
            Ok(path) => cookie.set("path", path),
            Err(problem) => annotations.refuse("session-cookie-path", format!("{problem}; the path is `/`")),
        }
    }
    for (name, usual) in [
        ("session-cookie-samesite", ""),
        ("session-cookie-secure", "true"),
        ("session-cookie-conditional-samesite-none", "false"),
        ("session-cookie-partitioned", "false"),
        ("session-cookie-change-on-failure", "true"),
    ] {
        if annotations.value(name) == Some(usual) {
            annotations.works(name);
        }
    }
    Some(cookie)
}
