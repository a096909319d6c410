//! Request headers that the gateway sets to its own values, and that conditions read.

use super::written_route::WrittenRoute;
use crate::model::{
    Action, HashOn, HeaderChange, HeaderMatch, HeaderPart, HeaderText, RateLimit, RateLimitBy, RequestRule,
    RuleAction,
};
use http::HeaderName;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the names of the headers that the conditions of a listener read.
pub(super) fn read_by(
    rules: &[RequestRule],
    limits: &[RateLimit],
    routes: &[WrittenRoute],
) -> Vec<HeaderName> {
    let routes = || routes.iter().map(|written| &written.route);
    let of_routes = routes().flat_map(|route| &route.headers);
    let matches = rules.iter().flat_map(|rule| &rule.when.headers).chain(of_routes);
    let mut names: BTreeSet<&str> = matches.map(|HeaderMatch { name, .. }| name.as_str()).collect();
    let cookies = routes().any(|route| !route.cookies.is_empty());
    if cookies || rules.iter().any(|rule| !rule.when.cookies.is_empty()) {
        names.insert("cookie");
    }
    let of_rules = rules.iter().flat_map(|rule| match &rule.action {
        RuleAction::Limit(limits) => &limits[..],
        _ => &[],
    });
    let limits = limits.iter().chain(of_rules).chain(routes().flat_map(|route| route.rate_limits.limits()));
    names.extend(limits.filter_map(|limit| match &limit.by {
        RateLimitBy::Header(name) => Some(name.as_str()),
        RateLimitBy::All | RateLimitBy::Values | RateLimitBy::Client(..) => None,
    }));
    let hashed = routes().flat_map(|route| match &route.action {
        Action::Forward(to) => &to.hash[..],
        Action::Redirect(_) | Action::Respond(_) => &[],
    });
    names.extend(hashed.filter_map(|policy| match &policy.on {
        HashOn::Header(name) => Some(name.as_str()),
        _ => None,
    }));
    names.into_iter().filter_map(|name| name.parse().ok()).collect()
}

/// Returns the changes that give these headers the gateway's own value: every `set` of the listener, and those of
/// routes whose value is a fact about the connection. Of several with one name the first applies.
pub(super) fn own(
    read: &[HeaderName],
    of_listener: &[HeaderChange],
    routes: &[WrittenRoute],
) -> Vec<HeaderChange> {
    let of_routes = routes.iter().flat_map(|written| &written.route.request_headers);
    let of_routes = of_routes.filter(|change| set(change).is_some_and(|(_, text)| is_fact(text)));
    let mut own = BTreeMap::new();
    for change in of_listener.iter().chain(of_routes) {
        if let Some((name, text)) = set(change)
            && read.contains(name)
            && !is_derived(text)
        {
            own.entry(name.as_str()).or_insert(change);
        }
    }
    own.into_values().cloned().collect()
}

fn set(change: &HeaderChange) -> Option<(&HeaderName, &HeaderText)> {
    match change {
        HeaderChange::Set(name, text) => Some((name, text)),
        _ => None,
    }
}

/// Returns whether a value contains something that the client has sent, in a header or in the URL.
fn is_derived(text: &HeaderText) -> bool {
    text.0.iter().any(|part| matches!(part, HeaderPart::RequestHeader(_) | HeaderPart::Request(_)))
}

/// Returns whether a value contains a property of the connection.
fn is_fact(text: &HeaderText) -> bool {
    let is_other = |part: &HeaderPart| {
        matches!(part, HeaderPart::Literal(_) | HeaderPart::RequestHeader(_) | HeaderPart::Request(_))
    };
    text.0.iter().any(|part| !is_other(part))
}
