//! Routes.

use super::values::{put, time};
use crate::model::{
    Action, Forward, HeaderChange, HeaderMatch, HeaderPart, HeaderRule, HeaderText, HostRewrite, PathRewrite,
    PathRule, QueryMatch, Redirect, Respond, RetryPolicy, Route, RouteTable, TextMatch, TextRule, Weighted,
};
use serde_json::{Map, Value, json};

/// Every route of a table, each with its hosts.
pub(super) fn table(table: &RouteTable) -> Value {
    let mut shown = Vec::new();
    for host in &table.hosts {
        let domains: Vec<String> = host.domains.iter().map(ToString::to_string).collect();
        let domains: Value = if let [one] = &domains[..] { one.as_str().into() } else { domains.into() };
        if host.require_tls {
            shown.push(json!({ "host": domains, "redirect": "https", "require_tls": true }));
        }
        shown.extend(host.routes.iter().map(|one| route(one, &domains)));
    }
    shown.into()
}

fn route(route: &Route, domains: &Value) -> Value {
    let mut keys = Map::from_iter([("host".to_owned(), domains.clone())]);
    let (key, path) = match &route.path.rule {
        PathRule::Segments(path) if path.is_empty() => ("path", "/"),
        PathRule::Segments(path) => ("path", path.as_str()),
        PathRule::Prefix(path) => ("path_prefix", path.as_str()),
        PathRule::Exact(path) => ("path_exact", path.as_str()),
        PathRule::Regex(expression) => ("path_regex", bare(expression.as_str())),
    };
    keys.insert(key.to_owned(), path.into());
    if route.path.ignore_case {
        keys.insert("ignore_case".to_owned(), true.into());
    }
    list(&mut keys, "headers", route.headers.iter().map(header_match));
    list(&mut keys, "query", route.query.iter().map(query_match));
    list(&mut keys, "request_headers", route.request_headers.iter().map(header_change));
    list(&mut keys, "response_headers", route.response_headers.iter().map(header_change));
    if !route.name.is_empty() {
        keys.insert("name".to_owned(), route.name.as_str().into());
    }
    match &route.action {
        Action::Forward(forward) => self::forward(forward, keys),
        Action::Respond(answer) => with(keys, "respond", respond(answer)),
        Action::Redirect(redirect) => with(keys, "redirect", self::redirect(redirect)),
    }
}

fn forward(forward: &Forward, mut keys: Map<String, Value>) -> Value {
    let rewrite = forward.rewrite.as_ref().map(path_rewrite);
    keys.extend(rewrite.map(|rewrite| ("rewrite".to_owned(), rewrite)));
    let host = forward.host.as_ref().map(|host| match host {
        HostRewrite::Literal(host) => json!(host),
        HostRewrite::Server => json!({ "server": true }),
        HostRewrite::Header(name) => json!({ "header": name }),
    });
    keys.extend(host.map(|host| ("rewrite_host".to_owned(), host)));
    keys.extend(forward.timeout.map(|timeout| ("timeout".to_owned(), time(timeout))));
    keys.extend(forward.idle.map(|idle| ("idle".to_owned(), time(idle))));
    keys.extend(forward.retry.as_ref().map(|policy| ("retry".to_owned(), retry(policy))));
    to(&forward.to, keys)
}

/// One upstream, or the shares of several.
pub(super) fn to(to: &[Weighted], mut keys: Map<String, Value>) -> Value {
    match to {
        [only] if only.request_headers.is_empty() && only.response_headers.is_empty() => {
            with(keys, "upstream", only.upstream.as_str().into())
        }
        several => {
            list(
                &mut keys,
                "split",
                several.iter().map(|share| {
                    let mut shown = Map::from_iter([
                        ("upstream".to_owned(), share.upstream.as_str().into()),
                        ("weight".to_owned(), share.weight.get().into()),
                    ]);
                    list(&mut shown, "request_headers", share.request_headers.iter().map(header_change));
                    list(&mut shown, "response_headers", share.response_headers.iter().map(header_change));
                    shown.into()
                }),
            );
            keys.into()
        }
    }
}

fn retry(policy: &RetryPolicy) -> Value {
    let on = &policy.on;
    let words = [
        ("connect-failure", on.connect_failure),
        ("refused-stream", on.refused_stream),
        ("reset", on.reset),
        ("5xx", on.server_error),
        ("gateway-error", on.gateway_error),
        ("conflict", on.conflict),
    ];
    let words = words.iter().filter(|(_, on)| *on).map(|(word, _)| json!(word));
    let statuses = on.statuses.iter().map(|status| json!(status));
    let mut shown = json!({
        "on": words.chain(statuses).collect::<Vec<_>>(),
        "retries": policy.retries,
        "idempotent_only": policy.idempotent_only,
    });
    put(&mut shown, "per_try_timeout", policy.per_try_timeout.map(time));
    shown
}

