//! Checks that refuse routes in conflict with others, or with the listener's mode.

use super::written_route::WrittenRoute;
use crate::{
    Diagnostic, Field, Problem,
    model::{Action, Route},
    values,
};
use std::collections::{
    HashMap,
    hash_map::Entry::{Occupied, Vacant},
};

/// Refuses a second route for the same requests, which would never match. `field` is the listener.
pub(super) fn refuse_shadowed(field: &Field<'_>, routes: &[WrittenRoute]) {
    let mut seen = HashMap::new();
    for (host, route) in
        routes.iter().flat_map(|written| written.hosts.iter().map(|host| (host, &written.route)))
    {
        let Route { path, methods, headers, query, cookies, .. } = route;
        let conditions = format!("{path:?} {methods:?} {headers:?} {query:?} {cookies:?}");
        match seen.entry((host, conditions)) {
            Vacant(entry) => _ = entry.insert(route.place.clone()),
            Occupied(entry) => {
                let first = field.line_of(entry.get());
                let problem = Problem::new(
                    format!("never reached: the route on {first} matches the same requests"),
                    "remove one",
                );
                field.report(Diagnostic::new(&route.place, problem));
            }
        }
    }
}

/// Refuses keys of a route that contradict each other.
pub(super) fn refuse_contradictions(field: &Field<'_>) {
    const PATHS: [&str; 3] = ["path", "path_exact", "path_regex"];
    let mut written = PATHS.iter().filter_map(|key| field.entry(key));
    if let (Some(_), Some(second)) = (written.next(), written.next()) {
        second.error(Problem::new("a route has one path", "remove one, or write two routes"));
    }
    if let Some(before) = field.entry("before_regex")
        && PATHS[1..].iter().any(|key| field.entry(key).is_some())
    {
        before.error(Problem::new("it orders prefixes only", "remove this, or use `path`"));
    }
    refuse_upstream_and_respond(field);
    const ACTIONS: [&str; 4] = ["upstream", "respond", "split", "redirect"];
    let written: Vec<_> = ACTIONS.into_iter().filter_map(|key| Some((key, field.entry(key)?))).collect();
    match &written[..] {
        [] => {
            field.error(Problem::new("no destination for matching requests", "add `upstream` or `respond`"));
        }
        [(first, _), .., ("split" | "redirect", last)] => {
            last.error(Problem::new(
                format!("`{first}` is given too, and a request goes to one of them"),
                "remove one",
            ));
        }
        _ => {}
    }
}

/// Refuses `upstream` and `respond` together, of a route or of a listener.
pub(super) fn refuse_upstream_and_respond(field: &Field<'_>) {
    if let (Some(_), Some(respond)) = (field.entry("upstream"), field.entry("respond")) {
        respond
            .error(Problem::new("`upstream` is given too, and a request goes to one of them", "remove one"));
    }
}

/// Refuses a second target in TCP mode, which forwards all bytes to one target. `field` is the listener.
pub(super) fn refuse_second_target(field: &Field<'_>, routes: &[WrittenRoute]) {
    if let [_, second, ..] = routes {
        let problem = Problem::new(
            "a listener in tcp mode has one target, and this is a second one",
            "keep a single `upstream`",
        );
        field.report(Diagnostic::new(&second.route.place, problem));
    }
}

/// Refuses keys of a route that have no meaning in TCP mode; `keys` are all that a route can have.
pub(super) fn refuse_http(field: &Field<'_>, route: &WrittenRoute, keys: impl Iterator<Item = &'static str>) {
    /// Targets: those that TCP mode has, and those that the action refuses with a reason of its own.
    const TARGETS: [&str; 4] = ["upstream", "split", "redirect", "respond"];
    let http = keys.filter(|key| !TARGETS.contains(key));
    for (key, written) in http.filter_map(|key| Some((key, field.entry(key)?))) {
        // A value that matches all requests is allowed.
        if (key == "host" && written.parse(values::route_host) == Some(None))
            || (key == "path" && written.parse(values::route_path) == Some(None))
        {
            continue;
        }
        written.error(Problem::new(format!("tcp mode has no `{key}`"), "remove it, or use `mode: http`"));
    }
    match route.route.action {
        Action::Respond(_) => field.at("respond").error(NO_ANSWERS),
        Action::Redirect(_) => field.at("redirect").error(NO_ANSWERS),
        Action::Forward(_) => {}
    }
}

pub(super) const NO_ANSWERS: [&str; 2] =
    ["tcp mode sends no responses of its own", "use `upstream`, or `mode: http`"];
