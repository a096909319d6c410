//! Explanation of the route that a request takes, by the selection that serves requests.

use super::{
    filter::request_rules,
    rate_limit::Limiters,
    request::{path_normalization, request_view::RequestView},
    route::{
        rewrite,
        router::{RouteLookup, Router},
    },
};
use crate::{host_map::lower_case, upstream::Upstreams};
use http::{HeaderMap, Method};
use quadrille_config::model::{
    AccessStep, Action, Doubt, Forward, HeaderMatch, Http, PathMatch, PathRule, Place, RequestRule, Route,
    RuleAction, VirtualHost,
};
use std::sync::Arc;

/// A request whose route is explained.
pub struct ExplainedRequest<'a> {
    /// Host, with a port if the client sends one.
    pub authority: &'a str,
    /// Method.
    pub method: &'a Method,
    /// Path as sent, without the query.
    pub path: &'a str,
    /// Query, without its question mark.
    pub query: Option<&'a str>,
    /// Headers.
    pub headers: &'a HeaderMap,
    /// Whether the request is sent over TLS.
    pub tls: bool,
}

/// The route that a request takes, and the steps of its selection.
pub struct RouteExplanation {
    /// Path that rules and routes see.
    pub path: String,
    /// The effect on the request.
    pub outcome: String,
    /// Rules and routes, in the order of their evaluation.
    pub steps: Vec<ExplainedStep>,
}

/// A rule or a route, with its result for the request.
pub struct ExplainedStep {
    /// The place in the configuration.
    pub place: Place,
    /// Host, path and action.
    pub about: String,
    /// Whether it applies to the request.
    pub applies: bool,
    /// The reasons why it does not apply.
    pub reasons: Vec<String>,
}

/// Explains the route of a request to a chain with these settings. Headers that the gateway sets itself are taken from
/// the request.
pub fn explain_route(http: &Http, request: &ExplainedRequest<'_>) -> RouteExplanation {
    let ExplainedRequest { authority, method, path, query, headers, tls } = request;
    let normalized = match path_normalization::normalized(path, &http.paths) {
        Ok(normalized) => normalized.unwrap_or_else(|| (*path).to_owned()),
        Err(problem) => {
            let outcome = format!("400: {}", problem.trim_end());
            return RouteExplanation { path: (*path).to_owned(), outcome, steps: Vec::new() };
        }
    };
    let view = RequestView {
        authority,
        method: method.as_str(),
        path: &normalized,
        query: *query,
        headers,
        tls: *tls,
    };
    let (mut steps, response) = explain_rules(http, &view);
    let router = Arc::new(Router::new(&http.routes, &Upstreams::default(), &Limiters::default()));
    let lookup = router.find(&view);
    let taken = match (&response, &lookup) {
        (None, Some(RouteLookup::Route(matched))) => Some(matched.route()),
        _ => None,
    };
    steps.extend(explain_routes(http, &router, &view, taken, response.is_some()));
    let outcome = response.unwrap_or_else(|| match (&lookup, taken) {
        (_, Some(route)) => format!("{}: {}", route.place, action(route, &view)),
        (Some(_), None) => "redirected to https, which the host requires".to_owned(),
        (None, None) => "404: no route for this host and path".to_owned(),
    });
    RouteExplanation { path: normalized, outcome, steps }
}

/// Explains the rules, up to one that responds; returns its response, too.
fn explain_rules(http: &Http, view: &RequestView<'_>) -> (Vec<ExplainedStep>, Option<String>) {
    let mut steps = Vec::new();
    for rule in http.access.iter().flat_map(AccessStep::request_rules) {
        let applies = request_rules::holds(&rule.when, view);
        let (about, ends) = rule_action(rule, view);
        let reasons = if applies { Vec::new() } else { vec!["its conditions do not hold".to_owned()] };
        steps.push(ExplainedStep { place: rule.place.clone(), about: about.clone(), applies, reasons });
        if applies && ends {
            return (steps, Some(format!("{}: {about}", rule.place)));
        }
    }
    (steps, None)
}

/// Describes the action of a rule; the flag says whether it ends the request.
fn rule_action(rule: &RequestRule, view: &RequestView<'_>) -> (String, bool) {
    match &rule.action {
        RuleAction::Deny(status) => (format!("denies with {status}"), true),
        RuleAction::Respond(respond) => (format!("responds with {}", respond.status), true),
        RuleAction::Redirect(to) => {
            let location = rewrite::location(to, &rule.when.path, view);
            (format!("redirects with {} to {location}", to.status), true)
        }
        RuleAction::Set(_) => ("changes request headers".to_owned(), false),
        RuleAction::Limit(_) => ("limits the rate of requests".to_owned(), false),
    }
}

