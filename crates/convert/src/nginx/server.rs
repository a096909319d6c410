//! A server: its rules, and the routes of its locations.

use super::{
    access::{self, Internal},
    action,
    condition::{self, Test},
    listen::{Names, hosts_expression},
    location::{self, Kind},
    route,
    scope::Scope,
    statement::Statement,
    world::World,
};
use crate::expression;
use crate::{
    draft::{Action, Path, Route},
    yaml::{Map, Value},
};
use quadrille_draft::target::{Target, target};
use quadrille_draft::variables::Context;

/// A server of an address.
#[derive(Debug)]
pub(super) struct Server<'a> {
    pub(super) scope: Scope<'a>,
    pub(super) names: Names,
    /// Whether it serves hosts that no server names.
    pub(super) is_default: bool,
    /// Hosts of the other servers of the address.
    pub(super) others: Vec<String>,
    /// Reason to close the whole server.
    pub(super) closed: Option<String>,
}

/// Returns the rules and the routes of a server.
pub(super) fn convert(server: &Server<'_>, context: &Context, world: &World<'_>) -> (Vec<Map>, Vec<Route>) {
    let scope = &server.scope;
    let mut builder = Builder { server, context, world, rules: Vec::new(), changes: Vec::new() };
    if !server.is_default && server.names.hosts.is_empty() {
        for one in scope.own().iter().filter(|one| !["listen", "server_name"].contains(&one.name.as_str())) {
            world.refuse_all(one, "its server is closed: list the hosts of its `server_name`");
        }
        return (server.names.others.iter().map(|name| builder.other_names(name)).collect(), Vec::new());
    }
    builder.limits();
    let mut routes = match builder.rewrite_phase() {
        Some(returned) => {
            // Nothing else of the server is reached.
            scope.own().iter().filter(|one| one.name == "location").for_each(|one| world.convert_all(one));
            vec![builder.returned(returned)]
        }
        None => builder.locations(),
    };
    for change in std::mem::take(&mut builder.changes) {
        routes = change.apply(routes);
    }
    if let Some(reason) = &server.closed {
        routes.iter_mut().for_each(|route| route.close(503, reason));
    }
    if !server.is_default {
        routes.iter_mut().for_each(|route| route.hosts.clone_from(&server.names.hosts));
        let others: Vec<_> = server.names.others.iter().map(|name| builder.other_names(name)).collect();
        builder.rules.extend(others);
    }
    (builder.rules, routes)
}

/// A change of all routes of a server, made by a condition of the server.
enum Change {
    /// Other methods than these have this action.
    Methods(Vec<String>, Action),
    /// These clients are denied.
    Deny(Vec<String>),
    RequireCertificate,
    Close(String),
}

impl Change {
    fn apply(&self, routes: Vec<Route>) -> Vec<Route> {
        let one = |mut route: Route| match self {
            Self::Methods(methods, action) => {
                if route.conditions.get("methods").is_some() {
                    return vec![route];
                }
                let mut others = route.clone();
                others.action = action.clone();
                route.conditions.set("methods", methods.clone());
                vec![route, others]
            }
            Self::Deny(networks) => {
                let clients = route.keys.inner("clients");
                networks.iter().for_each(|network| clients.push("deny", network));
                vec![route]
            }
            Self::RequireCertificate => {
                route.keys.set("client_auth", "required");
                vec![route]
            }
            Self::Close(reason) => {
                route.close(503, reason);
                vec![route]
            }
        };
        routes.into_iter().flat_map(one).collect()
    }
}

struct Builder<'b, 'a> {
    server: &'b Server<'a>,
    context: &'b Context,
    world: &'b World<'b>,
    rules: Vec<Map>,
    changes: Vec<Change>,
}

