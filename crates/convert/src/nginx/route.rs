//! Routes of a location: its content, its guards, and its conditions.

use super::{
    access::{self, Internal, internal_location},
    action,
    condition::{self, Test},
    headers,
    location::{Location, Placed},
    scope::Scope,
    statement::Statement,
    upstream,
    world::World,
};
use crate::values;
use crate::{
    draft::{Action, Path, Route},
    yaml::Map,
};
use quadrille_draft::variables::Context;

/// Returns the routes of a location, those with conditions first.
pub(super) fn of_location(
    placed: &Placed<'_>,
    internal: &Internal<'_>,
    context: &Context,
    world: &World<'_>,
) -> Vec<Route> {
    let Location { scope, .. } = &placed.location;
    let context = &with_groups(context, &placed.path);
    let mut route = Route::new(placed.path.clone(), Action::status(503));
    let own = scope.own();
    for one in own.iter().filter(|one| one.name == "access_log") {
        world.ledger.differs(one.id, "the access log is one for all requests");
    }
    let returned = own.iter().find(|one| one.name == "return");
    if let Some(returned) = returned {
        // nginx responds before it checks access.
        action::respond(&mut route, returned, context, world);
        headers::of_response(&mut route, scope, context, world);
        finish(&mut route, scope, world);
        return vec![route];
    }
    let content = match action::pass(scope, internal, world) {
        Some((pass, place)) => {
            action::forward(&mut route, placed, (pass, &place), context, world);
            place
        }
        None if access::denies_all(scope) => {
            route.action = Action::status(403);
            scope.clone()
        }
        None => {
            without_content(&mut route, scope, world);
            scope.clone()
        }
    };
    let names_guards = |block: &[Statement]| block.iter().any(|one| GUARDS.contains(&one.name.as_str()));
    access::guard(&mut route, scope, internal, context, world);
    if own.as_ptr() != content.own().as_ptr() && names_guards(content.own()) {
        match names_guards(own) {
            true => route.close(503, "access rules of two locations apply to these requests"),
            false => access::guard(&mut route, &content, internal, context, world),
        }
    }
    settings(&mut route, &content, internal, context, world);
    finish(&mut route, scope, world);
    finish(&mut route, &content, world);
    let mut routes = conditional(&route, placed, context, world);
    routes.extend(rewrites(&mut route, placed, world));
    routes.push(route);
    limit_methods(routes, scope, world)
}

/// Directives of access control that are converted.
const GUARDS: &[&str] = &["allow", "deny", "auth_basic", "auth_request", "limit_req", "satisfy"];

/// Returns the route of a server for paths that no location matches.
pub(super) fn of_server(
    scope: &Scope<'_>,
    internal: &Internal<'_>,
    context: &Context,
    world: &World<'_>,
) -> Route {
    let mut route = Route::new(Path::Prefix(String::new()), Action::status(404));
    access::guard(&mut route, scope, internal, context, world);
    headers::of_response(&mut route, scope, context, world);
    finish(&mut route, scope, world);
    route
}

/// Returns the context with the groups of a path's expression.
pub(super) fn with_groups(context: &Context, path: &Path) -> Context {
    let Path::Regex(expression) = path else { return context.clone() };
    let Ok(expression) = quadrille_config::values::whole_regex(expression) else { return context.clone() };
    Context {
        groups: expression.captures_len() - 1,
        group_names: expression.capture_names().flatten().map(str::to_owned).collect(),
        ..context.clone()
    }
}

/// Sets the response of a location whose content cannot be served.
fn without_content(route: &mut Route, scope: &Scope<'_>, world: &World<'_>) {
    const CONTENT: [&str; 7] = [
        "fastcgi_pass",
        "uwsgi_pass",
        "scgi_pass",
        "memcached_pass",
        "stub_status",
        "empty_gif",
        "js_content",
    ];
    let content = scope.own().iter().find(|one| CONTENT.contains(&one.name.as_str()));
    let tried = scope.own().iter().find(|one| one.name == "try_files");
    if let Some(tried) = tried {
        let last = tried.args.last().map_or("", String::as_str);
        world.ledger.refused(
            tried.id,
            "files are not served: keep a server for them, and forward to it with `upstream`",
        );
        if let Some(status) = last.strip_prefix('=').and_then(|status| status.parse::<u16>().ok()) {
            route.action = Action::status(if (200..=599).contains(&status) { status } else { 404 });
            return;
        }
    }
    let reason = match content {
        Some(one) => {
            format!("NOT SERVED: {}; forward to a server that has this content", world.ledger.shown(one.id))
        }
        None => "NOT SERVED: files; forward to a server that has them".to_owned(),
    };
    route.comment(reason);
    route.action = Action::status(503);
}

