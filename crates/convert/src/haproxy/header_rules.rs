//! Rules that change headers.

use super::{
    place::{Place, Rules},
    section::Line,
    test::alternatives,
    world::World,
};
use crate::{values, ways::Conjunction, yaml::Map};

/// Converts a change of a request's header.
pub(super) fn request_header(
    line: &Line,
    conditions: &[Conjunction],
    place: &Place<'_>,
    rules: &mut Rules,
    world: &World<'_>,
) {
    let action = line.action();
    let (kind, name) = (line.word(1), line.word(2));
    let value = action.get(3).map_or("", String::as_str);
    let lower = name.to_ascii_lowercase();
    if lower == "host" && kind == "set-header" && line.condition().is_none() {
        return match quadrille_config::values::host(value.split(':').next().unwrap_or_default()) {
            Ok(_) if !value.contains('%') => {
                rules.host = Some(value.to_owned());
                world.converted(line);
            }
            _ => world.refused(line, "write a fixed host under `upstream_host`"),
        };
    }
    let own = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"].contains(&lower.as_str());
    let is_scheme = matches!((value, place.tls), ("https", true) | ("http", false));
    if own && (lower != "x-forwarded-proto" || is_scheme || value.contains("ssl_fc")) && !value.is_empty() {
        return world.converted(line);
    }
    let change = match kind {
        "del-header" => Some(Map::of("remove", name)),
        "set-header" | "add-header" => header_value(value, place).map(|value| {
            Map::of(if kind == "set-header" { "set" } else { "append" }, name).with("value", value)
        }),
        _ => None,
    };
    let Some(change) = change.filter(|_| values::is_changeable(name)) else {
        return world.refused(line, "write `request_headers`; its variables are in the reference");
    };
    match conditions {
        [one] if one.is_every_request() && one.is_of_request() => {
            rules.request_headers.push(change);
            world.converted(line);
        }
        _ if conditions.iter().all(Conjunction::is_of_request) && place.of_listener => {
            for conjunction in conditions {
                rules
                    .rules
                    .push(Map::of("when", conjunction.when()).with("request_headers", vec![change.clone()]));
            }
            world.converted(line);
        }
        _ => world.refused(line, "write a rule with `request_headers`"),
    }
}

/// Converts a change of a response's header.
pub(super) fn response_header(line: &Line, place: &Place<'_>, rules: &mut Rules, world: &World<'_>) {
    let name = line.word(2);
    let value = line.action().get(3).map_or("", String::as_str);
    let change = match line.word(1) {
        "del-header" => Some(Map::of("remove", name)),
        kind => header_value(value, place).map(|value| {
            Map::of(if kind == "set-header" { "set" } else { "append" }, name).with("value", value)
        }),
    };
    // A condition on TLS alone has been decided.
    let is_always = line.condition().is_none_or(|(negated, words)| {
        alternatives(words, negated, place.lists, place.tls)
            .iter()
            .any(|one| one.is_every_request() && one.is_of_request())
    });
    match change.filter(|_| values::is_changeable(name) && is_always) {
        Some(change) => {
            rules.response_headers.push(change);
            world.converted(line);
        }
        None => {
            world.refused(line, "write `response_headers` of a route; its variables are in the reference");
        }
    }
}

/// Converts the format of a value; `None` if it has other variables.
fn header_value(text: &str, place: &Place<'_>) -> Option<String> {
    let mut value = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        value.push_str(&before.replace('{', "{{"));
        if let Some(after) = after.strip_prefix('%') {
            value.push('%');
            rest = after;
        } else if let Some((inside, after)) = after.strip_prefix('[').and_then(|after| after.split_once(']'))
        {
            value.push_str(&sample(inside, place)?);
            rest = after;
        } else if let Some(after) = after.strip_prefix("ci") {
            value.push_str("{client_ip}");
            rest = after;
        } else {
            return None;
        }
    }
    value.push_str(&rest.replace('{', "{{"));
    let is_sendable = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    (is_sendable && !value.is_empty()).then_some(value)
}

fn sample(text: &str, place: &Place<'_>) -> Option<String> {
    let known = match text {
        "src" => "{client_ip}",
        "path" => "{path}",
        "query" => "{query}",
        "ssl_fc_sni" => "{server_name}",
        "ssl_c_s_dn" => "{client_certificate_subject}",
        "ssl_fc_protocol" => "{tls_version}",
        "dst" => "{local_ip}",
        "ssl_fc" => return Some(if place.tls { "1" } else { "0" }.to_owned()),
        "req.hdr(host)" | "hdr(host)" | "req.hdr(Host)" | "hdr(Host)" => "{host}",
        _ => {
            let name =
                text.strip_prefix("req.hdr(").or_else(|| text.strip_prefix("hdr("))?.strip_suffix(')')?;
            quadrille_config::values::header_name(name).ok()?;
            return Some(format!("{{request:{name}}}"));
        }
    };
    Some(known.to_owned())
}
