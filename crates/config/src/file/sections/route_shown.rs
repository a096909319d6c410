//! What routes do that no key of the file says, and other front ends do.

use super::text_match::text_match;
use crate::{
    file::shown::put,
    model::{HostRewrite, PathRewrite, QueryMatch},
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
