//! The page `/status` as text.

use crate::columns::{aligned, days_left, duration};
use quadrille_unix_time::rfc3339;
use serde_json::Value;
use std::fmt::Write;

/// Returns an overview of the page.
pub(super) fn overview(page: &Value) -> String {
    let mut text = String::new();
    let uptime = page["uptime_seconds"].as_f64().unwrap_or_default() as u64;
    let ready = if page["ready"] == true { "ready" } else { "draining" };
    let _ = writeln!(
        text,
        "quadrille {} ({}), up {}, {ready}",
        said(&page["version"]),
        said(&page["role"]),
        duration(uptime)
    );
    let _ = writeln!(text, "backend: {}", said(&page["engine"]["backend"]));
    text += &last_reload(&page["last_reload"]);
    for warning in items(&page["warnings"]) {
        let _ = writeln!(text, "warning: {}", said(warning));
    }
    for upstream in items(&page["upstreams"]) {
        text += &format!("\nupstream {}\n", said(&upstream["name"]));
        text += &indented(&aligned(&items(&upstream["servers"]).iter().map(server).collect::<Vec<_>>()));
    }
    let certificates = certificates(&page["certificates"]);
    if certificates.len() > 1 {
        text += &format!("\ncertificates\n{}", indented(&aligned(&certificates)));
    }
    for awaited in items(&page["awaited_certificates"]) {
        let _ = writeln!(text, "  {}: ordered, not issued yet", said(awaited));
    }
    text
}

/// Returns a row for each certificate, after one with titles.
pub(super) fn certificates(list: &Value) -> Vec<Vec<String>> {
    let titles = ["NAMES", "LISTENER", "KEY", "EXPIRES", "LEFT"].map(str::to_owned).to_vec();
    let row = |one: &Value| {
        let expiry = one["not_after"].as_i64().unwrap_or_default();
        let names: Vec<_> = items(&one["names"]).iter().map(said).collect();
        let key = match one["key"].as_str() {
            Some("key server") => format!("{}, on key servers", said(&one["key_type"])),
            _ => said(&one["key_type"]),
        };
        vec![names.join(", "), said(&one["listener"]), key, rfc3339(expiry), days_left(expiry)]
    };
    std::iter::once(titles).chain(items(list).iter().map(row)).collect()
}

fn last_reload(last: &Value) -> String {
    let at = last["time"].as_f64().map(|time| rfc3339(time as i64));
    match (at, last["ok"].as_bool()) {
        (Some(at), Some(true)) => format!("last reload: {at}\n"),
        (Some(at), _) => {
            let problems = items(&last["problems"]).iter().map(|problem| format!("  {}\n", said(problem)));
            format!(
                "last reload: failed at {at}; an older configuration is in service\n{}",
                problems.collect::<String>()
            )
        }
        (None, _) => String::new(),
    }
}

fn server(server: &Value) -> Vec<String> {
    let state = if server["draining"] == true {
        "draining"
    } else if server["ejected"] == true {
        "ejected"
    } else {
        match server["healthy"].as_bool() {
            Some(true) => "healthy",
            Some(false) => "not healthy",
            None => "in service",
        }
    };
    let active = server["active"].as_u64().map(|count| format!("{count} active"));
    let priority = server["priority"].as_u64().filter(|priority| *priority > 0);
    let priority = priority.map(|priority| format!("priority {priority}"));
    vec![said(&server["address"]), state.to_owned(), active.unwrap_or_default(), priority.unwrap_or_default()]
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn said(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::overview;
    use serde_json::json;

    #[test]
    fn an_overview_has_servers_and_failures() {
        let page = json!({
            "role": "gateway", "version": "1.2.3", "uptime_seconds": 61.5, "ready": true, "warnings": ["w"],
            "engine": {"backend": "lanes"},
            "last_reload": {"time": 0.0, "ok": false, "problems": ["q.yaml:1: p"]},
            "upstreams": [{"name": "app", "servers": [
                {"address": "a:1", "healthy": null, "ejected": null, "draining": false, "priority": 0, "active": 3},
                {"address": "bb:2", "healthy": false, "ejected": false, "draining": true, "priority": 1, "active": null},
            ]}],
            "certificates": [], "awaited_certificates": ["c"],
        });
        let expected = "quadrille 1.2.3 (gateway), up 1m 1s, ready\nbackend: lanes\n\
                        last reload: failed at 1970-01-01T00:00:00Z; an older configuration is in service\n  q.yaml:1: p\n\
                        warning: w\n\nupstream app\n  a:1   in service  3 active\n  bb:2  draining              priority 1\n  \
                        c: ordered, not issued yet\n";
        assert_eq!(overview(&page), expected);
    }
}