impl<'a> Builder<'_, 'a> {
    /// Adds a rule for each limit of the server and of the blocks around it, which all locations share.
    fn limits(&mut self) {
        for one in access::shared_limits(&self.server.scope) {
            match access::rate_limit(one, self.world) {
                Ok(limit) => {
                    let when = self.of_this_server(Map::new());
                    let rule = Map::of("when", when).with("rate_limits", vec![Value::Map(limit)]);
                    self.rules.push(rule);
                }
                Err(problem) => {
                    self.world.ledger.refused(one.id, format!("{problem}: write `rate_limits`"));
                    self.changes
                        .push(Change::Close(format!("{}: {problem}", self.world.ledger.shown(one.id))));
                }
            }
        }
    }

    /// Restricts conditions of a rule to requests for this server.
    fn of_this_server(&self, mut when: Map) -> Map {
        if !self.server.is_default {
            if when.get("host").is_none() {
                when.set("host", self.server.names.hosts.clone());
            }
        } else if !self.server.others.is_empty() && when.get("host").is_none() {
            let others = hosts_expression(&self.server.others);
            when.push("headers", Map::of("name", "host").with("regex", others).with("invert", "on"));
        } else if when.is_empty() {
            when.set("path", "/");
        }
        when
    }

    /// Returns the rule that closes names that no route can have.
    fn other_names(&self, expression: &str) -> Map {
        let hosts = [&self.server.others[..], &self.server.names.hosts[..]].concat();
        let condition = |regex: String| Map::of("name", "host").with("regex", regex);
        let mut rule = Map::of(
            "when",
            Map::of(
                "headers",
                vec![
                    condition(format!("(?i)(?:{expression})(?::[0-9]+)?")),
                    condition(hosts_expression(&hosts)).with("invert", "on"),
                ],
            ),
        );
        rule.set("deny", "503");
        rule.comment("CLOSED: hosts of a `server_name` that no route can have");
        rule
    }

    /// Converts `return`, `rewrite` and `if` of the server, in their order; returns the `return` that ends all requests.
    fn rewrite_phase(&mut self) -> Option<&'a Statement> {
        for one in self.server.scope.own() {
            match one.name.as_str() {
                "return" => return Some(one),
                "rewrite" => self.rewrite(one),
                "if" => {
                    if let Some(returned) = self.condition(one) {
                        return Some(returned);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn rewrite(&mut self, one: &Statement) {
        let status = match one.arg(2) {
            "permanent" => 301,
            "redirect" => 302,
            _ if one.arg(1).contains("://") => 302,
            _ => {
                return self.world.ledger.refused(
                    one.id,
                    "use `rewrite` with `path_regex`, or `redirect`; the application receives the path as it is",
                );
            }
        };
        let redirect = expression::whole(one.arg(0), false).and_then(|path| {
            let context = route::with_groups(self.context, &Path::Regex(path.clone()));
            match target(one.arg(1), status, true, &context)? {
                Target::Redirect(redirect) => Ok((path, redirect)),
                Target::Location(_) => Err("the target cannot be expressed".to_owned()),
            }
        });
        match redirect {
            Ok((path, redirect)) => {
                let when = self.of_this_server(Map::of("path_regex", path));
                self.rules.push(Map::of("when", when).with("redirect", redirect));
                self.world.ledger.converted(one.id);
            }
            Err(problem) => {
                self.world.ledger.refused(one.id, format!("{problem}: write a rule with `redirect`"));
            }
        }
    }

    /// Converts an `if` of the server; returns its `return` if the condition always holds.
    fn condition(&mut self, one: &'a Statement) -> Option<&'a Statement> {
        let world = self.world;
        let returned = one.statements().iter().find(|inner| inner.name == "return");
        let test = condition::test(one, &world.definitions, self.context);
        let outcome = match (returned, test) {
            (_, Ok(Test::Never)) => {
                world.convert_all(one);
                return None;
            }
            (None, Ok(_)) => Err("only `return` inside `if` has an equivalent".to_owned()),
            (_, Err(problem)) => Err(problem),
            (Some(returned), Ok(Test::Always)) => {
                world.ledger.converted(one.id);
                return Some(returned);
            }
            (Some(returned), Ok(Test::When(conditions))) => self.rules_for(returned, conditions),
            (Some(returned), Ok(test)) => {
                let action = self.returned(returned).action;
                match (test, returned.arg(0).starts_with(['4', '5'])) {
                    (Test::OtherMethods(methods), _) => {
                        self.changes.push(Change::Methods(methods, action));
                        Ok(())
                    }
                    (Test::Clients(networks), true) => {
                        self.changes.push(Change::Deny(networks));
                        Ok(())
                    }
                    (Test::NoCertificate, true) => {
                        self.changes.push(Change::RequireCertificate);
                        Ok(())
                    }
                    _ => Err("this condition has no equivalent here".to_owned()),
                }
            }
        };
        match outcome {
            Ok(()) => {
                world.ledger.converted(one.id);
                returned.iter().for_each(|returned| world.ledger.converted(returned.id));
            }
            Err(problem) => {
                world.refuse_all(one, &format!("{problem}: write a rule with conditions"));
                if route::denies(one) {
                    self.changes.push(Change::Close(format!("{}: {problem}", world.ledger.shown(one.id))));
                }
            }
        }
        None
    }

    /// Adds a rule for each set of conditions.
    fn rules_for(&mut self, returned: &Statement, conditions: Vec<Map>) -> Result<(), String> {
        let mut rules = Vec::new();
        for conditions in conditions {
            let context = match conditions.get("path_regex") {
                Some(Value::Text(path)) => route::with_groups(self.context, &Path::Regex(path.clone())),
                _ => self.context.clone(),
            };
            let mut made = Route::new(Path::Prefix(String::new()), Action::status(503));
            action::respond(&mut made, returned, &context, self.world);
            let rule = Map::of("when", self.of_this_server(conditions));
            rules.push(match made.action {
                Action::Redirect(redirect) => rule.with("redirect", redirect),
                Action::Respond(respond) if made.keys.is_empty() => rule.with("respond", respond),
                _ => return Err("its target cannot be expressed in a rule".to_owned()),
            });
        }
        self.rules.extend(rules);
        Ok(())
    }

    /// Returns the route of a `return` of the whole server.
    fn returned(&self, returned: &Statement) -> Route {
        let mut route = Route::new(Path::Prefix(String::new()), Action::status(503));
        action::respond(&mut route, returned, self.context, self.world);
        super::headers::of_response(&mut route, &self.server.scope, self.context, self.world);
        self.world.sort_out(self.server.scope.everything());
        route
    }

    fn locations(&mut self) -> Vec<Route> {
        let (world, scope) = (self.world, &self.server.scope);
        let (locations, refused) = location::collect(scope.own(), scope, world);
        let internal: Internal<'_> = locations
            .iter()
            .map(|one| (one.statement, one.scope.clone()))
            .chain(refused.iter().map(|(statement, _)| (*statement, scope.clone())))
            .collect();
        for (statement, problem) in refused {
            world.refuse_all(statement, &format!("{problem}: write routes with other conditions"));
            if is_guarded(statement) {
                let reason = format!("{}: {problem}", world.ledger.shown(statement.id));
                self.changes.push(Change::Close(reason));
            }
        }
        for one in locations.iter().filter(|one| one.kind == Kind::Internal) {
            // Subrequests have neither the body nor other headers of their own.
            let of_subrequest = |one: &&Statement| {
                one.name == "internal"
                    || one.name == "proxy_set_header"
                    || one.name.starts_with("proxy_pass_request_")
            };
            let own = one.scope.own();
            own.iter().filter(of_subrequest).for_each(|one| world.ledger.converted(one.id));
            world.sort_out(own.iter().filter(|one| !of_subrequest(one)));
        }
        let passes =
            |one: &location::Location<'_>| one.scope.own().iter().find(|one| action::is_pass(one)).is_some();
        let needs_rest = |one: &location::Location<'_>| {
            let own = one.scope.own();
            let rewrites = own.iter().any(|one| one.name == "rewrite" && one.arg(2) == "break");
            rewrites || action::needs_rest(&one.text, own.iter().find(|one| action::is_pass(one)))
        };
        let unseen: Vec<_> = locations.iter().filter(|one| one.kind == Kind::Internal).cloned().collect();
        let has_root = locations.iter().any(|one| one.kind == Kind::Prefix && one.text == "/");
        let placed = location::placed(locations, passes, needs_rest);
        let mut routes = Vec::new();
        for one in &placed {
            let added = route::of_location(one, &internal, self.context, world);
            routes.extend(without_slash(one, passes(&one.location)));
            routes.extend(added);
        }
        for one in unseen.iter().filter(|one| one.text.starts_with('/')) {
            routes.push(Route::new(Path::Exact(one.text.clone()), Action::status(404)));
        }
        if !has_root {
            routes.push(route::of_server(scope, &internal, self.context, world));
        }
        routes
    }
}

/// Returns the redirect to a location that ends with a slash, for requests without it.
fn without_slash(placed: &location::Placed<'_>, is_proxy: bool) -> Option<Route> {
    let text = &placed.location.text;
    let is_prefix = matches!(placed.location.kind, Kind::Prefix | Kind::FirstPrefix);
    let bare = text.strip_suffix('/').filter(|bare| !bare.is_empty() && is_prefix && is_proxy)?;
    let bare = quadrille_config::values::path(bare).ok()?;
    let text = quadrille_config::values::path(text).ok().filter(|text| !text.contains('{'))?;
    Some(Route::new(Path::Exact(bare), Action::Redirect(Map::of("path", text))))
}

/// Returns whether a location that cannot be expressed would be less restricted by the routes that remain.
fn is_guarded(statement: &Statement) -> bool {
    let guards =
        ["deny", "auth_basic", "auth_request", "limit_req", "limit_conn", "internal", "limit_except"];
    let is_guard = |one: &Statement| {
        guards.contains(&one.name.as_str())
            || one.name == "return" && one.arg(0).starts_with(['4', '5'])
            || matches!(super::tables::treatment(&one.name), Some(super::tables::Treatment::Guard(_)))
    };
    let all = statement.statements();
    all.iter().any(|one| is_guard(one) || is_guarded(one))
}