/// Explains all routes: those of matching hosts in the order of their evaluation, then the others.
fn explain_routes(
    http: &Http,
    router: &Router,
    view: &RequestView<'_>,
    taken: Option<&Route>,
    is_answered: bool,
) -> Vec<ExplainedStep> {
    let hosts = &http.routes.hosts;
    let name = lower_case(view.host(http.routes.match_port));
    let matching: Vec<usize> = router.hosts(&name).collect();
    let others = (0..hosts.len()).filter(|index| !matching.contains(index));
    let mut steps = Vec::new();
    for index in matching.iter().copied().chain(others) {
        let host: &VirtualHost = &hosts[index];
        let domains: Vec<_> = host.domains.iter().map(ToString::to_string).collect();
        let domains = domains.join(", ");
        for route in &host.routes {
            let applies = taken.is_some_and(|taken| std::ptr::eq(taken, route));
            let mut reasons = unmet(route, view);
            if !matching.contains(&index) {
                reasons.insert(0, format!("its host is {domains}"));
            }
            if reasons.is_empty() && !applies {
                let earlier = if is_answered { "a rule responds" } else { "an earlier route applies" };
                reasons.push(earlier.to_owned());
            }
            let path = described(&route.path);
            let about = format!("host {domains}, {path}: {}", brief(route));
            steps.push(ExplainedStep { place: route.place.clone(), about, applies, reasons });
        }
    }
    steps
}

/// Returns the conditions of a route that do not hold.
fn unmet(route: &Route, view: &RequestView<'_>) -> Vec<String> {
    let mut unmet = Vec::new();
    if !route.path.matches(view.path) {
        unmet.push("its path does not match".to_owned());
    }
    if !view.has_method(&route.methods) {
        let methods: Vec<_> = route.methods.iter().map(Method::as_str).collect();
        unmet.push(format!("its methods are {}", methods.join(", ")));
    }
    let header = |header: &HeaderMatch| match view.first_value(&header.name) {
        Some(value) => format!("its condition on header `{}` does not hold: `{value}`", header.name),
        None => format!("its condition on header `{}` does not hold: it is absent", header.name),
    };
    unmet.extend(route.headers.iter().filter(|one| !view.matches_header(one)).map(header));
    let queries = route.query.iter().filter(|one| !view.matches_query(one));
    unmet.extend(queries.map(|one| format!("its condition on parameter `{}` does not hold", one.name)));
    let cookies = route.cookies.iter().filter(|one| !view.cookie_holds(one, Doubt::One));
    unmet.extend(cookies.map(|one| format!("its condition on cookie `{}` does not hold", one.name)));
    unmet
}

fn described(path: &PathMatch) -> String {
    match &path.rule {
        PathRule::Prefix(prefix) => format!("path prefix {prefix}"),
        PathRule::Segments(path) if path.is_empty() => "path /".to_owned(),
        PathRule::Segments(path) => format!("path {path}"),
        PathRule::Exact(path) => format!("exact path {path}"),
        PathRule::Regex(expression) => format!("path expression {}", expression.as_str()),
    }
}

fn brief(route: &Route) -> String {
    match &route.action {
        Action::Forward(forward) => upstreams(forward),
        Action::Redirect(to) => format!("redirect {}", to.status),
        Action::Respond(respond) => format!("respond {}", respond.status),
    }
}

fn upstreams(forward: &Forward) -> String {
    let names: Vec<_> = forward.to.iter().map(|to| to.upstream.as_str()).collect();
    format!("upstream {}", names.join(", "))
}

/// Describes what a route does with the request.
fn action(route: &Route, view: &RequestView<'_>) -> String {
    match &route.action {
        Action::Respond(respond) => format!("responds with {}", respond.status),
        Action::Redirect(to) => {
            format!("redirects with {} to {}", to.status, rewrite::location(to, &route.path, view))
        }
        Action::Forward(forward) => {
            let path = forward.rewrite.as_ref().map(|to| rewrite::path(to, &route.path, view));
            format!("forwards {} to {}", path.as_deref().unwrap_or(view.path), upstreams(forward))
        }
    }
}
