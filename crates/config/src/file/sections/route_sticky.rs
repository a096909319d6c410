//! Session affinity of requests.

use crate::{
    Field, Problem,
    file::{
        schema::{Key, Preset, Section},
        shown::{list, put, time},
    },
    model::{HashOn, HashPolicy},
    values::{duration, header_name, path},
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const STICKY: Section<StickyDraft, HashPolicy> = Section {
    path: "listeners[].routes[].sticky[]",
    about: "Session affinity: requests with the same value stay on one server. Each item has one of `cookie`, \
            `header`, `query` and `client_ip`; several items are combined. Requests without any of them go to any \
            server. For upstreams with `balance: hash`.",
    keys: &[
        Key::new(
            "cookie",
            "name",
            Preset::Means("none"),
            "The value of this cookie.",
            |field, draft| draft.cookie = field.parse(cookie_name),
            |policy| match &policy.on {
                HashOn::Cookie { name, .. } => name.as_str().into(),
                _ => Value::Null,
            },
        ),
        Key::new(
            "lifetime",
            "duration, or `0s`",
            Preset::Means("none is set"),
            "Lifetime of the cookie that is set in responses to requests without it; `0s`: until the browser \
                    is closed. Its value is random, and reveals nothing about the server.",
            |field, draft| draft.lifetime = field.parse(duration),
            |policy| match &policy.on {
                HashOn::Cookie { lifetime, .. } => lifetime.map(time).into(),
                _ => Value::Null,
            },
        ),
        Key::new(
            "path",
            "path",
            Preset::Is("/"),
            "The `Path` of the cookie that is set.",
            |field, draft| draft.path = field.parse(path),
            |policy| match &policy.on {
                HashOn::Cookie { path, .. } => path.as_deref().into(),
                _ => Value::Null,
            },
        ),
        Key::new(
            "header",
            "name",
            Preset::Means("none"),
            "The values of this header.",
            |field, draft| draft.on.extend(field.parse(header_name).map(HashOn::Header)),
            |policy| match &policy.on {
                HashOn::Header(name) => name.as_str().into(),
                _ => Value::Null,
            },
        ),
        Key::new(
            "query",
            "name",
            Preset::Means("none"),
            "The value of this parameter of the query.",
            |field, draft| draft.on.extend(field.text().map(str::to_owned).map(HashOn::Query)),
            |policy| match &policy.on {
                HashOn::Query(name) => name.as_str().into(),
                _ => Value::Null,
            },
        ),
    ],
};

/// Values read for an item.
#[derive(Default)]
pub(super) struct StickyDraft {
    cookie: Option<String>,
    lifetime: Option<Duration>,
    path: Option<String>,
    on: Vec<HashOn>,
}

/// Reads a list of mappings and `client_ip`.
pub(super) fn sticky(field: &Field<'_>) -> Vec<HashPolicy> {
    field.items_or_one().iter().filter_map(policy).collect()
}

fn policy(field: &Field<'_>) -> Option<HashPolicy> {
    if field.is_scalar() {
        return match field.text()? {
            "client_ip" => Some(HashPolicy { on: HashOn::ClientIp, terminal: false }),
            _ => field.fail(Problem::new(
                "unknown",
                "write `client_ip`, or a mapping with `cookie`, `header` or `query`",
            )),
        };
    }
    let mut draft = StickyDraft::default();
    STICKY.read(field, &mut draft)?;
    for key in ["lifetime", "path"].iter().filter_map(|key| field.entry(key)) {
        if draft.cookie.is_none() {
            key.error(Problem::new("there is no cookie", "remove this, or add `cookie`"));
        }
    }
    let StickyDraft { cookie, lifetime, path, mut on } = draft;
    let path = path.or_else(|| lifetime.map(|_| "/".to_owned()));
    on.extend(cookie.map(|name| HashOn::Cookie { name, lifetime, path }));
    if on.len() > 1 {
        return field.fail(Problem::new("more than one key", "write an item for each"));
    }
    match on.pop() {
        Some(on) => Some(HashPolicy { on, terminal: false }),
        // The mistake has been noted.
        None if ["cookie", "header", "query"].iter().any(|key| field.entry(key).is_some()) => None,
        None => field.fail(Problem::new("no key is given", "add `cookie`, `header` or `query`")),
    }
}

/// Reads the name of a cookie, which is a token (RFC 6265 section 4.1.1).
pub(super) fn cookie_name(text: &str) -> Result<String, Problem> {
    // The names of headers are tokens too.
    header_name(text).map(|_| text.to_owned()).map_err(|_| "not the name of a cookie".into())
}

/// Shows the hash policies of a route.
pub(super) fn show(policies: &[HashPolicy]) -> Value {
    list(policies.iter().map(|policy| match policy.on {
        HashOn::ClientIp => json!("client_ip"),
        _ => {
            let mut shown = STICKY.show(policy);
            put(&mut shown, [("terminal", policy.terminal.then_some(true).into())]);
            shown
        }
    }))
}