fn redirect(redirect: &Redirect) -> Value {
    let mut shown = json!({ "status": redirect.status });
    put(&mut shown, "scheme", redirect.scheme.as_deref().map(Value::from));
    put(&mut shown, "host", redirect.host.as_deref().map(Value::from));
    put(&mut shown, "port", redirect.port.map(Value::from));
    let (key, path) = match &redirect.path {
        Some(PathRewrite::Full(path)) => ("path", Some(path.as_str().into())),
        Some(rewrite) => ("rewrite", Some(path_rewrite(rewrite))),
        None => ("path", None),
    };
    put(&mut shown, key, path);
    put(&mut shown, "strip_query", redirect.strip_query.then_some(true.into()));
    shown
}

fn path_rewrite(rewrite: &PathRewrite) -> Value {
    match rewrite {
        PathRewrite::Prefix(path) => json!(path),
        PathRewrite::Full(path) => json!({ "path": path }),
        PathRewrite::Regex(expression, with) => json!({ "regex": expression.as_str(), "with": with }),
    }
}

fn respond(respond: &Respond) -> Value {
    json!({
        "status": respond.status,
        "content_type": respond.content_type,
        "body": String::from_utf8_lossy(&respond.body),
    })
}

fn header_match(header: &HeaderMatch) -> Value {
    let mut shown = match &header.rule {
        HeaderRule::Present(there) => json!({ "present": there }),
        HeaderRule::Text(text) => text_match(text),
        HeaderRule::Range(from, to) => json!({ "from": from, "below": to }),
    };
    put(&mut shown, "name", Some(header.name.as_str().into()));
    put(&mut shown, "invert", header.invert.then_some(true.into()));
    put(&mut shown, "missing_is_empty", header.missing_is_empty.then_some(true.into()));
    shown
}

fn query_match(query: &QueryMatch) -> Value {
    let mut shown = query.value.as_ref().map_or_else(|| json!({ "present": true }), text_match);
    put(&mut shown, "name", Some(query.name.as_str().into()));
    shown
}

pub(super) fn text_match(text: &TextMatch) -> Value {
    let mut shown = match &text.rule {
        TextRule::Exact(text) => json!({ "exact": text }),
        TextRule::Prefix(text) => json!({ "prefix": text }),
        TextRule::Suffix(text) => json!({ "suffix": text }),
        TextRule::Contains(text) => json!({ "contains": text }),
        TextRule::Regex(expression) => json!({ "regex": bare(expression.as_str()) }),
    };
    put(&mut shown, "ignore_case", text.ignore_case.then_some(true.into()));
    shown
}

/// Without the frame of `model::whole`.
fn bare(expression: &str) -> &str {
    let inside = expression.strip_prefix(r"\A(?:").and_then(|rest| rest.strip_suffix(r")\z"));
    inside.unwrap_or(expression)
}

fn header_change(change: &HeaderChange) -> Value {
    let shown = |action: &str, name: &http::HeaderName, text: &HeaderText| json!({ action: name.as_str(), "value": header_text(text) });
    match change {
        HeaderChange::Append(name, text) => shown("append", name, text),
        HeaderChange::AddIfAbsent(name, text) => shown("add_if_absent", name, text),
        HeaderChange::Set(name, text) => shown("set", name, text),
        HeaderChange::Replace(name, text) => shown("replace", name, text),
        HeaderChange::Remove(name) => json!({ "remove": name.as_str() }),
    }
}

fn header_text(text: &HeaderText) -> String {
    let part = |part: &HeaderPart| match part {
        HeaderPart::Literal(value) => String::from_utf8_lossy(value.as_bytes()).replace('{', "{{"),
        HeaderPart::Client => "{client}".to_owned(),
        HeaderPart::ClientIp => "{client_ip}".to_owned(),
        HeaderPart::Local => "{local}".to_owned(),
        HeaderPart::LocalIp => "{local_ip}".to_owned(),
        HeaderPart::Protocol => "{protocol}".to_owned(),
        HeaderPart::Scheme => "{scheme}".to_owned(),
        HeaderPart::ServerName => "{server_name}".to_owned(),
        HeaderPart::TlsVersion => "{tls_version}".to_owned(),
        HeaderPart::Upstream => "{upstream}".to_owned(),
        HeaderPart::RequestHeader(name) => format!("{{request:{name}}}"),
        HeaderPart::ResponseHeader(name) => format!("{{response:{name}}}"),
    };
    text.0.iter().map(part).collect()
}

fn list(keys: &mut Map<String, Value>, key: &str, items: impl Iterator<Item = Value>) {
    let items: Vec<Value> = items.collect();
    if !items.is_empty() {
        keys.insert(key.to_owned(), items.into());
    }
}

fn with(mut keys: Map<String, Value>, key: &str, value: Value) -> Value {
    keys.insert(key.to_owned(), value);
    keys.into()
}
