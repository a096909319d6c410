//! Conditions on methods, query parameters, cookies and hosts, of routes and of rules.

use super::text_match::{refuse_several, text_match};
use crate::{
    Field, Problem,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::{if_true, list},
    },
    model::{CookieMatch, Domain, QueryMatch, TextMatch, TextRule},
    quote, values,
};
use http::Method;
use serde_json::Value;

pub(super) const QUERY: Section<ValueDraft, ValueShown> = Section {
    path: "listeners[].routes[].queries[]",
    about: "A condition on a parameter of the query, with its name and value decoded: `a+b` and `a%20b` are `a b`. If \
            it occurs several times, the first occurrence counts for a route, and any for a rule. Without a condition \
            on the value, the parameter must be present.",
    keys: KEYS,
};

pub(super) const COOKIE: Section<ValueDraft, ValueShown> = Section {
    path: "listeners[].routes[].cookies[]",
    about: "A condition on a cookie. If it occurs several times, the first occurrence counts for a route, and any for a \
            rule. Without a condition on the value, the cookie must be present.",
    keys: KEYS,
};

const KEYS: &[Key<ValueDraft, ValueShown>] = &[
    Key::new(
        "name",
        "name",
        Preset::Required,
        "The name; upper and lower case differ.",
        |field, draft| draft.name = field.parse(name),
        |shown| shown.name.as_str().into(),
    ),
    Key::new(
        "exact",
        "text",
        Preset::Means("none"),
        "The value is exactly this.",
        |field, draft| draft.text(field, TextRule::Exact),
        |shown| shown.text("exact"),
    ),
    Key::new(
        "prefix",
        "text",
        Preset::Means("none"),
        "The value begins with this.",
        |field, draft| draft.text(field, TextRule::Prefix),
        |shown| shown.text("prefix"),
    ),
    Key::new(
        "suffix",
        "text",
        Preset::Means("none"),
        "The value ends with this.",
        |field, draft| draft.text(field, TextRule::Suffix),
        |shown| shown.text("suffix"),
    ),
    Key::new(
        "contains",
        "text",
        Preset::Means("none"),
        "The value contains this.",
        |field, draft| draft.text(field, TextRule::Contains),
        |shown| shown.text("contains"),
    ),
    Key::new(
        "regex",
        "regular expression",
        Preset::Means("none"),
        "The whole value matches this expression, in the syntax of RE2 (without look-around).",
        |field, draft| draft.rule = field.parse(values::whole_regex).map(TextRule::Regex),
        |shown| shown.text("regex"),
    ),
    Key::new(
        "present",
        "`on` or `off`",
        Preset::Means("`on`"),
        "Whether it must be present, or absent.",
        |field, draft| draft.present = field.parse(switch),
        |shown| shown.value.is_none().then_some(!shown.invert).into(),
    ),
    Key::new(
        "ignore_case",
        "`on` or `off`",
        Preset::Is("off"),
        "ASCII letters of the value match in either case. With `regex`, begin the expression with `(?i)` instead.",
        |field, draft| field.set(&mut draft.ignore_case, switch),
        |shown| shown.text("ignore_case"),
    ),
    Key::new(
        "invert",
        "`on` or `off`",
        Preset::Is("off"),
        "It is present, and its value does not match.",
        |field, draft| field.set(&mut draft.invert, switch),
        |shown| if_true(shown.invert && shown.value.is_some()),
    ),
];

/// Values read for a condition.
#[derive(Default)]
pub(super) struct ValueDraft {
    name: Option<String>,
    rule: Option<TextRule>,
    present: Option<bool>,
    ignore_case: bool,
    invert: bool,
}

/// A condition on a parameter or a cookie.
pub(super) struct ValueShown {
    name: String,
    value: Option<TextMatch>,
    invert: bool,
}

impl ValueDraft {
    fn text(&mut self, field: &Field<'_>, rule: fn(String) -> TextRule) {
        self.rule = field.text().map(|text| rule(text.to_owned()));
    }
}

impl ValueShown {
    fn text(&self, key: &str) -> Value {
        self.value.as_ref().map_or(Value::Null, |value| text_match(value)[key].take())
    }
}

/// Reads conditions on query parameters.
pub(super) fn queries(field: &Field<'_>) -> Vec<QueryMatch> {
    let conditions = conditions(field, &QUERY).into_iter();
    conditions
        .map(|ValueShown { name, value, invert }| QueryMatch { name, value, invert, decode: true })
        .collect()
}

/// Reads conditions on cookies.
pub(super) fn cookies(field: &Field<'_>) -> Vec<CookieMatch> {
    let conditions = conditions(field, &COOKIE).into_iter();
    conditions.map(|ValueShown { name, value, invert }| CookieMatch { name, value, invert }).collect()
}

fn conditions(field: &Field<'_>, section: &Section<ValueDraft, ValueShown>) -> Vec<ValueShown> {
    field.items().iter().filter_map(|field| condition(field, section)).collect()
}

fn condition(field: &Field<'_>, section: &Section<ValueDraft, ValueShown>) -> Option<ValueShown> {
    let mut draft = ValueDraft::default();
    section.read(field, &mut draft)?;
    refuse_several(field);
    let ValueDraft { name, rule, present, ignore_case, invert } = draft;
    let value = rule.map(|rule| TextMatch { rule, ignore_case });
    let invert = if value.is_some() { invert } else { invert == present.unwrap_or(true) };
    Some(ValueShown { name: name?, value, invert })
}

/// Reads a list of methods.
pub(super) fn methods(field: &Field<'_>) -> Vec<Method> {
    field.items().iter().filter_map(|field| field.parse(method)).collect()
}

/// Parses a method.
pub(super) fn method(text: &str) -> Result<Method, Problem> {
    let problem =
        || Problem::new(format!("{} is not a method", quote(text)), "write `GET`, `POST` or the like");
    text.parse::<Method>().map_err(|_| problem())
}

/// Reads one host or a list of hosts; `None` stands for every host.
pub(super) fn hosts(field: &Field<'_>) -> Option<Vec<Option<String>>> {
    let mut hosts = Vec::new();
    for field in field.items_or_one() {
        let host = field.parse(values::route_host)?;
        if hosts.contains(&host) {
            return field.fail(Problem::new("this host is listed twice", "remove one"));
        }
        hosts.push(host);
    }
    Some(hosts)
}

/// Converts a host of the file to the model.
pub(super) fn domain(host: Option<&str>) -> Domain {
    match host.map(str::to_ascii_lowercase) {
        None => Domain::Any,
        Some(host) => match host.strip_prefix("*.") {
            Some(parent) => Domain::Below(parent.to_owned()),
            None => Domain::Exact(host),
        },
    }
}

pub(super) fn show_methods(methods: &[Method]) -> Value {
    list(methods.iter().map(|method| method.as_str().into()))
}

pub(super) fn show_queries(queries: &[QueryMatch]) -> Value {
    list(queries.iter().map(|QueryMatch { name, value, invert, decode: _ }| {
        QUERY.show(&ValueShown { name: name.clone(), value: value.clone(), invert: *invert })
    }))
}

pub(super) fn show_cookies(cookies: &[CookieMatch]) -> Value {
    list(cookies.iter().map(|CookieMatch { name, value, invert }| {
        COOKIE.show(&ValueShown { name: name.clone(), value: value.clone(), invert: *invert })
    }))
}

fn name(text: &str) -> Result<String, Problem> {
    match text {
        "" => Err(Problem::new("the name is empty", "write the name of the parameter or cookie")),
        _ => Ok(text.to_owned()),
    }
}
