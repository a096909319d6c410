//! Content of a location: a response, a redirect, or servers.

use super::{
    access::{Internal, internal_location},
    headers,
    location::{Kind, Placed},
    scope::Scope,
    statement::Statement,
    upstream::{self, Destination},
    world::World,
};
use crate::expression;
use crate::{
    draft::{Action, Path, Route},
    yaml::Map,
};
use quadrille_draft::target::{Target, target};
use quadrille_draft::variables::{Context, Piece, pieces};

/// Applies a `return` to a route.
pub(super) fn respond(route: &mut Route, one: &Statement, context: &Context, world: &World<'_>) {
    world.ledger.converted(one.id);
    let (status, text) = match (one.arg(0).parse::<u16>(), one.args.len()) {
        (Ok(status), 1) => (status, None),
        (Ok(status), _) => (status, Some(one.arg(1))),
        (Err(_), _) => (302, Some(one.arg(0))),
    };
    match text {
        Some(text) if [301, 302, 303, 307, 308].contains(&status) => {
            match target(text, status, false, context) {
                Ok(target) => apply(route, target, status),
                Err(problem) => {
                    world.ledger.refused(one.id, format!("{problem}: write `redirect`"));
                    route.close(503, &format!("{}: {problem}", world.ledger.shown(one.id)));
                }
            }
        }
        _ => route.action = fixed(status, text, one, world),
    }
}

/// Makes the route redirect to a target.
pub(super) fn apply(route: &mut Route, target: Target, status: u16) {
    match target {
        Target::Redirect(redirect) => route.action = Action::Redirect(redirect),
        Target::Location(location) => {
            route.action = Action::status(status);
            route.keys.push("response_headers", Map::of("set", "Location").with("value", location));
        }
    }
}

/// Returns a fixed response.
pub(super) fn fixed(status: u16, text: Option<&str>, one: &Statement, world: &World<'_>) -> Action {
    if !(200..=599).contains(&status) {
        return Action::status(503);
    }
    if status == 444 {
        world.ledger.differs(one.id, "the response is 403, and the connection stays open");
        return Action::status(403);
    }
    let mut respond = Map::of("status", u64::from(status));
    if let Some(text) = text {
        if pieces(text).iter().any(|piece| matches!(piece, Piece::Variable(_))) {
            world.ledger.differs(one.id, "the body has variables, and is left out");
        } else if !text.is_empty() {
            respond.set("body", text);
        }
    }
    Action::Respond(respond)
}

/// Makes the route forward to the servers of a `proxy_pass`, with the path and the headers that they receive.
pub(super) fn forward(
    route: &mut Route,
    placed: &Placed<'_>,
    (pass, scope): (&Statement, &Scope<'_>),
    context: &Context,
    world: &World<'_>,
) {
    match upstream::destination(pass, scope, context, world) {
        Ok(to) => {
            world.ledger.converted(pass.id);
            rewrite(route, placed, &to, pass, world);
            headers::of_request(route, scope, &to.host, context, world);
            if let Some(sticky) = to.sticky {
                route.keys.set("sticky", vec![sticky]);
            }
            // A closed route names the upstream that it would have.
            route.action = Action::Upstream(to.upstream);
        }
        Err(problem) => {
            world.ledger.refused(pass.id, problem.clone());
            headers::of_request(route, scope, "", context, world);
            route.close(503, &format!("{}: {problem}", world.ledger.shown(pass.id)));
        }
    }
}

/// Sets the path that servers receive: the part that the location matches is replaced by the URI of `proxy_pass`.
fn rewrite(route: &mut Route, placed: &Placed<'_>, to: &Destination, pass: &Statement, world: &World<'_>) {
    let Some(uri) = &to.uri else { return };
    let escaped = uri.replace('{', "{{");
    match (placed.location.kind, &placed.path) {
        (Kind::Exact, _) => route.keys.set("rewrite", escaped),
        (Kind::Prefix | Kind::FirstPrefix, Path::Regex(_)) => {
            route.keys.set("rewrite", format!("{escaped}{{1}}"));
        }
        (Kind::Prefix | Kind::FirstPrefix, _) if *uri == placed.location.text => {}
        (Kind::Prefix | Kind::FirstPrefix, _) => {
            let trimmed = uri.trim_end_matches('/');
            route.keys.set("rewrite", if trimmed.is_empty() { "/" } else { trimmed });
        }
        (Kind::Regex { .. } | Kind::Internal, _) => {
            world.ledger.differs(pass.id, "servers receive the path of the request");
        }
    }
}

/// Returns whether a URI replaces a prefix only together with what follows it: `/api/` by `/v1`, or by `/v1*`.
pub(super) fn needs_rest(location: &str, pass: Option<&Statement>) -> bool {
    let Some(pass) = pass else { return false };
    let rest = pass.arg(0).split_once("://").map_or("", |(_, rest)| rest);
    let Some(uri) = rest.find('/').map(|at| &rest[at..]) else { return false };
    !rest.starts_with("unix:") && (!uri.ends_with('/') || uri.contains('{') || !location.ends_with('/'))
}

/// Returns the statement that forwards the requests of a location, with its scope: that of a named location after
/// `try_files` if the location has none.
pub(super) fn pass<'a>(
    scope: &Scope<'a>,
    internal: &Internal<'a>,
    world: &World<'_>,
) -> Option<(&'a Statement, Scope<'a>)> {
    let own = scope.own();
    if let Some(pass) = own.iter().find(|one| is_pass(one)) {
        return Some((pass, scope.clone()));
    }
    let tried = own.iter().find(|one| one.name == "try_files")?;
    let last = tried.args.last().filter(|last| last.starts_with('@'))?;
    let (_, place) = internal_location(last, internal)?;
    let pass = place.own().iter().find(|one| is_pass(one))?;
    world.ledger.differs(tried.id, "files are not served: all requests go to the last location");
    Some((pass, place))
}

/// Returns whether the statement forwards to servers of HTTP.
pub(super) fn is_pass(one: &Statement) -> bool {
    one.name == "proxy_pass" || one.name == "grpc_pass"
}

/// Converts a `rewrite` with `break` inside a location that forwards: the route for paths that it matches, with the path for
/// servers.
pub(super) fn rewritten(route: &Route, placed: &Placed<'_>, one: &Statement) -> Option<Route> {
    let (from, to) = (one.arg(0), one.arg(1));
    let Path::Regex(_) = &placed.path else { return None };
    // The expression must not match outside the location.
    let literal = expression::literal(&placed.location.text);
    let is_inside =
        from.starts_with(&format!("^{}", placed.location.text)) || from.starts_with(&format!("^{literal}"));
    if !is_inside || !matches!(placed.location.kind, Kind::Prefix | Kind::FirstPrefix) {
        return None;
    }
    let whole = expression::whole(from, false).ok()?;
    let groups = quadrille_config::values::whole_regex(&whole).ok()?.captures_len();
    let mut path = String::new();
    for piece in pieces(to.trim_end_matches('?')) {
        match piece {
            Piece::Text(text) => path.push_str(&text.replace('{', "{{")),
            Piece::Variable(name) => {
                let number: usize = name.parse().ok().filter(|number| (1..groups).contains(number))?;
                path.push_str(&format!("{{{number}}}"));
            }
        }
    }
    if !path.starts_with('/') || path.contains(['?', '*', '#', ' ']) {
        return None;
    }
    let mut route = route.clone();
    route.path = Path::Regex(whole);
    route.keys.set("rewrite", path);
    Some(route)
}
