//! Routes that no request can take, because another one precedes them and matches all their requests.
//!
//! Only certain cases are found: a route that is reported is never taken, and one that is not reported may be so, too.

use super::sections::without_frame;
use crate::model::{
    CookieMatch, Gateway, HeaderMatch, HeaderRule, Listener, PathMatch, PathRule, Place, QueryMatch, Route,
    Serve, VirtualHost,
};
use std::collections::BTreeMap;

/// A route that is never taken, and the one that precedes it.
pub(super) struct Unreachable<'a> {
    pub(super) route: &'a Place,
    pub(super) first: &'a Place,
}

/// Maximum number of routes of a host that are compared with each other.
const MOST_ROUTES: usize = 2_000;

/// Returns the routes that are never taken, for none of their hosts.
pub(super) fn unreachable(gateway: &Gateway) -> Vec<Unreachable<'_>> {
    let chains = gateway.listeners.iter().flat_map(Listener::all_chains);
    let tables = chains.filter_map(|chain| match &chain.serve {
        Serve::Http(http) => Some(&http.routes),
        Serve::Tcp(_) => None,
    });
    tables.flat_map(|table| of_table(&table.hosts)).collect()
}

fn of_table(hosts: &[VirtualHost]) -> Vec<Unreachable<'_>> {
    // By path: a route has as many copies as hosts, and places do not differ otherwise.
    let mut copies = BTreeMap::<&str, (usize, Vec<Unreachable<'_>>)>::new();
    for routes in hosts.iter().map(|host| &host.routes[..]).filter(|routes| routes.len() <= MOST_ROUTES) {
        for (index, route) in routes.iter().enumerate() {
            let first = routes[..index].iter().find(|first| covers(first, route));
            let (all, found) = copies.entry(&route.place.path).or_default();
            *all += 1;
            found.extend(first.map(|first| Unreachable { route: &route.place, first: &first.place }));
        }
    }
    let never = copies.into_values().filter(|(all, found)| found.len() == *all);
    never.filter_map(|(_, found)| found.into_iter().next()).collect()
}

/// Returns whether a route certainly matches every request that another one matches.
fn covers(one: &Route, other: &Route) -> bool {
    covers_path(&one.path, &other.path)
        && covers_methods(one, other)
        && one.headers.iter().all(|wanted| other.headers.iter().any(|has| implies_header(has, wanted)))
        && one.query.iter().all(|wanted| other.query.iter().any(|has| implies_query(has, wanted)))
        && one.cookies.iter().all(|wanted| other.cookies.iter().any(|has| implies_cookie(has, wanted)))
}

fn covers_methods(one: &Route, other: &Route) -> bool {
    let all = |route: &Route| route.methods.is_empty();
    all(one) || !all(other) && other.methods.iter().all(|method| one.methods.contains(method))
}

fn implies_header(has: &HeaderMatch, wanted: &HeaderMatch) -> bool {
    let is_presence = wanted.rule == HeaderRule::Present(true) && !wanted.invert;
    let is_value = matches!(has.rule, HeaderRule::Text(_) | HeaderRule::Range(..));
    // Without a header, conditions on its value fail, inverted or not, unless it counts as empty.
    has == wanted || is_presence && is_value && has.name == wanted.name && !has.missing_is_empty
}

fn implies_query(has: &QueryMatch, wanted: &QueryMatch) -> bool {
    let is_presence = wanted.value.is_none() && !wanted.invert;
    let same = has.name == wanted.name && has.decode == wanted.decode;
    has == wanted || is_presence && same && has.value.is_some() && !has.invert
}

fn implies_cookie(has: &CookieMatch, wanted: &CookieMatch) -> bool {
    let is_presence = wanted.value.is_none() && !wanted.invert;
    has == wanted || is_presence && has.name == wanted.name && has.value.is_some() && !has.invert
}

fn covers_path(one: &PathMatch, other: &PathMatch) -> bool {
    if one == other {
        return true;
    }
    if one.ignore_case || other.ignore_case {
        return false;
    }
    match (&one.rule, &other.rule) {
        (_, PathRule::Exact(path)) => one.matches(path),
        (PathRule::Exact(_), _) => false,
        (PathRule::Prefix(prefix), PathRule::Prefix(path) | PathRule::Segments(path)) => {
            path.starts_with(prefix)
        }
        (PathRule::Segments(prefix), PathRule::Segments(path)) => is_below(path, prefix) || path == prefix,
        (PathRule::Segments(prefix), PathRule::Prefix(path)) => is_below(path, prefix),
        (PathRule::Prefix(prefix), PathRule::Regex(regex)) => {
            literal_start(without_frame(regex.as_str())).starts_with(prefix)
        }
        (PathRule::Segments(prefix), PathRule::Regex(regex)) => {
            is_below(literal_start(without_frame(regex.as_str())), prefix)
        }
        (PathRule::Regex(regex), PathRule::Prefix(path) | PathRule::Segments(path)) => {
            open_prefix(without_frame(regex.as_str())).is_some_and(|prefix| path.starts_with(prefix))
        }
        (PathRule::Regex(_), PathRule::Regex(_)) => false,
    }
}

