//! Conditions of routes on request headers, in addition to host and path.

use super::text_match::{refuse_several, text_match};
use crate::{
    Field,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::{if_true, put},
    },
    model::{HeaderMatch, HeaderRule, TextMatch, TextRule},
    values,
};
use http::HeaderName;
use serde_json::Value;

pub(super) const HEADER: Section<HeaderDraft, HeaderMatch> = Section {
    path: "listeners[].routes[].headers[]",
    about: "A condition on a header of the request. If a header has several lines, one matching line suffices. \
            Without a condition on the value, the header must be present.",
    keys: &[
        Key::new(
            "name",
            "name of a header",
            Preset::Required,
            "The name of the header; case is ignored.",
            |field, draft| draft.name = field.parse(values::header_name),
            |header| header.name.as_str().into(),
        ),
        Key::new(
            "exact",
            "text",
            Preset::Means("none"),
            "The value is exactly this.",
            |field, draft| draft.text(field, TextRule::Exact),
            |header| show_text(header, "exact"),
        ),
        Key::new(
            "prefix",
            "text",
            Preset::Means("none"),
            "The value begins with this.",
            |field, draft| draft.text(field, TextRule::Prefix),
            |header| show_text(header, "prefix"),
        ),
        Key::new(
            "suffix",
            "text",
            Preset::Means("none"),
            "The value ends with this.",
            |field, draft| draft.text(field, TextRule::Suffix),
            |header| show_text(header, "suffix"),
        ),
        Key::new(
            "contains",
            "text",
            Preset::Means("none"),
            "The value contains this.",
            |field, draft| draft.text(field, TextRule::Contains),
            |header| show_text(header, "contains"),
        ),
        Key::new(
            "regex",
            "regular expression",
            Preset::Means("none"),
            "The whole value matches this expression, in the syntax of RE2 (without look-around).",
            |field, draft| draft.rule = field.parse(values::whole_regex).map(TextRule::Regex),
            |header| show_text(header, "regex"),
        ),
        Key::new(
            "present",
            "`on` or `off`",
            Preset::Means("`on`"),
            "Whether the header must be present, or absent.",
            |field, draft| draft.present = field.parse(switch),
            show_present,
        ),
        Key::new(
            "ignore_case",
            "`on` or `off`",
            Preset::Is("off"),
            "ASCII letters match in either case. With `regex`, begin the expression with `(?i)` instead.",
            |field, draft| field.set(&mut draft.ignore_case, switch),
            |header| show_text(header, "ignore_case"),
        ),
        Key::new(
            "invert",
            "`on` or `off`",
            Preset::Is("off"),
            "The header is present, and its value does not match.",
            |field, draft| field.set(&mut draft.invert, switch),
            |header| if_true(header.invert),
        ),
    ],
};

/// Values read for a condition.
#[derive(Default)]
pub(super) struct HeaderDraft {
    name: Option<HeaderName>,
    rule: Option<TextRule>,
    present: Option<bool>,
    ignore_case: bool,
    invert: bool,
}

/// Reads the conditions of a route.
pub(super) fn headers(field: &Field<'_>) -> Vec<HeaderMatch> {
    field.items().iter().filter_map(header).collect()
}

fn header(field: &Field<'_>) -> Option<HeaderMatch> {
    let mut draft = HeaderDraft::default();
    HEADER.read(field, &mut draft)?;
    refuse_several(field);
    let HeaderDraft { name, rule, present, ignore_case, invert } = draft;
    let rule = match rule {
        Some(rule) => HeaderRule::Text(TextMatch { rule, ignore_case }),
        None => HeaderRule::Present(present.unwrap_or(true)),
    };
    Some(HeaderMatch { name: name?.as_str().to_owned(), rule, invert, missing_is_empty: false })
}

impl HeaderDraft {
    fn text(&mut self, field: &Field<'_>, rule: fn(String) -> TextRule) {
        self.rule = field.text().map(|text| rule(text.to_owned()));
    }
}

pub(super) fn show(header: &HeaderMatch) -> Value {
    let mut shown = HEADER.show(header);
    put(&mut shown, [("missing_is_empty", if_true(header.missing_is_empty))]);
    if let HeaderRule::Range(from, to) = header.rule {
        put(&mut shown, [("from", from.into()), ("below", to.into())]);
    }
    shown
}

fn show_text(header: &HeaderMatch, key: &str) -> Value {
    match &header.rule {
        HeaderRule::Text(text) => text_match(text)[key].take(),
        HeaderRule::Present(_) | HeaderRule::Range(..) => Value::Null,
    }
}

fn show_present(header: &HeaderMatch) -> Value {
    match header.rule {
        HeaderRule::Present(there) => there.into(),
        HeaderRule::Text(_) | HeaderRule::Range(..) => Value::Null,
    }
}
