//! Rewriting of local responses by Envoy's `local_reply_config`.

use crate::http::{
    request::request_view::RequestView,
    route::header_changes::{self, Variables},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use quadrille_config::model::{
    HeaderPart, LocalReplies, ReplyBody, ReplyFilter, ReplyFormat, ReplyJson, ReplyMapper, ReplyPart,
};
use serde_json::Value;

/// A local response before it is sent.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Values for the format of a local response.
pub(crate) struct Known<'a> {
    pub(crate) request: &'a RequestView<'a>,
    pub(crate) values: &'a Variables<'a>,
}

/// Rewrites a local response according to the settings. Headers that describe the body are updated.
pub(crate) fn rewrite(reply: &mut Reply, replies: &LocalReplies, known: &Known<'_>) {
    let before = reply.body.clone();
    let mapper = replies.mappers.iter().find(|mapper| is_meant(&mapper.filter, reply.status, known.request));
    if let Some(mapper) = mapper {
        change(reply, mapper, known);
    }
    let format = mapper.and_then(|mapper| mapper.format.as_ref()).or(replies.format.as_ref());
    let mut content_type = "text/plain";
    if let Some(format) = format {
        reply.body = written(reply, format, known).into();
        content_type = &format.content_type;
    }
    if reply.body.is_empty() {
        reply.headers.remove(header::CONTENT_TYPE);
    } else if (reply.body != before || !reply.headers.contains_key(header::CONTENT_TYPE))
        && let Ok(content_type) = HeaderValue::from_str(content_type)
    {
        reply.headers.insert(header::CONTENT_TYPE, content_type);
    }
    if reply.headers.contains_key(header::CONTENT_LENGTH) {
        reply.headers.insert(header::CONTENT_LENGTH, reply.body.len().into());
    }
}

fn change(reply: &mut Reply, mapper: &ReplyMapper, known: &Known<'_>) {
    if let Some(body) = &mapper.body {
        reply.body = body.clone();
    }
    header_changes::apply(&mut reply.headers, true, &mapper.headers, known.values);
    reply.status = mapper.status.unwrap_or(reply.status);
}

fn is_meant(filter: &ReplyFilter, status: u16, request: &RequestView<'_>) -> bool {
    match filter {
        ReplyFilter::Status(comparison, value) => comparison.holds(status, *value),
        ReplyFilter::Header(header) => request.matches_header(header),
        ReplyFilter::All(filters) => filters.iter().all(|filter| is_meant(filter, status, request)),
        ReplyFilter::Any(filters) => filters.iter().any(|filter| is_meant(filter, status, request)),
    }
}

fn written(reply: &Reply, format: &ReplyFormat, known: &Known<'_>) -> String {
    match &format.body {
        ReplyBody::Text(parts) => text(parts, reply, known, if format.omit_empty { "" } else { "-" }),
        ReplyBody::Json(json) => {
            let value = value(json, reply, known, format.omit_empty).unwrap_or(Value::Null);
            format!("{value}\n")
        }
    }
}

/// Evaluates a JSON template; `None` is omitted.
fn value(json: &ReplyJson, reply: &Reply, known: &Known<'_>, omit: bool) -> Option<Value> {
    match json {
        ReplyJson::Object(members) => {
            let member = |(name, json): (&String, _)| Some((name.clone(), value(json, reply, known, omit)?));
            Some(Value::Object(members.iter().filter_map(member).collect()))
        }
        ReplyJson::Array(items) => {
            Some(items.iter().filter_map(|json| value(json, reply, known, omit)).collect())
        }
        ReplyJson::Text(parts) => match &parts[..] {
            [ReplyPart::Status] => Some(reply.status.into()),
            [ReplyPart::Literal(literal)] => Some(literal.as_str().into()),
            [only] => match part(only, reply, known) {
                Some(text) => Some(text.into()),
                None => (!omit).then_some(Value::Null),
            },
            parts => Some(text(parts, reply, known, if omit { "" } else { "-" }).into()),
        },
    }
}

fn text(parts: &[ReplyPart], reply: &Reply, known: &Known<'_>, unknown: &str) -> String {
    parts.iter().map(|one| part(one, reply, known).unwrap_or_else(|| unknown.to_owned())).collect()
}

/// Returns the value of a format part; `None` if it is unknown.
fn part(part: &ReplyPart, reply: &Reply, known: &Known<'_>) -> Option<String> {
    let found = match part {
        ReplyPart::Literal(literal) => return Some(literal.clone()),
        ReplyPart::Status => return Some(reply.status.to_string()),
        ReplyPart::Body => return Some(String::from_utf8_lossy(&reply.body).into_owned()),
        ReplyPart::Request(name) => known.request.first_value(name)?,
        ReplyPart::Known(HeaderPart::ResponseHeader(name)) => {
            String::from_utf8_lossy(reply.headers.get(name)?.as_bytes()).into_owned()
        }
        ReplyPart::Known(part) => known.values.value(part),
    };
    Some(found).filter(|text| !text.is_empty())
}
