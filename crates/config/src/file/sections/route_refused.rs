//! Routes that a listener cannot have beside others, or in its mode.

use super::written_route::WrittenRoute;
use crate::{Diagnostic, Field, Problem, model::Action, values};
use std::collections::{
    HashMap,
    hash_map::Entry::{Occupied, Vacant},
};

/// A second route for the same requests could never match. `field` is the listener.
pub(super) fn refuse_shadowed(field: &Field<'_>, routes: &[WrittenRoute]) {
    let mut seen = HashMap::new();
    for WrittenRoute { host, route, .. } in routes {
        let conditions = format!("{:?} {:?}", route.path, route.headers);
        match seen.entry((host, conditions)) {
            Vacant(entry) => _ = entry.insert(route.place.line.unwrap_or_default()),
            Occupied(entry) => {
                let line = entry.get();
                let problem = Problem::new(
                    format!("never reached: the route on line {line} takes the same requests"),
                    "remove one",
                );
                field.report(Diagnostic::new(&route.place, problem));
            }
        }
    }
}

/// TCP mode passes bytes: there is one place where they can go. `field` is the listener.
pub(super) fn refuse_second_target(field: &Field<'_>, routes: &[WrittenRoute]) {
    if let [_, second, ..] = routes {
        let problem = Problem::new(
            "a listener in tcp mode has one target, and this is another",
            "keep a single `upstream`",
        );
        field.report(Diagnostic::new(&second.route.place, problem));
    }
}

/// What a route of a listener in TCP mode cannot have.
pub(super) fn refuse_http(field: &Field<'_>, route: &WrittenRoute) {
    const HTTP: [&str; 14] = [
        "host",
        "path",
        "path_exact",
        "path_regex",
        "headers",
        "rewrite",
        "timeout",
        "retry",
        "request_headers",
        "response_headers",
        "rate_limits",
        "basic_auth",
        "compression",
        "error_pages",
    ];
    for (key, written) in HTTP.iter().filter_map(|key| Some((key, field.entry(key)?))) {
        // What matches everything may be said.
        if (*key == "host" && written.parse(values::route_host) == Some(None))
            || (*key == "path" && written.parse(values::route_path) == Some(None))
        {
            continue;
        }
        written.error(Problem::new(format!("tcp mode sees no `{key}`"), "remove it, or use `mode: http`"));
    }
    match route.route.action {
        Action::Respond(_) => field.at("respond").error(NO_ANSWERS),
        Action::Redirect(_) => field.at("redirect").error(NO_ANSWERS),
        Action::Forward(_) => {}
    }
}

pub(super) const NO_ANSWERS: [&str; 2] =
    ["tcp mode has no answers of its own", "use `upstream`, or `mode: http`"];
