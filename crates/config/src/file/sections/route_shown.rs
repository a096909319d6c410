//! Properties of routes that only other front ends can configure, as `/config` shows them.

use super::text_match::{text_match, without_frame};
use crate::{
    file::shown::{put, text, time},
    fraction,
    model::{Cors, Fault, HostRewrite, PathMatch, PathRewrite, PathRule, QueryMatch},
};
use serde_json::{Value, json};

pub(super) fn path_rewrite(rewrite: &PathRewrite) -> Value {
    match rewrite {
        PathRewrite::Prefix(path) => json!(path),
        PathRewrite::Full(path) => json!({ "path": path }),
        PathRewrite::Regex(expression, with) => json!({ "regex": expression.as_str(), "with": with }),
    }
}

pub(super) fn host_rewrite(rewrite: &HostRewrite) -> Value {
    match rewrite {
        HostRewrite::Literal(host) => json!(host),
        HostRewrite::Server => json!({ "server": true }),
        HostRewrite::Header(name) => json!({ "header": name }),
    }
}

pub(super) fn query_match(query: &QueryMatch) -> Value {
    let mut shown = query.value.as_ref().map_or_else(|| json!({ "present": true }), text_match);
    put(&mut shown, [("name", query.name.as_str().into())]);
    shown
}

pub(super) fn cors(cors: &Cors) -> Value {
    let mut shown = json!({ "origins": cors.origins.iter().map(text_match).collect::<Vec<_>>() });
    put(
        &mut shown,
        [
            ("methods", text(&cors.methods)),
            ("headers", text(&cors.headers)),
            ("expose", text(&cors.expose)),
            ("max_age", text(&cors.max_age)),
            ("credentials", cors.credentials.into()),
        ],
    );
    shown
}

pub(super) fn fault(fault: &Fault) -> Value {
    let mut shown = json!({});
    let delay = |(delay, parts): (_, u32)| json!({ "time": time(delay), "percent": fraction::show(parts) });
    let abort = |(status, parts): (u16, u32)| json!({ "status": status, "percent": fraction::show(parts) });
    put(&mut shown, [("delay", fault.delay.map(delay).into()), ("abort", fault.abort.map(abort).into())]);
    shown
}

pub(super) fn segments_of(path: &PathMatch) -> Value {
    match &path.rule {
        PathRule::Segments(path) if path.is_empty() => "/".into(),
        PathRule::Segments(path) => path.as_str().into(),
        _ => Value::Null,
    }
}

pub(super) fn exact_path(path: &PathMatch) -> Value {
    match &path.rule {
        PathRule::Exact(path) => path.as_str().into(),
        _ => Value::Null,
    }
}

pub(super) fn path_regex(path: &PathMatch) -> Value {
    match &path.rule {
        PathRule::Regex(expression) => without_frame(expression.as_str()).into(),
        _ => Value::Null,
    }
}