/// Sets headers, sizes, pages, retries and copies.
fn settings(
    route: &mut Route,
    scope: &Scope<'_>,
    internal: &Internal<'_>,
    context: &Context,
    world: &World<'_>,
) {
    headers::of_response(route, scope, context, world);
    headers::compression(route, scope, world);
    body_limit(route, scope, world);
    error_pages(route, scope, world);
    retry(route, scope, world);
    if let Some(one) = scope.one("proxy_redirect") {
        match one.arg(0) {
            "off" => world.ledger.converted(one.id),
            _ => world.ledger.differs(
                one.id,
                "`Location` of servers is not changed: let them build URLs with the `Host` that they receive",
            ),
        }
    }
    for one in scope.all("mirror_request_body") {
        world.ledger.converted(one.id);
    }
    for one in scope.all("mirror").into_iter().filter(|one| one.arg(0) != "off") {
        let place = internal_location(one.arg(0), internal).map(|(_, place)| place);
        let pass = place.as_ref().and_then(|place| place.own().iter().find(|one| action::is_pass(one)));
        let to = pass
            .zip(place.as_ref())
            .map(|(pass, place)| (pass, upstream::destination(pass, place, context, world)));
        match to {
            Some((pass, Ok(to))) => {
                route.keys.push("mirror", to.upstream);
                world.ledger.converted(pass.id);
                world.ledger.differs(one.id, "copies have the path and the headers of the request");
            }
            _ => world.ledger.refused(one.id, "name an upstream under `mirror`"),
        }
    }
}

fn body_limit(route: &mut Route, scope: &Scope<'_>, world: &World<'_>) {
    let Some(one) = scope.one("client_max_body_size") else { return };
    match values::bytes(one.arg(0)) {
        Some(limit) => {
            let limit = if limit == 0 { "off".to_owned() } else { values::size(limit) };
            route.keys.set("limits", Map::of("body", limit));
            world.ledger.converted(one.id);
        }
        None => world.ledger.refused(one.id, "write a size such as `10MiB` under `limits: { body: ... }`"),
    }
}

fn error_pages(route: &mut Route, scope: &Scope<'_>, world: &World<'_>) {
    let intercepts = scope.one("proxy_intercept_errors");
    intercepts.iter().for_each(|one| world.ledger.converted(one.id));
    let root = scope.one("root").map(|root| root.arg(0)).filter(|root| !root.contains('$'));
    for one in scope.all("error_page") {
        let (page, statuses) =
            one.args.split_last().map_or(("", &[][..]), |(page, rest)| (page.as_str(), rest));
        let good = |status: &String| status.parse::<u16>().is_ok_and(|status| (400..600).contains(&status));
        let is_file = page.starts_with('/') && !page.contains(['$', '?']) && statuses.iter().all(good);
        match root.filter(|_| is_file && !statuses.is_empty()) {
            Some(root) => {
                let file = format!("{}{page}", world.file(root).trim_end_matches('/'));
                let mut entry = Map::of("status", statuses.to_vec()).with("file", file);
                if intercepts.is_some_and(Statement::is_on) {
                    entry.set("servers", "on");
                }
                route.keys.push("error_pages", entry);
                world.ledger.converted(one.id);
            }
            None => {
                world.ledger.refused(one.id, "write `error_pages: [{ status: ..., file: ... }]` with a file");
            }
        }
    }
}

fn retry(route: &mut Route, scope: &Scope<'_>, world: &World<'_>) {
    for name in ["proxy_next_upstream_tries", "proxy_next_upstream_timeout"] {
        scope.all(name).iter().for_each(|one| world.ledger.converted(one.id));
    }
    let Some(one) = scope.one("proxy_next_upstream").filter(|one| !one.has("off")) else { return };
    let mut on = vec!["connect-failure".to_owned()];
    for word in &one.args {
        match word.as_str() {
            "timeout" | "invalid_header" => on.push("reset".to_owned()),
            status => on.extend(status.strip_prefix("http_").map(str::to_owned)),
        }
    }
    on.dedup();
    let mut retry = Map::of("on", on);
    let tries = scope.one("proxy_next_upstream_tries").and_then(|one| one.arg(0).parse::<u64>().ok());
    if let Some(tries) = tries.filter(|tries| *tries > 1) {
        retry.set("retries", (tries - 1).min(10));
    }
    if one.has("non_idempotent") {
        retry.set("idempotent_only", "off");
    }
    route.keys.set("retry", retry);
    world.ledger.converted(one.id);
}

/// Notes the remaining directives, and closes the route if one of them is a guard.
fn finish(route: &mut Route, scope: &Scope<'_>, world: &World<'_>) {
    if let Some((guard, remedy)) = world.sort_out(scope.everything()) {
        route.close(503, &format!("{}: {remedy}", world.ledger.shown(guard.id)));
    }
}

