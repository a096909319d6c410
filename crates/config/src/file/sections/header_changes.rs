//! Changes to the headers of requests and responses.

use super::placeholders::{self, Piece};
use crate::{
    Field, Problem,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::list,
    },
    model::{Expression, HeaderChange, HeaderPart, HeaderText},
    quote,
    values::{changeable_header, duration, header_name},
};
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use std::time::Duration;

pub(super) const HEADER_CHANGE: Section<ChangeDraft, HeaderChange> = Section {
    path: "listeners[].routes[].response_headers[]",
    about: "A change to the headers of a response, or, in `request_headers`, of a request that is forwarded: one of \
            `set`, `append`, `add_if_absent`, `replace` and `remove`.",
    keys: &[
        Key::new(
            "set",
            "name of a header",
            Preset::Means("none"),
            "Sets the header to this value, in place of all its values. In requests, this and all other changes \
                    but `append` also concern the same name with `_` in place of `-`, which some servers treat as \
                    equal.",
            |field, draft| draft.take(field, HeaderChange::Set),
            |change| named(change, |change| matches!(change, HeaderChange::Set(..))),
        ),
        Key::new(
            "append",
            "name of a header",
            Preset::Means("none"),
            "Adds a value to the header.",
            |field, draft| draft.take(field, HeaderChange::Append),
            |change| named(change, |change| matches!(change, HeaderChange::Append(..))),
        ),
        Key::new(
            "add_if_absent",
            "name of a header",
            Preset::Means("none"),
            "Adds the header with this value if it is absent.",
            |field, draft| draft.take(field, HeaderChange::AddIfAbsent),
            |change| named(change, |change| matches!(change, HeaderChange::AddIfAbsent(..))),
        ),
        Key::new(
            "replace",
            "name of a header",
            Preset::Means("none"),
            "Sets the header to this value if it is present.",
            |field, draft| draft.take(field, HeaderChange::Replace),
            |change| named(change, |change| matches!(change, HeaderChange::Replace(..))),
        ),
        Key::new(
            "remove",
            "name of a header",
            Preset::Means("none"),
            "Removes the header.",
            |field, draft| draft.take(field, |name, _| HeaderChange::Remove(name)),
            |change| named(change, |change| matches!(change, HeaderChange::Remove(_))),
        ),
        Key::new(
            "value",
            "text",
            Preset::Means("required except for `remove`"),
            "The value, with variables in braces: `{client}` (address and port), `{client_ip}`, `{local}`, \
                    `{local_ip}`, `{protocol}` (`HTTP/2`), `{scheme}`, `{server_name}` (the SNI), `{tls_version}`, \
                    `{upstream}`, `{host}`, `{path}` and `{query}` of the request, `{1}` or `{name}` (a group of \
                    `path_regex`), `{request:NAME}` (a header of the request), and in responses `{response:NAME}`; of \
                    the client's certificate `{client_certificate_subject}` (as RFC 2253 writes it), \
                    `{client_certificate_uri}` and `{client_certificate_dns}` (the first of each) and \
                    `{client_certificate_sha256}`. `{{` is a literal brace. If the result is empty, the header is \
                    not added, and `set` removes the one that the client has sent.",
            |field, draft| draft.value = field.parse(|text| header_text(text, draft.path.as_ref())),
            show_value,
        ),
    ],
};

type Make = fn(HeaderName, HeaderText) -> HeaderChange;

/// Values read for a change.
#[derive(Default)]
pub(super) struct ChangeDraft {
    change: Option<(HeaderName, Make)>,
    value: Option<HeaderText>,
    /// The expression whose groups values may refer to.
    path: Option<Expression>,
}

impl ChangeDraft {
    fn take(&mut self, field: &Field<'_>, make: Make) {
        if self.change.is_some() {
            field.error(Problem::new("a change has one action", "write two changes"));
        }
        self.change = field.parse(changeable_header).map(|name| (name, make));
    }
}

/// Reads a list of changes, in order.
pub(super) fn header_changes(field: &Field<'_>) -> Vec<HeaderChange> {
    header_changes_of(field, None)
}

/// Reads the changes of a route, whose values may contain groups of its `path_regex`.
pub(super) fn header_changes_of(field: &Field<'_>, path: Option<&Expression>) -> Vec<HeaderChange> {
    field.items().iter().filter_map(|field| change(field, path)).collect()
}

fn change(field: &Field<'_>, path: Option<&Expression>) -> Option<HeaderChange> {
    const CHANGES: [&str; 5] = ["set", "append", "add_if_absent", "replace", "remove"];
    let mut draft = ChangeDraft { path: path.cloned(), ..ChangeDraft::default() };
    HEADER_CHANGE.read(field, &mut draft)?;
    if CHANGES.iter().all(|key| field.entry(key).is_none()) {
        field.error(Problem::new(
            "the change has no action",
            "write `set`, `append` or `remove` with a header's name",
        ));
    }
    let (name, make) = draft.change?;
    let removes = field.entry("remove").is_some();
    match field.entry("value") {
        Some(value) if removes => value.error(Problem::new("`remove` takes no value", "remove this")),
        None if !removes => field.error(Problem::new("`value` is missing", "write the header's value")),
        _ => {}
    }
    Some(make(name, draft.value.unwrap_or(HeaderText(Vec::new()))))
}