/// Returns whether a text begins with whole segments, and continues.
fn is_below(text: &str, segments: &str) -> bool {
    text.strip_prefix(segments).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the text with which every match of an expression begins, as far as it is certain.
fn literal_start(expression: &str) -> &str {
    if expression.contains('|') {
        return "";
    }
    let start = expression.find(|c| !is_literal(c)).unwrap_or(expression.len());
    let (literal, rest) = expression.split_at(start);
    match rest.starts_with(['*', '?', '+', '{']) {
        // It concerns the last character.
        true => &literal[..literal.len().saturating_sub(1)],
        false => literal,
    }
}

/// Returns the text, if the expression is such a text followed by `.*`.
fn open_prefix(expression: &str) -> Option<&str> {
    expression.strip_suffix(".*").filter(|literal| literal.chars().all(is_literal))
}

/// Returns whether a character of an expression stands for itself.
fn is_literal(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '~' | '%')
}

#[cfg(test)]
mod tests {
    use crate::file::ConfigurationFile;

    /// Returns the warnings about a listener with these routes.
    fn warnings(routes: &str) -> Vec<String> {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("q.yaml");
        let certificates = "certificates: [{chain: c.pem, key: k.pem}]";
        let listener =
            format!("{{address: '127.0.0.1:1', {certificates}, upstream: web, routes: [{routes}]}}");
        let text = format!("listeners: [{listener}]\nupstreams: {{web: {{servers: ['a:1']}}}}\n");
        std::fs::write(&file, text).expect("a file");
        let loaded = ConfigurationFile::open(&file, None).expect("a file").read().expect("a configuration");
        loaded
            .warnings
            .iter()
            .map(|warning| format!("{}: {}", warning.place.path, warning.problem.message))
            .collect()
    }

    #[test]
    fn a_route_behind_one_that_matches_all_its_requests() {
        for (routes, taken) in [
            ("{path_regex: '/api/.*', upstream: web}, {path: /api/v1, upstream: web}", 1),
            ("{path_regex: '/.*', upstream: web}, {path: /api, upstream: web}", 1),
            (
                "{host: a.example, path: /, before_regex: on, upstream: web}, {host: a.example, path_regex: '/api/[0-9]+', upstream: web}",
                1,
            ),
            ("{path: /api, before_regex: on, upstream: web}, {path_regex: '/api/v[0-9]+', upstream: web}", 1),
            ("{path: /a, before_regex: on, upstream: web}, {path: /a/b, upstream: web}", 1),
            (
                "{path_regex: '/a.*', methods: [GET, PUT], upstream: web}, {path: /ab, methods: [PUT], headers: [{name: x}], upstream: web}",
                1,
            ),
            (
                "{path_regex: '/a.*', headers: [{name: x}], upstream: web}, {path: /ab, headers: [{name: x, exact: y}], upstream: web}",
                1,
            ),
            (
                "{path_regex: '/a.*', cookies: [{name: x}], upstream: web}, {path: /ab, cookies: [{name: x, exact: y}], upstream: web}",
                1,
            ),
            (
                "{path_regex: '/a.*', queries: [{name: x}], upstream: web}, {path: /ab, queries: [{name: x, prefix: y}], upstream: web}",
                1,
            ),
            (
                "{host: [a.example, b.example], path_regex: '/a.*', upstream: web}, {host: [a.example, b.example], path: /ab, upstream: web}",
                1,
            ),
        ] {
            let found = warnings(routes);
            assert_eq!(found.len(), taken, "{routes}: {found:?}");
            assert!(found[0].starts_with("listeners[0].routes[1]: never taken"), "{routes}: {found:?}");
        }
    }

    #[test]
    fn a_route_that_some_request_takes_is_not_reported() {
        for routes in [
            "{path: /api, upstream: web}, {path: /api/v1, upstream: web}",
            "{path_regex: '/api/[0-9]+', upstream: web}, {path: /api/v1, upstream: web}",
            "{path_regex: '/api', upstream: web}, {path: /api, upstream: web}",
            "{path_regex: '/api.v.*', upstream: web}, {path: /api, upstream: web}",
            "{path: /api, before_regex: on, upstream: web}, {path_regex: '/api[0-9]*', upstream: web}",
            "{path: /api, before_regex: on, upstream: web}, {path_regex: '/api/|/x', upstream: web}",
            "{path: /api/a, before_regex: on, upstream: web}, {path_regex: '/api/a/?.*', upstream: web}",
            "{path_regex: '/a.*', methods: [GET], upstream: web}, {path: /ab, upstream: web}",
            "{path_regex: '/a.*', headers: [{name: x, exact: y}], upstream: web}, {path: /ab, headers: [{name: x}], upstream: web}",
            "{path_regex: '/a.*', headers: [{name: x}], upstream: web}, {path: /ab, headers: [{name: z}], upstream: web}",
            "{path_regex: '/a.*', cookies: [{name: x}], upstream: web}, {path: /ab, cookies: [{name: x, present: off}], upstream: web}",
            "{host: a.example, path_regex: '/a.*', upstream: web}, {host: [a.example, b.example], path: /ab, upstream: web}",
            "{path_regex: '/.*', upstream: web}",
        ] {
            assert_eq!(warnings(routes), Vec::<String>::new(), "{routes}");
        }
    }
}