/// Returns the routes for `if` inside a location.
fn conditional(route: &Route, placed: &Placed<'_>, context: &Context, world: &World<'_>) -> Vec<Route> {
    let mut routes = Vec::new();
    for one in placed.location.scope.own().iter().filter(|one| one.name == "if") {
        let returned = one.statements().iter().find(|inner| inner.name == "return");
        let test = condition::test(one, &world.definitions, context);
        let (Some(returned), Ok(test)) = (returned, &test) else {
            let problem =
                test.err().unwrap_or_else(|| "only `return` inside `if` has an equivalent".to_owned());
            refuse_condition(one, &problem, route, world, &mut routes);
            continue;
        };
        let alternatives = match test {
            Test::Never => Vec::new(),
            Test::Always => vec![Map::new()],
            Test::When(conditions) if !conditions.iter().any(condition::has_path_or_host) => {
                conditions.clone()
            }
            Test::NoCertificate if returned.arg(0).starts_with('4') => {
                let mut only = route.clone();
                only.keys.set("client_auth", "required");
                world.ledger.differs(one.id, "the status is 403");
                world.ledger.converted(returned.id);
                routes.push(only);
                continue;
            }
            _ => {
                refuse_condition(one, "this condition is not one of a route", route, world, &mut routes);
                continue;
            }
        };
        world.ledger.converted(one.id);
        world.ledger.converted(returned.id);
        for conditions in alternatives {
            let mut other = Route::new(route.path.clone(), Action::status(503));
            other.conditions = condition::merged(&route.conditions, &conditions);
            action::respond(&mut other, returned, context, world);
            headers::of_response(&mut other, &placed.location.scope, context, world);
            routes.push(other);
        }
    }
    routes
}

/// Notes an `if` that cannot be expressed. One that denies requests closes the location.
fn refuse_condition(
    one: &Statement,
    problem: &str,
    route: &Route,
    world: &World<'_>,
    routes: &mut Vec<Route>,
) {
    world.refuse_all(one, &format!("{problem}: write a route or a rule with conditions"));
    if denies(one) {
        let mut shut = route.clone();
        shut.close(503, &format!("{}: {problem}", world.ledger.shown(one.id)));
        // The first of equal routes remains.
        routes.insert(0, shut);
    }
}

/// Returns whether a block responds with an error.
pub(super) fn denies(one: &Statement) -> bool {
    let is_error = |inner: &Statement| inner.name == "return" && inner.arg(0).starts_with(['4', '5']);
    one.statements().iter().any(|inner| is_error(inner) || inner.name == "deny")
}

/// Returns the routes for `rewrite` inside a location.
fn rewrites(route: &mut Route, placed: &Placed<'_>, world: &World<'_>) -> Vec<Route> {
    let mut routes = Vec::new();
    for one in placed.location.scope.own().iter().filter(|one| one.name == "rewrite") {
        let is_break = one.arg(2) == "break" && route.action.forwards();
        match action::rewritten(route, placed, one).filter(|_| is_break) {
            Some(rewritten) => {
                routes.push(rewritten);
                world.ledger.converted(one.id);
            }
            None => {
                world.ledger.refused(
                    one.id,
                    "use `rewrite` with `path_regex`, or `redirect`; the application receives the path as it is",
                );
                if is_break {
                    route.close(503, &format!("{}: servers expect another path", world.ledger.shown(one.id)));
                }
            }
        }
    }
    routes
}

/// Splits routes by method for `limit_except`.
fn limit_methods(routes: Vec<Route>, scope: &Scope<'_>, world: &World<'_>) -> Vec<Route> {
    let Some(one) = scope.own().iter().find(|one| one.name == "limit_except") else { return routes };
    let mut methods = one.args.clone();
    if methods.iter().any(|method| method == "GET") && !methods.iter().any(|method| method == "HEAD") {
        methods.push("HEAD".to_owned());
    }
    world.ledger.converted(one.id);
    let rules: Vec<_> =
        one.statements().iter().filter(|inner| ["allow", "deny"].contains(&inner.name.as_str())).collect();
    let others_are_guards = one.statements().len() > rules.len();
    let mut all = Vec::new();
    for route in routes {
        let mut limited = route.clone();
        limited.conditions.set("methods", methods.clone());
        let mut others = route;
        match access::networks(&rules, world).filter(|_| !others_are_guards) {
            Some(clients) if !clients.is_empty() => others.keys.set("clients", clients),
            _ => {
                others.action = Action::status(403);
                others.keys.remove("clients");
            }
        }
        all.extend([limited, others]);
    }
    for inner in one.statements().iter().filter(|inner| !["allow", "deny"].contains(&inner.name.as_str())) {
        world.ledger.refused(inner.id, "other methods are denied: write a route with `methods`");
    }
    all
}
