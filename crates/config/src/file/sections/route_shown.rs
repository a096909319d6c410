//! Paths and properties of routes, as `/config` shows them: also those that only other front ends can configure.

use super::{cors::CORS, placeholders, text_match::without_frame};
use crate::{
    Problem,
    file::shown::{if_true, put},
    model::{Cors, HostRewrite, PathMatch, PathRewrite, PathRule},
    values,
};
use serde_json::{Value, json};

/// Shows a rewrite of a path that meets this condition. Rewrites that only Envoy has are mappings.
pub(super) fn path_rewrite(rewrite: &PathRewrite, path: &PathMatch) -> Value {
    let is_whole = matches!(path.rule, PathRule::Exact(_) | PathRule::Regex(_));
    match rewrite {
        PathRewrite::Prefix(path) => json!(path),
        PathRewrite::Full(path) if is_whole => json!(path),
        PathRewrite::Template(template) if is_whole => json!(placeholders::show(template)),
        PathRewrite::Full(path) => json!({ "path": path }),
        PathRewrite::Template(template) => json!({ "path": placeholders::show(template) }),
        PathRewrite::Regex(expression, with) => json!({ "regex": expression.as_str(), "with": with }),
    }
}

/// Parses the host that servers receive; `None` for that of the request.
pub(super) fn upstream_host(text: &str) -> Result<Option<HostRewrite>, Problem> {
    match text {
        "received" => return Ok(None),
        "server" => return Ok(Some(HostRewrite::Server)),
        _ => {}
    }
    let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    values::host(host)?;
    port.map(values::port).transpose()?;
    Ok(Some(HostRewrite::Literal(text.to_owned())))
}

pub(super) fn show_upstream_host(rewrite: &HostRewrite) -> Value {
    match rewrite {
        HostRewrite::Literal(host) => json!(host),
        HostRewrite::Server => json!("server"),
        HostRewrite::Header(name) => json!({ "header": name }),
    }
}

/// Shows the access for pages of other origins, with what only Envoy has.
pub(super) fn show_cors(cors: &Cors) -> Value {
    let mut shown = CORS.show(cors);
    put(&mut shown, [("forward_other_preflights", if_true(cors.forward_other_preflights))]);
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
