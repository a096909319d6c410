//! Closed parts of route configurations: routes and virtual hosts of control planes that cannot be served. Their
//! requests get a 503 response, and the rest of the configuration is served.

use super::domains::domains;
use crate::{
    reader::{Field, Message, ReadMessage},
    request_condition::{header_matcher, header_matchers, path_match, query_matcher},
    schema,
};
use bytes::Bytes;
use quadrille_config::{
    Allowance,
    model::{Action, HeaderMatch, HeaderRule, PathMatch, Respond, Route, TextMatch, VirtualHost},
};

/// Reads a part. If it has mistakes, `closed` returns the closed part that replaces it, or `None` if they invalidate
/// the resource, as they do in the operator's own files, and after the allowance of the response is exhausted.
pub(super) fn read_or_close<T>(
    field: &Field<'_>,
    read: impl FnOnce() -> Option<T>,
    closed: impl FnOnce(&Field<'_>) -> Option<T>,
) -> Option<T> {
    if field.is_trusted() {
        return read();
    }
    let (found, mistakes) = field.apart(read);
    if found.is_some() && mistakes.is_empty() {
        return found;
    }
    let is_exhausted = field.allowance().is_some_and(Allowance::is_exhausted);
    let replacement = if is_exhausted { None } else { field.apart(|| closed(field)).0 };
    match replacement {
        Some(part) => {
            field.leave_out(mistakes);
            Some(part)
        }
        None => {
            mistakes.into_iter().for_each(|mistake| field.report(mistake));
            None
        }
    }
}

/// Returns a route that matches at least the requests of the one that cannot be served: they must not reach a later
/// route, which may be less guarded. Conditions that cannot be read are omitted.
pub(super) fn closed_route(field: &Field<'_>) -> Option<Route> {
    let message = field.message(&schema::ROUTE)?;
    let condition = message.get("match").and_then(|condition| condition.message(&schema::ROUTE_MATCH));
    let all = Route::new(PathMatch::any(), unavailable(), field.place());
    let named = Route { name: message.string("name"), ..all };
    let Some(condition) = condition else { return Some(named) };
    let path = readable(field, || path_match(&condition)).unwrap_or_else(PathMatch::any);
    let headers = if is_connect(&condition) { vec![never()] } else { readable_headers(&condition) };
    let query = condition.list("query_parameters");
    let query = query.iter().filter_map(|item| readable(item, || query_matcher(item))).collect();
    Some(Route { path, headers, query, ..named })
}

/// Returns a virtual host that rejects all requests for these domains; `None` if its domains cannot be read.
pub(super) fn closed_host(field: &Field<'_>) -> Option<VirtualHost> {
    let message = field.message(&schema::VIRTUAL_HOST)?;
    let domains = readable(field, || domains(&message))?;
    let route = Route::new(PathMatch::any(), unavailable(), field.place());
    Some(VirtualHost {
        name: message.string("name"),
        ..VirtualHost::new(domains, vec![route], field.place())
    })
}

fn unavailable() -> Action {
    Action::Respond(Respond { status: 503, content_type: "text/plain".into(), body: Bytes::new() })
}

/// Returns a value that was read without a mistake.
fn readable<T>(field: &Field<'_>, read: impl FnOnce() -> Option<T>) -> Option<T> {
    let (found, mistakes) = field.apart(read);
    found.filter(|_| mistakes.is_empty())
}

fn readable_headers(condition: &Message<'_>) -> Vec<HeaderMatch> {
    if let Some(all) = readable(condition.field(), || header_matchers(condition)) {
        return all;
    }
    let items = condition.list("headers");
    items.iter().filter_map(|item| readable(item, || header_matcher(item))).collect()
}

/// Returns whether the route matches only CONNECT requests, which are rejected before they are routed.
fn is_connect(condition: &Message<'_>) -> bool {
    ["connect_matcher", "connectMatcher"].iter().any(|key| condition.field().entry(key).is_some())
}

/// Returns a condition that no request meets.
fn never() -> HeaderMatch {
    let rule = HeaderRule::Text(TextMatch::exact(""));
    HeaderMatch { name: ":method".into(), rule, invert: false, missing_is_empty: false }
}
