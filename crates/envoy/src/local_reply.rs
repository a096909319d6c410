//! Local reply modification.

use crate::{
    common::data_source,
    header_changes::{COMMANDS, additions},
    reader::{Field, ReadMessage},
    request_condition::header_matcher,
    schema,
    values::{enumeration, number},
};
use http::HeaderName;
use quadrille_config::{
    Problem,
    model::{
        Comparison, HeaderPart, LocalReplies, ReplyBody, ReplyFilter, ReplyFormat, ReplyJson, ReplyMapper,
        ReplyPart,
    },
    quote,
    yaml::{Entry, Value},
};
use std::collections::BTreeMap;

/// Reads `envoy.extensions.filters.network.http_connection_manager.v3.LocalReplyConfig`.
pub(crate) fn local_replies(field: &Field<'_>) -> Option<LocalReplies> {
    let message = field.message(&schema::LOCAL_REPLY)?;
    let mappers = all(message.list("mappers").iter().map(mapper))?;
    Some(LocalReplies { mappers, format: optional(message.get("body_format"), format)? })
}

/// Collects all items, after every mistake has been reported.
fn all<T>(read: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    read.collect::<Vec<_>>().into_iter().collect()
}

fn optional<'a, T>(
    field: Option<Field<'a>>,
    read: impl FnOnce(&Field<'a>) -> Option<T>,
) -> Option<Option<T>> {
    field.map_or(Some(None), |field| read(&field).map(Some))
}

fn mapper(field: &Field<'_>) -> Option<ReplyMapper> {
    let message = field.message(&schema::RESPONSE_MAPPER)?;
    Some(ReplyMapper {
        filter: filter(&message.require("filter")?)?,
        status: optional(message.get("status_code"), |code| code.parse(status))?,
        body: optional(message.get("body"), |body| written(body).map(Into::into))?,
        format: optional(message.get("body_format_override"), format)?,
        headers: additions(&message, "headers_to_add")?,
    })
}

fn status(text: &str) -> Result<u16, Problem> {
    let status = u16::try_from(number(text)?).ok().filter(|status| (200..600).contains(status));
    status
        .ok_or_else(|| Problem::new(format!("{} is not a response status", quote(text)), "write 200 to 599"))
}

/// Reads inline text.
fn written(field: &Field<'_>) -> Option<Vec<u8>> {
    let source = data_source(field)?;
    match source.path() {
        Some(_) => field.fail(Problem::new("refused: files are not supported here", "write `inline_string`")),
        None => source.read().ok().map(|bytes| bytes.to_vec()),
    }
}

fn filter(field: &Field<'_>) -> Option<ReplyFilter> {
    let message = field.message(&schema::ACCESS_LOG_FILTER)?;
    let kinds = ["status_code_filter", "header_filter", "and_filter", "or_filter"];
    match message.one_of(&kinds) {
        Some(("status_code_filter", of)) => by_status(&of),
        Some(("header_filter", of)) => {
            header_matcher(&of.message(&schema::HEADER_FILTER)?.require("header")?).map(ReplyFilter::Header)
        }
        Some(("and_filter", of)) => {
            all(of.message(&schema::AND_FILTER)?.list("filters").iter().map(filter)).map(ReplyFilter::All)
        }
        Some((_, of)) => {
            all(of.message(&schema::OR_FILTER)?.list("filters").iter().map(filter)).map(ReplyFilter::Any)
        }
        None => field.fail(Problem::new("no field is set", format!("write `{}`", kinds.join("`, `")))),
    }
}

fn by_status(field: &Field<'_>) -> Option<ReplyFilter> {
    const OPERATIONS: &[(&str, u32, Comparison)] = &[
        ("EQ", 0, Comparison::Equal),
        ("GE", 1, Comparison::AtLeast),
        ("LE", 2, Comparison::AtMost),
        ("NE", 3, Comparison::NotEqual),
    ];
    let comparison = field.message(&schema::STATUS_CODE_FILTER)?.require("comparison")?;
    let comparison = comparison.message(&schema::COMPARISON_FILTER)?;
    let operation = match comparison.get("op") {
        Some(op) => op.parse(enumeration(OPERATIONS))?,
        None => Comparison::Equal,
    };
    let value = comparison.require("value")?.message(&schema::RUNTIME_NUMBER)?;
    let value = value.number("default_value").unwrap_or_default();
    Some(ReplyFilter::Status(operation, u16::try_from(value).unwrap_or(u16::MAX)))
}