/// The variables without an argument.
const VARIABLES: [(&str, HeaderPart); 13] = [
    ("client", HeaderPart::Client),
    ("client_ip", HeaderPart::ClientIp),
    ("client_certificate_subject", HeaderPart::CertificateSubject),
    ("client_certificate_uri", HeaderPart::CertificateUri),
    ("client_certificate_dns", HeaderPart::CertificateDns),
    ("client_certificate_sha256", HeaderPart::CertificateSha256),
    ("local", HeaderPart::Local),
    ("local_ip", HeaderPart::LocalIp),
    ("protocol", HeaderPart::Protocol),
    ("scheme", HeaderPart::Scheme),
    ("server_name", HeaderPart::ServerName),
    ("tls_version", HeaderPart::TlsVersion),
    ("upstream", HeaderPart::Upstream),
];

/// Reads a value with variables in braces.
fn header_text(text: &str, path: Option<&Expression>) -> Result<HeaderText, Problem> {
    let part = |piece| match piece {
        Piece::Literal(text) => literal(&text),
        Piece::Name(name) => variable(name, path),
    };
    placeholders::pieces(text)?.into_iter().map(part).collect::<Result<_, _>>().map(HeaderText)
}

fn literal(text: &str) -> Result<HeaderPart, Problem> {
    let value = HeaderValue::try_from(text);
    value.map(HeaderPart::Literal).map_err(|_| format!("{} cannot be sent in a header", quote(text)).into())
}

fn variable(name: &str, path: Option<&Expression>) -> Result<HeaderPart, Problem> {
    match name.split_once(':') {
        Some(("request", name)) => return header_name(name).map(HeaderPart::RequestHeader),
        Some(("response", name)) => return header_name(name).map(HeaderPart::ResponseHeader),
        _ => {}
    }
    if let Some((_, part)) = VARIABLES.iter().find(|(known, _)| *known == name) {
        return Ok(part.clone());
    }
    placeholders::request_part(name, path)?.map(HeaderPart::Request).ok_or_else(|| {
        let known: Vec<_> = VARIABLES.iter().map(|(known, _)| format!("{{{known}}}")).collect();
        let known = format!("{}, {{host}}, {{path}}, {{query}}", known.join(", "));
        Problem::new(
            format!("unknown variable `{{{name}}}`"),
            format!("known are {known}, {{request:NAME}} and {{response:NAME}}; write `{{{{` for a brace"),
        )
    })
}

/// Reads `hsts` (RFC 6797): `off`, `on` for a year, or a duration.
pub(super) fn hsts(text: &str) -> Result<Option<HeaderChange>, Problem> {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let time = match switch(text) {
        Ok(true) => Some(YEAR),
        Ok(false) => None,
        Err(_) => Some(duration(text)?),
    };
    let change = |time: Duration| {
        let value = HeaderValue::try_from(format!("max-age={}", time.as_secs()));
        value.map(|value| {
            HeaderChange::Set(http::header::STRICT_TRANSPORT_SECURITY, HeaderText::literal(value))
        })
    };
    time.map(change).transpose().map_err(|_| Problem::from("this time cannot be sent in a header"))
}

pub(super) fn show(changes: &[HeaderChange]) -> Value {
    list(changes.iter().map(|change| HEADER_CHANGE.show(change)))
}

fn named(change: &HeaderChange, is_this: fn(&HeaderChange) -> bool) -> Value {
    if is_this(change) { change.name().as_str().into() } else { Value::Null }
}

fn show_value(change: &HeaderChange) -> Value {
    match change {
        HeaderChange::Remove(_) => Value::Null,
        HeaderChange::Append(_, text)
        | HeaderChange::AddIfAbsent(_, text)
        | HeaderChange::Set(_, text)
        | HeaderChange::Overwrite(_, text)
        | HeaderChange::Replace(_, text) => show_text(text).into(),
    }
}

fn show_text(text: &HeaderText) -> String {
    let part = |part: &HeaderPart| match part {
        HeaderPart::Literal(value) => String::from_utf8_lossy(value.as_bytes()).replace('{', "{{"),
        HeaderPart::Request(part) => placeholders::show_part(part),
        HeaderPart::RequestHeader(name) => format!("{{request:{name}}}"),
        HeaderPart::ResponseHeader(name) => format!("{{response:{name}}}"),
        other => {
            let known = VARIABLES.iter().find(|(_, known)| known == other);
            known.map(|(name, _)| format!("{{{name}}}")).unwrap_or_default()
        }
    };
    text.0.iter().map(part).collect()
}
