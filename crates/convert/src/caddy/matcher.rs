//! Matchers of Caddy, as conditions of routes.

use super::json::Json;
use crate::{
    expression,
    ways::{Conjunction, PathTest},
    yaml::Map,
};

/// Returns the alternatives of a route's matchers, of which one must hold.
pub(super) fn alternatives(matchers: Json<'_>, tls: bool) -> Vec<Conjunction> {
    let base = Conjunction { ignore_case: true, ..Conjunction::default() };
    if matchers.items().next().is_none() {
        return vec![base];
    }
    matchers.items().flat_map(|set| of_set(set, &base, tls)).collect()
}

/// Returns the alternatives of one set of matchers, which must all hold.
fn of_set(set: Json<'_>, base: &Conjunction, tls: bool) -> Vec<Conjunction> {
    let mut made = vec![base.clone()];
    for (kind, value) in set.entries() {
        made = made.into_iter().flat_map(|one| with(one, kind, value, tls)).collect();
    }
    made
}

fn with(mut one: Conjunction, kind: &str, value: Json<'_>, tls: bool) -> Vec<Conjunction> {
    let unknown = |mut one: Conjunction, part: &str| {
        one.unknown.push(part.to_owned());
        vec![one]
    };
    match kind {
        "host" => {
            let hosts = value.texts();
            if hosts.iter().any(|host| quadrille_config::values::route_host(host).is_err()) {
                return unknown(one, "host");
            }
            one.hosts = hosts;
        }
        "path" => {
            return value.texts().iter().map(|pattern| with_path(&one, pattern)).collect();
        }
        "path_regexp" => match expression::whole(value.at(&["pattern"]).text(), false) {
            Ok(expression) if one.path.is_none() => {
                one.path = Some(PathTest::Regex(expression));
                one.ignore_case = false;
            }
            _ => return unknown(one, "path_regexp"),
        },
        "method" => one.others.set("methods", value.texts()),
        "remote_ip" | "client_ip" => {
            let ranges = networks(value.at(&["ranges"]).texts());
            match ranges {
                Some(ranges) => one.src = Some(ranges),
                None => return unknown(one, kind),
            }
        }
        "protocol" if value.text() == "https" => return if tls { vec![one] } else { Vec::new() },
        "protocol" if value.text() == "http" => return if tls { Vec::new() } else { vec![one] },
        "header" | "query" => return with_values(one, kind, value),
        "header_regexp" => {
            for (name, value) in value.entries() {
                match expression::whole(value.at(&["pattern"]).text(), false) {
                    Ok(regex) => one.others.push("headers", Map::of("name", name).with("regex", regex)),
                    Err(_) => return unknown(one, kind),
                }
            }
        }
        "not" => {
            // Only a single kind of matcher can be negated.
            for set in value.items() {
                let kinds: Vec<_> = set.entries().collect();
                match kinds[..] {
                    [("remote_ip" | "client_ip", value)] => match networks(value.at(&["ranges"]).texts()) {
                        Some(ranges) => one.not_src.extend(ranges),
                        None => return unknown(one, "not remote_ip"),
                    },
                    [("method", value)] => one.not_methods.extend(value.texts()),
                    [("protocol", value)] if (value.text() == "https") == tls => return Vec::new(),
                    [("protocol", _)] => {}
                    _ => one.unknown.push("not".to_owned()),
                }
            }
        }
        other => return unknown(one, other),
    }
    vec![one]
}

/// Adds a pattern of a path, in which `*` at its beginning or end stands for any characters.
fn with_path(one: &Conjunction, pattern: &str) -> Conjunction {
    let mut one = one.clone();
    let lower = pattern.to_ascii_lowercase();
    let inner = lower.trim_matches('*');
    let test = match (lower.starts_with('*'), lower.ends_with('*')) {
        _ if lower == "*" || lower == "/*" => None,
        _ if inner.contains(['*', '?', '[']) => {
            let expression = expression::literal(&lower).replace(r"\*", "[^/]*").replace(r"\?", "[^/]");
            Some(PathTest::Regex(expression))
        }
        (true, true) => Some(PathTest::Regex(format!(".*{}.*", expression::literal(inner)))),
        (true, false) => Some(PathTest::Ends(inner.to_owned())),
        (false, true) => Some(PathTest::Begins(inner.to_owned())),
        (false, false) => Some(PathTest::Exact(inner.to_owned())),
    };
    match test {
        Some(_) if one.path.is_some() => one.unknown.push("several matchers of the path".to_owned()),
        Some(test) => one.path = Some(test),
        None => {}
    }
    one
}

/// Adds conditions on headers or parameters; several values of one are alternatives.
fn with_values(one: Conjunction, kind: &str, value: Json<'_>) -> Vec<Conjunction> {
    let list = if kind == "header" { "headers" } else { "queries" };
    let mut made = vec![one];
    for (name, values) in value.entries() {
        let conditions: Vec<Map> = match values.texts() {
            texts if texts.is_empty() => vec![Map::of("name", name).with("present", "off")],
            texts => texts.iter().map(|text| condition(name, text)).collect(),
        };
        let mut next = Vec::new();
        for one in made {
            for condition in &conditions {
                let mut one = one.clone();
                one.others.push(list, condition.clone());
                next.push(one);
            }
        }
        made = next;
    }
    made
}

fn condition(name: &str, text: &str) -> Map {
    let condition = Map::of("name", name);
    let inner = text.trim_matches('*');
    match (text.starts_with('*'), text.ends_with('*')) {
        _ if text == "*" => condition,
        (true, true) => condition.with("contains", inner),
        (true, false) => condition.with("suffix", inner),
        (false, true) => condition.with("prefix", inner),
        (false, false) => condition.with("exact", text),
    }
}

fn networks(texts: Vec<String>) -> Option<Vec<String>> {
    let is_network = |text: &String| {
        let address = text.split('/').next().unwrap_or_default();
        address.parse::<std::net::IpAddr>().is_ok()
    };
    (!texts.is_empty() && texts.iter().all(is_network)).then_some(texts)
}
