//! Rules of a listener, which apply to requests before they are routed.

use super::{
    header_changes, rate_limits, route_actions, route_conditions,
    route_respond::{self, RESPOND},
    route_shown::{exact_path, path_regex, segments_of},
    value_conditions,
};
use crate::{
    Field, Problem,
    file::{
        schema::{Key, Preset, Section},
        shown::list,
    },
    model::{
        AccessStep, CookieMatch, Domain, Expression, HeaderMatch, PathMatch, PathRule, QueryMatch,
        RequestMatch, RequestRule, RuleAction, Serve,
    },
    quote, values,
};
use http::Method;
use serde_json::Value;

pub(super) const RULE: Section<RuleDraft, RequestRule> = Section {
    path: "listeners[].rules[]",
    about: "A rule for requests with any path. Rules are evaluated in this order, after `clients` and before \
            `rate_limits`, `basic_auth` and `routes`. A rule has one action. The first rule with `deny`, `respond` or \
            `redirect` whose conditions hold ends the request; the other actions apply to all matching requests.",
    keys: &[
        Key::new(
            "when",
            "mapping",
            Preset::Required,
            "Conditions on the request, all of which must hold.",
            |field, draft| draft.when = when(field),
            |rule| WHEN.show(&rule.when),
        ),
        Key::new(
            "deny",
            "status",
            Preset::Means("none"),
            "The status of the response to matching requests, 400 to 599, with the error page of this status.",
            |field, draft| draft.take(field.parse(denial).map(RuleAction::Deny)),
            |rule| match rule.action {
                RuleAction::Deny(status) => status.into(),
                _ => Value::Null,
            },
        ),
        Key::new(
            "respond",
            "text, or mapping",
            Preset::Means("none"),
            "A fixed response, as `respond` of a route.",
            |field, draft| draft.take(route_respond::respond(field).map(RuleAction::Respond)),
            |rule| match &rule.action {
                RuleAction::Respond(respond) => RESPOND.show(respond),
                _ => Value::Null,
            },
        ),
        Key::new(
            "redirect",
            "`https`, or mapping",
            Preset::Means("none"),
            "Redirects the client, as `redirect` of a route.",
            |field, draft| {
                let to = route_actions::redirect(field, draft.path_regex());
                draft.take(to.map(|to| RuleAction::Redirect(Box::new(to))));
            },
            |rule| match &rule.action {
                RuleAction::Redirect(to) => route_actions::show_redirect(to),
                _ => Value::Null,
            },
        ),
        Key::new(
            "request_headers",
            "list of changes",
            Preset::Means("none"),
            "Changes to the request's headers, which later rules, routes and servers see. Requests that do not match \
                    keep what the client has sent.",
            |field, draft| {
                let changes = header_changes::header_changes_of(field, draft.path_regex());
                draft.take(Some(RuleAction::Set(changes)));
            },
            |rule| match &rule.action {
                RuleAction::Set(changes) => header_changes::show(changes),
                _ => Value::Null,
            },
        ),
        Key::new(
            "rate_limits",
            "list of limits",
            Preset::Means("none"),
            "Rate limits for matching requests, in addition to those of the listener and of routes.",
            |field, draft| draft.take(Some(RuleAction::Limit(rate_limits::rate_limits(field)))),
            |rule| match &rule.action {
                RuleAction::Limit(limits) => rate_limits::show(limits),
                _ => Value::Null,
            },
        ),
    ],
};

pub(super) const WHEN: Section<WhenDraft, RequestMatch> = Section {
    path: "listeners[].rules[].when",
    about: "Conditions on a request, in the format of routes. One at least is needed. If a header has several lines, \
            one matching line suffices, and with `invert` one that does not match; likewise for parameters and cookies.",
    keys: &[
        Key::new(
            "host",
            "host, `*.domain`, `*`, or a list of them",
            Preset::Means("any"),
            "The hosts, as of a route.",
            |field, draft| draft.hosts = hosts(field),
            |when| list(when.hosts.iter().map(|domain| domain.to_string().into())),
        ),
        Key::new(
            "methods",
            "list of methods",
            Preset::Means("any"),
            "The methods, such as `POST`; upper and lower case differ.",
            |field, draft| draft.methods = value_conditions::methods(field),
            |when| value_conditions::show_methods(&when.methods),
        ),
        Key::new(
            "path",
            "path",
            Preset::Is("/"),
            "A prefix of whole segments, as of a route.",
            |field, draft| draft.path = field.parse(values::route_path).map(|path| segments(path.as_deref())),
            |when| segments_of(&when.path),
        ),
        Key::new(
            "path_exact",
            "path",
            Preset::Means("none"),
            "The exact path, in place of `path`.",
            |field, draft| draft.path = field.parse(values::path).map(|path| of(PathRule::Exact(path))),
            |when| exact_path(&when.path),
        ),
        Key::new(
            "path_regex",
            "regular expression",
            Preset::Means("none"),
            "An expression that matches the whole path, in place of `path`.",
            |field, draft| {
                draft.path = field.parse(values::whole_regex).map(|regex| of(PathRule::Regex(regex)));
            },
            |when| path_regex(&when.path),
        ),
        Key::new(
            "headers",
            "list of conditions",
            Preset::Means("none"),
            "Conditions on the request's headers.",
            |field, draft| draft.headers = route_conditions::headers(field),
            |when| list(when.headers.iter().map(route_conditions::show)),
        ),
        Key::new(
            "queries",
            "list of conditions",
            Preset::Means("none"),
            "Conditions on parameters of the query, as of a route.",
            |field, draft| draft.queries = value_conditions::queries(field),
            |when| value_conditions::show_queries(&when.query),
        ),
        Key::new(
            "cookies",
            "list of conditions",
            Preset::Means("none"),
            "Conditions on cookies, as of a route.",
            |field, draft| draft.cookies = value_conditions::cookies(field),
            |when| value_conditions::show_cookies(&when.cookies),
        ),
    ],
};

