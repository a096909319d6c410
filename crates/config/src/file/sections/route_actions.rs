//! Actions of routes: weighted shares and redirects.

use super::{header_changes, route_shown::path_rewrite};
use crate::{
    Field, Problem,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::{if_true, list, put},
    },
    model::{Forward, PathRewrite, Redirect, Weighted},
    values,
};
use serde_json::Value;

pub(super) const SPLIT: Section<Weighted> = Section {
    path: "listeners[].routes[].split[]",
    about: "A share of the requests.",
    keys: &[
        Key::new(
            "upstream",
            "name of an upstream",
            Preset::Required,
            "The upstream that receives this share.",
            |field, share| share.upstream = field.upstream_name().unwrap_or_default(),
            |share| share.upstream.as_str().into(),
        ),
        Key::new(
            "weight",
            "count",
            Preset::Is("1"),
            "The weight of this share, relative to the others. Each request is assigned at random, \
                    independently of others.",
            |field, share| field.set(&mut share.weight, values::weight),
            |share| share.weight.get().into(),
        ),
    ],
};

pub(super) const REDIRECT: Section<Redirect> = Section {
    path: "listeners[].routes[].redirect",
    about: "Redirects the client to another URL. Parts that are not given are those of the request.",
    keys: &[
        Key::new(
            "scheme",
            "`https` or `http`",
            Preset::Means("that of the request"),
            "The scheme of the URL. `redirect: https` is short for a mapping with this key alone.",
            |field, redirect| redirect.scheme = field.parse(values::scheme),
            |redirect| redirect.scheme.as_deref().into(),
        ),
        Key::new(
            "host",
            "host",
            Preset::Means("that of the request"),
            "The host of the URL.",
            |field, redirect| redirect.host = field.parse(values::host),
            |redirect| redirect.host.as_deref().into(),
        ),
        Key::new(
            "port",
            "port",
            Preset::Means("that of the request, unless it is the old scheme's own"),
            "The port of the URL.",
            |field, redirect| redirect.port = field.parse(values::port),
            |redirect| redirect.port.into(),
        ),
        Key::new(
            "path",
            "path",
            Preset::Means("that of the request"),
            "The path of the URL.",
            |field, redirect| redirect.path = field.parse(values::path).map(PathRewrite::Full),
            |redirect| full_path(redirect).into(),
        ),
        Key::new(
            "status",
            "301, 302, 303, 307 or 308",
            Preset::Is("301"),
            "The status of the response. Clients cache 301 and 308, and repeat a request's method and \
                    body with 307 and 308.",
            |field, redirect| field.set(&mut redirect.status, values::redirect_status),
            |redirect| redirect.status.into(),
        ),
        Key::new(
            "strip_query",
            "`on` or `off`",
            Preset::Is("off"),
            "Remove the query.",
            |field, redirect| field.set(&mut redirect.strip_query, switch),
            |redirect| if_true(redirect.strip_query),
        ),
    ],
};

/// Reads the shares of several upstreams.
pub(super) fn split(field: &Field<'_>) -> Vec<Weighted> {
    let share = |field: &Field<'_>| {
        let mut share = Weighted::all("");
        SPLIT.read(field, &mut share)?;
        Some(share)
    };
    field.items().iter().filter_map(share).collect()
}

fn show_share(share: &Weighted) -> Value {
    let mut shown = SPLIT.show(share);
    put(
        &mut shown,
        [
            ("request_headers", header_changes::show(&share.request_headers)),
            ("response_headers", header_changes::show(&share.response_headers)),
        ],
    );
    shown
}

/// Reads a redirect.
pub(super) fn redirect(field: &Field<'_>) -> Option<Redirect> {
    if field.is_scalar() {
        let scheme = field.parse(values::scheme)?;
        return Some(Redirect { scheme: Some(scheme), ..Redirect::https() });
    }
    let mut redirect = Redirect { scheme: None, ..Redirect::https() };
    REDIRECT.read(field, &mut redirect)?;
    if ["scheme", "host", "port", "path"].iter().all(|key| field.entry(key).is_none()) {
        field.error(Problem::new(
            "the redirect would lead to the same URL",
            "add `scheme`, `host`, `port` or `path`",
        ));
    }
    Some(redirect)
}

pub(super) fn show_redirect(redirect: &Redirect) -> Value {
    let mut shown = REDIRECT.show(redirect);
    let rewrite = redirect.path.as_ref().filter(|path| !matches!(path, PathRewrite::Full(_)));
    put(&mut shown, [("rewrite", rewrite.map(path_rewrite).into())]);
    shown
}

fn full_path(redirect: &Redirect) -> Option<&str> {
    match &redirect.path {
        Some(PathRewrite::Full(path)) => Some(path),
        _ => None,
    }
}

/// The upstream of a route without a split.
pub(super) fn only_upstream(forward: &Forward) -> Option<&str> {
    match &forward.to[..] {
        [only] if only.request_headers.is_empty() && only.response_headers.is_empty() => Some(&only.upstream),
        _ => None,
    }
}

pub(super) fn show_split(forward: &Forward) -> Value {
    match only_upstream(forward) {
        Some(_) => Value::Null,
        None => list(forward.to.iter().map(show_share)),
    }
}
