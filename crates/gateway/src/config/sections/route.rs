//! Routes, and the fixed answers that they may give.

use crate::{
    config::{
        reader::{Field, Mapping, unknown_name},
        schema::{Key, Preset, Section},
        values,
    },
    model::{Respond, Route, Target},
};
use std::collections::{
    HashMap,
    hash_map::Entry::{Occupied, Vacant},
};

pub(super) const ROUTE: Section = Section {
    path: "listeners[].routes[]",
    about: "Which requests go where. Each has either an `upstream` or a `respond`.",
    keys: &[
        Key {
            name: "host",
            value: "host, `*.domain` or `*`",
            preset: Preset::Is("\"*\""),
            about: "`example.com` matches that host, `*.example.com` every host with one label before it.",
        },
        Key {
            name: "path",
            value: "path",
            preset: Preset::Is("/"),
            about: "A prefix of whole segments: `/api` matches `/api` and `/api/users`, not `/apis`.",
        },
        Key {
            name: "upstream",
            value: "name of an upstream",
            preset: Preset::Means("none"),
            about: "The servers that get matching requests.",
        },
        Key {
            name: "respond",
            value: "text, or mapping",
            preset: Preset::Means("none"),
            about: "A fixed answer, without an upstream. Text alone is the body of an answer with status 200.",
        },
    ],
};

pub(super) const RESPOND: Section = Section {
    path: "listeners[].routes[].respond",
    about: "A fixed answer. It is kept in memory, so keep it short.",
    keys: &[
        Key { name: "status", value: "200 to 599", preset: Preset::Is("200"), about: "The HTTP status." },
        Key {
            name: "content_type",
            value: "media type",
            preset: Preset::Is("text/plain; charset=utf-8"),
            about: "The `Content-Type` of the body.",
        },
        Key { name: "body", value: "text", preset: Preset::Is("\"\""), about: "The whole body." },
    ],
};

/// A route to one of `upstreams`, or to a fixed answer.
pub(super) fn route(field: &Field<'_>, upstreams: &[&str]) -> Option<Route> {
    let keys = field.mapping(&ROUTE)?;
    let host = keys.read_or("host", None, values::route_host);
    let path = keys.read_or("path", None, values::route_path);
    if keys.get("upstream").is_none() && keys.get("respond").is_none() {
        field.error("nothing says where matching requests go; add `upstream` or `respond`");
    }
    let target = target(&keys, upstreams);
    Some(Route { host: host?, path: path?, target: target?, place: field.place() })
}

/// What the keys `upstream` and `respond` of a route or a listener say.
pub(super) fn target(keys: &Mapping<'_>, upstreams: &[&str]) -> Option<Target> {
    let (upstream, respond) = (keys.get("upstream"), keys.get("respond"));
    if let (Some(_), Some(respond)) = (&upstream, &respond) {
        respond.error("`upstream` is given too, and a request goes to one of them; remove one");
    }
    let respond = respond.and_then(|field| self::respond(&field)).map(Target::Respond);
    let upstream = upstream.and_then(|field| known(&field, upstreams)).map(Target::Upstream);
    upstream.or(respond)
}

fn known(field: &Field<'_>, upstreams: &[&str]) -> Option<String> {
    field.parse(|name| match upstreams.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(unknown_name(name, "upstream", upstreams)),
    })
}

fn respond(field: &Field<'_>) -> Option<Respond> {
    if field.is_scalar() {
        return field.text().map(|text| Respond::text(text.to_owned()));
    }
    let keys = field.mapping(&RESPOND)?;
    let mut respond = Respond::text("");
    keys.update("status", &mut respond.status, values::status);
    keys.update("content_type", &mut respond.content_type, values::header_value);
    keys.update("body", &mut respond.body, |text| Ok(text.to_owned().into()));
    if matches!(respond.status, 204 | 304) && !respond.body.is_empty() {
        field.at("body").error(format!("an answer with status {} has no body; remove it", respond.status));
    }
    Some(respond)
}

/// A second route for the same requests could never match.
pub(super) fn refuse_shadowed(routes: &[(Field<'_>, Route)]) {
    let mut seen = HashMap::new();
    for (field, route) in routes {
        match seen.entry((&route.host, &route.path)) {
            Vacant(entry) => _ = entry.insert(field.line()),
            Occupied(entry) => {
                let line = entry.get();
                field.error(format!(
                    "never reached: the route on line {line} takes the same requests; remove one"
                ));
            }
        }
    }
}