/// Reads `envoy.config.core.v3.SubstitutionFormatString`.
fn format(field: &Field<'_>) -> Option<ReplyFormat> {
    let message = field.message(&schema::SUBSTITUTION_FORMAT)?;
    let kinds = ["text_format", "text_format_source", "json_format"];
    let (body, usual) = match message.one_of(&kinds) {
        Some(("text_format", text)) => (ReplyBody::Text(text.parse(parts)?), "text/plain"),
        Some(("text_format_source", source)) => {
            let bytes = written(&source)?;
            match parts(&String::from_utf8_lossy(&bytes)) {
                Ok(parts) => (ReplyBody::Text(parts), "text/plain"),
                Err(problem) => return source.fail(problem),
            }
        }
        Some((_, object)) => (ReplyBody::Json(json(&object)?), "application/json"),
        None => {
            return field
                .fail(Problem::new("no field is set", "write `text_format_source` or `json_format`"));
        }
    };
    let own = message.string("content_type");
    let content_type = if own.is_empty() { usual.to_owned() } else { own };
    Some(ReplyFormat { content_type, body, omit_empty: message.flag("omit_empty_values") })
}

fn json(field: &Field<'_>) -> Option<ReplyJson> {
    match &field.node().value {
        Value::Mapping(entries) => {
            let member = |entry: &Entry| Some((entry.key.clone(), json(&field.child(entry))?));
            let members: Option<BTreeMap<_, _>> = entries.iter().map(member).collect();
            members.map(ReplyJson::Object)
        }
        Value::Sequence(_) => all(field.items().iter().map(json)).map(ReplyJson::Array),
        _ => field.parse(parts).map(ReplyJson::Text),
    }
}

/// Parses a text with Envoy's command operators.
fn parts(text: &str) -> Result<Vec<ReplyPart>, Problem> {
    let mut found = Vec::new();
    for (index, piece) in text.split('%').enumerate() {
        match (index % 2, piece) {
            (0, "") => {}
            (0, literal) => found.push(ReplyPart::Literal(literal.to_owned())),
            (_, "") => found.push(ReplyPart::Literal("%".to_owned())),
            (_, command) => found.push(part(command)?),
        }
    }
    match text.matches('%').count() % 2 {
        0 => Ok(found),
        _ => {
            Err(Problem::new(format!("unterminated `%` in {}", quote(text)), "write `%%` for a literal `%`"))
        }
    }
}

/// Parses the text between two `%`.
fn part(command: &str) -> Result<ReplyPart, Problem> {
    let argument = |prefix: &str| command.strip_prefix(prefix)?.strip_prefix('(')?.strip_suffix(')');
    let is_name = |name: &str| name.trim_start_matches(':').parse::<HeaderName>().is_ok();
    if let Some(name) = argument("REQ").filter(|name| is_name(name)) {
        return Ok(ReplyPart::Request(name.to_ascii_lowercase()));
    }
    if let Some(name) = argument("RESP").and_then(|name| name.parse().ok()) {
        return Ok(ReplyPart::Known(HeaderPart::ResponseHeader(name)));
    }
    match command {
        "RESPONSE_CODE" => return Ok(ReplyPart::Status),
        "LOCAL_REPLY_BODY" => return Ok(ReplyPart::Body),
        _ => {}
    }
    let known = COMMANDS.iter().find(|(known, _)| *known == command);
    known.map(|(_, part)| ReplyPart::Known(part.clone())).ok_or_else(|| {
        let known: Vec<_> = COMMANDS.iter().map(|(known, _)| format!("%{known}%")).collect();
        Problem::new(
            format!("`%{command}%` is not supported"),
            format!(
                "supported: %LOCAL_REPLY_BODY%, %RESPONSE_CODE%, %REQ(name)%, %RESP(name)%, {}",
                known.join(", ")
            ),
        )
    })
}