/// Values read for a rule.
#[derive(Default)]
pub(super) struct RuleDraft {
    when: Option<RequestMatch>,
    action: Option<RuleAction>,
}

/// Values read for the conditions of a rule.
#[derive(Default)]
pub(super) struct WhenDraft {
    hosts: Vec<Domain>,
    methods: Vec<Method>,
    path: Option<PathMatch>,
    headers: Vec<HeaderMatch>,
    queries: Vec<QueryMatch>,
    cookies: Vec<CookieMatch>,
}

impl RuleDraft {
    fn take(&mut self, action: Option<RuleAction>) {
        self.action = action.or_else(|| self.action.take());
    }

    /// Returns the expression that the path must match, if it is one.
    fn path_regex(&self) -> Option<&Expression> {
        match &self.when.as_ref()?.path.rule {
            PathRule::Regex(expression) => Some(expression),
            _ => None,
        }
    }
}

/// Reads the rules of a listener.
pub(super) fn rules(field: &Field<'_>) -> Vec<RequestRule> {
    field.items().iter().filter_map(rule).collect()
}

fn rule(field: &Field<'_>) -> Option<RequestRule> {
    const ACTIONS: [&str; 5] = ["deny", "respond", "redirect", "request_headers", "rate_limits"];
    let mut draft = RuleDraft::default();
    RULE.read(field, &mut draft)?;
    let mut actions = ACTIONS.iter().filter_map(|key| field.entry(key));
    match (actions.next(), actions.next()) {
        (None, _) => {
            field.error(Problem::new("the rule has no action", "add `deny: 403`, or another action"));
        }
        (_, Some(second)) => second.error(Problem::new("a rule has one action", "write two rules")),
        _ => {}
    }
    Some(RequestRule { when: draft.when?, action: draft.action?, place: field.place() })
}

fn when(field: &Field<'_>) -> Option<RequestMatch> {
    const PATHS: [&str; 3] = ["path", "path_exact", "path_regex"];
    const OTHERS: [&str; 5] = ["host", "methods", "headers", "queries", "cookies"];
    let mut draft = WhenDraft::default();
    WHEN.read(field, &mut draft)?;
    let mut paths = PATHS.iter().filter_map(|key| field.entry(key));
    let (first, second) = (paths.next(), paths.next());
    if let Some(second) = second {
        second.error(Problem::new("a rule has one path", "remove one, or write two rules"));
    }
    if first.is_none() && OTHERS.iter().all(|key| field.entry(key).is_none()) {
        field.error(Problem::new("the rule would apply to every request", "add a condition"));
    }
    let WhenDraft { hosts, methods, path, headers, queries: query, cookies } = draft;
    let path = path.unwrap_or_else(|| segments(None));
    Some(RequestMatch { hosts, methods, path, headers, query, cookies })
}

/// Reads hosts; empty for every host.
fn hosts(field: &Field<'_>) -> Vec<Domain> {
    let hosts = value_conditions::hosts(field).unwrap_or_default();
    let domains: Vec<_> = hosts.iter().map(|host| value_conditions::domain(host.as_deref())).collect();
    if domains.contains(&Domain::Any) { Vec::new() } else { domains }
}

fn denial(text: &str) -> Result<u16, Problem> {
    let status = text.parse().ok().filter(|status| (400..=599).contains(status));
    status.ok_or_else(|| {
        Problem::new(format!("{} is not the status of an error", quote(text)), "use 400 to 599, such as 403")
    })
}

fn segments(path: Option<&str>) -> PathMatch {
    PathMatch::segments(path.unwrap_or_default())
}

fn of(rule: PathRule) -> PathMatch {
    PathMatch { rule, ignore_case: false }
}

/// Shows the rules of a listener.
pub(super) fn show(serve: &Serve) -> Value {
    match serve {
        Serve::Http(http) => {
            let rules = http.access.iter().flat_map(AccessStep::request_rules);
            list(rules.map(|rule| RULE.show(rule)))
        }
        Serve::Tcp(_) => Value::Null,
    }
}
