//! Actions of routes: weighted shares and redirects.

use super::{header_changes, placeholders, route_shown::path_rewrite};
use crate::{
    Field, Problem,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::{if_true, list, put},
    },
    model::{Expression, Forward, PathMatch, PathRewrite, Redirect, Template, Weighted},
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

pub(super) const REDIRECT: Section<RedirectDraft, Redirect> = Section {
    path: "listeners[].routes[].redirect",
    about: "Redirects the client to another URL. Parts that are not given are those of the request.",
    keys: &[
        Key::new(
            "scheme",
            "`https` or `http`",
            Preset::Means("that of the request"),
            "The scheme of the URL. `redirect: https` is short for a mapping with this key alone.",
            |field, draft| draft.to.scheme = field.parse(values::scheme),
            |redirect| redirect.scheme.as_deref().into(),
        ),
        Key::new(
            "host",
            "host",
            Preset::Means("that of the request"),
            "The host of the URL. `{host}` stands for that of the request: `www.{host}`.",
            |field, draft| draft.to.host = field.parse(placeholders::host),
            |redirect| redirect.host.as_ref().map(placeholders::show).into(),
        ),
        Key::new(
            "port",
            "port",
            Preset::Means("that of the request, unless it is the old scheme's own"),
            "The port of the URL.",
            |field, draft| draft.to.port = field.parse(values::port),
            |redirect| redirect.port.into(),
        ),
        Key::new(
            "path",
            "path",
            Preset::Means("that of the request"),
            "The path of the URL. `{path}`, `{host}` and `{query}` stand for parts of the request, and `{1}` or \
                    `{name}` for a group of `path_regex`. With a placeholder, a query may follow: \
                    `/search?from={path}`; it replaces that of the request.",
            |field, draft| {
                let path = field.parse(|text| placeholders::path(text, draft.path.as_ref()));
                draft.to.path = path.map(whole_path);
            },
            |redirect| redirect.path.as_ref().and_then(show_whole_path).into(),
        ),
        Key::new(
            "status",
            "301, 302, 303, 307 or 308",
            Preset::Is("301"),
            "The status of the response. Clients cache 301 and 308, and repeat a request's method and \
                    body with 307 and 308.",
            |field, draft| field.set(&mut draft.to.status, values::redirect_status),
            |redirect| redirect.status.into(),
        ),
        Key::new(
            "strip_query",
            "`on` or `off`",
            Preset::Is("off"),
            "Remove the query.",
            |field, draft| field.set(&mut draft.to.strip_query, switch),
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

/// Values read for a redirect.
pub(super) struct RedirectDraft {
    to: Redirect,
    /// The expression whose groups the path may refer to.
    path: Option<Expression>,
}

/// Converts a path with or without placeholders to the model.
pub(super) fn whole_path(path: Template) -> PathRewrite {
    match path.as_literal() {
        Some(literal) => PathRewrite::Full(literal.to_owned()),
        None => PathRewrite::Template(path),
    }
}

/// Shows a rewrite of the whole path; `None` for others.
pub(super) fn show_whole_path(rewrite: &PathRewrite) -> Option<String> {
    match rewrite {
        PathRewrite::Full(path) => Some(path.clone()),
        PathRewrite::Template(template) => Some(placeholders::show(template)),
        PathRewrite::Prefix(_) | PathRewrite::Regex(..) => None,
    }
}

/// Reads a redirect. `path` is the route's `path_regex`, whose groups it may refer to.
pub(super) fn redirect(field: &Field<'_>, path: Option<&Expression>) -> Option<Redirect> {
    if field.is_scalar() {
        let scheme = field.parse(values::scheme)?;
        return Some(Redirect { scheme: Some(scheme), ..Redirect::https() });
    }
    let to = Redirect { scheme: None, ..Redirect::https() };
    let mut draft = RedirectDraft { to, path: path.cloned() };
    REDIRECT.read(field, &mut draft)?;
    if ["scheme", "host", "port", "path"].iter().all(|key| field.entry(key).is_none()) {
        field.error(Problem::new(
            "the redirect would lead to the same URL",
            "add `scheme`, `host`, `port` or `path`",
        ));
    }
    Some(draft.to)
}

pub(super) fn show_redirect(redirect: &Redirect) -> Value {
    let mut shown = REDIRECT.show(redirect);
    let rewrite = redirect.path.as_ref().filter(|path| show_whole_path(path).is_none());
    put(&mut shown, [("rewrite", rewrite.map(|rewrite| path_rewrite(rewrite, &PathMatch::any())).into())]);
    shown
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
