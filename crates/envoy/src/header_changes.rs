//! Header mutations, with Envoy's `%...%` command operators in their values.

use crate::{
    config_source::header_value,
    reader::{Field, Message, ReadMessage},
    schema,
    values::enumeration,
};
use http::{HeaderName, HeaderValue};
use quadrille_config::{
    Problem,
    model::{HeaderChange, HeaderPart, HeaderText},
    quote,
};

/// Header mutations of one message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) request: Vec<HeaderChange>,
    pub(crate) response: Vec<HeaderChange>,
}

/// Order in which the mutations of a route, its virtual host and its route configuration are applied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    SpecificFirst,
    SpecificLast,
}

impl Changes {
    /// Reads the mutations of a message that has them under the usual names.
    pub(crate) fn read(message: &Message<'_>) -> Option<Self> {
        let request = changes(message, "request_headers_to_add", "request_headers_to_remove");
        let response = changes(message, "response_headers_to_add", "response_headers_to_remove");
        Some(Self { request: request?, response: response? })
    }

    /// Combines the mutations of requests and of responses; `all` starts with the most specific.
    pub(crate) fn together(all: [&Self; 3], order: Order) -> (Vec<HeaderChange>, Vec<HeaderChange>) {
        let mut all = all;
        if matches!(order, Order::SpecificLast) {
            all.reverse();
        }
        let request = all.iter().flat_map(|changes| changes.request.iter().cloned()).collect();
        (request, all.iter().flat_map(|changes| changes.response.iter().cloned()).collect())
    }
}

/// Reads the headers that a message adds under this name.
pub(crate) fn additions(message: &Message<'_>, add: &'static str) -> Option<Vec<HeaderChange>> {
    message.list(add).iter().map(addition).collect::<Vec<_>>().into_iter().collect()
}

/// Removals come before additions, as in Envoy.
fn changes(message: &Message<'_>, add: &'static str, remove: &'static str) -> Option<Vec<HeaderChange>> {
    let removed = message.list(remove).into_iter().map(|field| field.parse(name).map(HeaderChange::Remove));
    let removed: Option<Vec<_>> = removed.collect::<Vec<_>>().into_iter().collect();
    let added = additions(message, add);
    Some([removed?, added?].concat())
}

fn addition(field: &Field<'_>) -> Option<HeaderChange> {
    type Make = fn(HeaderName, HeaderText) -> HeaderChange;
    const ACTIONS: &[(&str, u32, Make)] = &[
        ("APPEND_IF_EXISTS_OR_ADD", 0, HeaderChange::Append),
        ("ADD_IF_ABSENT", 1, HeaderChange::AddIfAbsent),
        ("OVERWRITE_IF_EXISTS_OR_ADD", 2, HeaderChange::Overwrite),
        ("OVERWRITE_IF_EXISTS", 3, HeaderChange::Replace),
    ];
    let message = field.message(&schema::HEADER_OPTION)?;
    let header = message.require("header")?;
    let (key, value) = header_value(&header)?;
    let refuse = |problem: Problem| header.fail(problem);
    let key = match name(&key) {
        Ok(key) => key,
        Err(problem) => return refuse(problem),
    };
    let value = match format(&value) {
        Ok(value) => value,
        Err(problem) => return refuse(problem),
    };
    let action = match (message.get("append_action"), message.get("append")) {
        (Some(action), _) => action.parse(enumeration(ACTIONS))?,
        (None, Some(_)) if !message.flag("append") => HeaderChange::Overwrite,
        _ => HeaderChange::Append,
    };
    Some(action(key, value))
}

fn name(text: &str) -> Result<HeaderName, Problem> {
    if text.starts_with(':') || text.eq_ignore_ascii_case("host") {
        return Err(Problem::new(
            format!("{} cannot be changed as a header", quote(text)),
            "use the route's rewrites",
        ));
    }
    HeaderName::try_from(text).map_err(|_| format!("{} is not a header name", quote(text)).into())
}

/// Parses a value with Envoy's command operators.
pub(crate) fn format(text: &str) -> Result<HeaderText, Problem> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        literal.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(end) = rest.find('%') else {
            return Err(Problem::new(
                format!("unterminated `%` in {}", quote(text)),
                "write `%%` for a literal `%`",
            ));
        };
        if end == 0 {
            literal.push('%');
        } else {
            push_literal(&mut parts, &mut literal)?;
            parts.push(command(&rest[..end])?);
        }
        rest = &rest[end + 1..];
    }
    literal.push_str(rest);
    push_literal(&mut parts, &mut literal)?;
    Ok(HeaderText(parts))
}

fn push_literal(parts: &mut Vec<HeaderPart>, literal: &mut String) -> Result<(), Problem> {
    if literal.is_empty() {
        return Ok(());
    }
    let value = HeaderValue::try_from(literal.as_str())
        .map_err(|_| format!("{} cannot be sent in a header", quote(literal)))?;
    literal.clear();
    parts.push(HeaderPart::Literal(value));
    Ok(())
}

/// Parses the text between two `%`.
fn command(text: &str) -> Result<HeaderPart, Problem> {
    let argument = |prefix: &str| text.strip_prefix(prefix)?.strip_prefix('(')?.strip_suffix(')');
    if let Some(header) = argument("REQ") {
        return match header {
            ":SCHEME" | ":scheme" => Ok(HeaderPart::Scheme),
            _ => name(header).map(HeaderPart::RequestHeader),
        };
    }
    if let Some(header) = argument("RESP") {
        return name(header).map(HeaderPart::ResponseHeader);
    }
    let known = COMMANDS.iter().find(|(known, _)| *known == text);
    known.map(|(_, part)| part.clone()).ok_or_else(|| {
        let known: Vec<_> = COMMANDS.iter().map(|(known, _)| format!("%{known}%")).collect();
        Problem::new(
            format!("`%{text}%` is not supported"),
            format!("supported: %REQ(name)%, %RESP(name)%, {}", known.join(", ")),
        )
    })
}

/// Command operators without arguments.
pub(crate) const COMMANDS: &[(&str, HeaderPart)] = &[
    ("DOWNSTREAM_REMOTE_ADDRESS", HeaderPart::Client),
    ("DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT", HeaderPart::ClientIp),
    ("DOWNSTREAM_DIRECT_REMOTE_ADDRESS", HeaderPart::Client),
    ("DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT", HeaderPart::ClientIp),
    ("DOWNSTREAM_LOCAL_ADDRESS", HeaderPart::Local),
    ("DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT", HeaderPart::LocalIp),
    ("PROTOCOL", HeaderPart::Protocol),
    ("REQUESTED_SERVER_NAME", HeaderPart::ServerName),
    ("DOWNSTREAM_TLS_VERSION", HeaderPart::TlsVersion),
    ("UPSTREAM_CLUSTER", HeaderPart::Upstream),
];
