//! What routes do that no key of the file says, and other front ends do.

use super::text_match::text_match;
use crate::{
    file::shown::{list, put},
    model::{HeaderChange, HeaderPart, HeaderText, HostRewrite, PathRewrite, QueryMatch},
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

pub(super) fn header_changes(changes: &[HeaderChange]) -> Value {
    list(changes.iter().map(header_change))
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
