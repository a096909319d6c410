//! Routes.

use super::{
    basic_auth, compression, error_pages, header_changes, rate_limits,
    route_actions::{only_upstream, redirect, show_redirect, show_split, split},
    route_conditions, route_limits, route_mirror, route_refused,
    route_respond::{self, RESPOND},
    route_retry::{RETRY, retry},
    route_shown::{
        cors, exact_path, fault, host_rewrite, path_regex, path_rewrite, query_match, segments_of,
    },
    route_sticky,
    written_route::WrittenRoute,
};
use crate::{
    Field, Problem,
    file::{
        schema::{Key, Preset, Section},
        shown::{if_true, list, put, text, time},
    },
    model::{
        Action, Compression, ErrorPage, Expression, Forward, HashPolicy, HeaderChange, HeaderMatch, Mirror,
        PathMatch, PathRewrite, PathRule, Place, RateLimit, Redirect, Respond, RetryPolicy, Route,
        RouteBasicAuth, RouteBodyLimit, RouteRateLimits, RouteTable, Weighted,
    },
    values,
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

pub(super) const ROUTE: Section<RouteDraft, Route> = Section {
    path: "listeners[].routes[]",
    about: "A route of requests. Each route has one of `upstream`, `split`, `redirect` and `respond`.",
    keys: &[
        Key {
            name: "host",
            value: "host, `*.domain` or `*`",
            preset: Preset::Is("\"*\""),
            about: "`example.com` matches that host, `*.example.com` every host with one label before it.",
            needs_restart: false,
            read: |field, draft| draft.host = field.parse(values::route_host),
            show: shown_with_the_table,
        },
        Key {
            name: "path",
            value: "path",
            preset: Preset::Is("/"),
            about: "A prefix of whole segments: `/api` matches `/api` and `/api/users`, not `/apis`.",
            needs_restart: false,
            read: |field, draft| draft.path = field.parse(values::route_path).map(segments),
            show: |route| segments_of(&route.path),
        },
        Key {
            name: "path_exact",
            value: "path",
            preset: Preset::Means("none"),
            about: "The exact path, in place of `path`. Precedes regular expressions and prefixes.",
            needs_restart: false,
            read: |field, draft| draft.path = field.parse(values::path).map(exactly),
            show: |route| exact_path(&route.path),
        },
        Key {
            name: "path_regex",
            value: "regular expression",
            preset: Preset::Means("none"),
            about: "An expression that matches the whole path, in place of `path`, in the syntax of RE2 (without \
                    look-around). Precedes prefixes; among several, the one with the most conditions on headers, then \
                    the first in the file.",
            needs_restart: false,
            read: |field, draft| draft.path = field.parse(values::whole_regex).map(matching),
            show: |route| path_regex(&route.path),
        },
        Key {
            name: "headers",
            value: "list of conditions",
            preset: Preset::Means("none"),
            about: "Conditions on the request's headers. If two routes have the same path, the one with more \
                    conditions comes first.",
            needs_restart: false,
            read: |field, draft| draft.headers = route_conditions::headers(field),
            show: |route| list(route.headers.iter().map(route_conditions::show)),
        },
        Key {
            name: "upstream",
            value: "name of an upstream",
            preset: Preset::Means("none"),
            about: "The upstream that receives matching requests.",
            needs_restart: false,
            read: |field, draft| draft.upstream = field.upstream_name(),
            show: |route| forward(route).and_then(only_upstream).into(),
        },
        Key {
            name: "split",
            value: "list of shares",
            preset: Preset::Means("none"),
            about: "Several upstreams that share matching requests by weight, or, in `tcp` mode, connections.",
            needs_restart: false,
            read: |field, draft| draft.split = Some(split(field)),
            show: |route| forward(route).map(show_split).into(),
        },
        Key {
            name: "redirect",
            value: "`https`, or mapping",
            preset: Preset::Means("none"),
            about: "Redirects the client to another URL.",
            needs_restart: false,
            read: |field, draft| draft.redirect = redirect(field),
            show: |route| show_action_redirect(&route.action),
        },
        Key {
            name: "respond",
            value: "text, or mapping",
            preset: Preset::Means("none"),
            about: "A fixed response, without an upstream. Text alone is the body of a response with status 200.",
            needs_restart: false,
            read: |field, draft| draft.respond = route_respond::respond(field),
            show: |route| show_respond(&route.action),
        },
        Key {
            name: "rewrite",
            value: "path",
            preset: Preset::Means("none"),
            about: "The path that replaces `path` for the upstream: `path: /old` with `rewrite: /new` makes \
                    `/new/x` of `/old/x`.",
            needs_restart: false,
            read: |field, draft| draft.rewrite = field.parse(values::path).map(PathRewrite::Prefix),
            show: |route| forward(route).and_then(|to| to.rewrite.as_ref()).map(path_rewrite).into(),
        },
        Key {
            name: "timeout",
            value: "duration",
            preset: Preset::Means("none"),
            about: "Time from the request to the end of its response, all attempts together. If no response has begun \
                    by then, the response is 504, or 408 if the server still waits for the client; a response that \
                    has begun is cut off. Not for WebSocket.",
            needs_restart: false,
            read: |field, draft| draft.timeout = field.parse(values::timeout),
            show: |route| forward(route).and_then(|to| to.timeout).map(time).into(),
        },
        Key {
            name: "sticky",
            value: "list of `client_ip` or mappings",
            preset: Preset::Means("none"),
            about: "Session affinity: the properties of a request, such as a cookie, that select its server \
                    in an upstream with `balance: hash`.",
            needs_restart: false,
            read: |field, draft| draft.sticky = route_sticky::sticky(field),
            show: |route| forward(route).map(|to| route_sticky::show(&to.hash)).into(),
        },
        Key {
            name: "mirror",
            value: "names of upstreams, or list of mappings",
            preset: Preset::Means("none"),
            about: "Upstreams that receive copies of requests.",
            needs_restart: false,
            read: |field, draft| draft.mirrors = route_mirror::mirrors(field),
            show: |route| forward(route).map(|to| route_mirror::show(&to.mirrors)).into(),
        },
        Key {
            name: "request_headers",
            value: "list of changes",
            preset: Preset::Means("none"),
            about: "Changes to the headers of requests that are forwarded, made in this order, in the format of \
                    `response_headers`.",
            needs_restart: false,
            read: |field, draft| draft.request_headers = header_changes::header_changes(field),
            show: |route| header_changes::show(&route.request_headers),
        },
        Key {
            name: "response_headers",
            value: "list of changes",
            preset: Preset::Means("none"),
            about: "Changes to the headers of responses, made in this order. They apply to responses of servers, of \
                    `respond` and of `redirect`, but not to the gateway's own errors.",
            needs_restart: false,
            read: |field, draft| draft.response_headers = header_changes::header_changes(field),
            show: |route| header_changes::show(&route.response_headers),
        },
        Key {
            name: "rate_limits",
            value: "list of limits",
            preset: Preset::Means("none"),
            about: "Rate limits for matching requests, in addition to the listener's limits.",
            needs_restart: false,
            read: |field, draft| draft.rate_limits = rate_limits::rate_limits(field),
            show: |route| rate_limits::show(route.rate_limits.limits()),
        },
        Key {
            name: "limits",
            value: "mapping",
            preset: Preset::Means("the listener's"),
            about: "Maximum size of matching requests.",
            needs_restart: false,
            read: |field, draft| draft.body_limit = route_limits::limits(field),
            show: |route| route_limits::show(route.body_limit),
        },
        Key {
            name: "basic_auth",
            value: "mapping, a path of users, or `off`",
            preset: Preset::Means("the listener's `basic_auth`"),
            about: "HTTP Basic authentication, in place of the listener's.",
            needs_restart: false,
            read: |field, draft| draft.basic_auth = basic_auth::basic_auth(field),
            show: |route| basic_auth::show(&route.basic_auth),
        },
        Key {
            name: "compression",
            value: "mapping, `on` or `off`",
            preset: Preset::Means("the listener's `compression`"),
            about: "Response compression, in place of the listener's.",
            needs_restart: false,
            read: |field, draft| draft.compression = Some(compression::compression(field)),
            show: |route| compression::show(route.compression.as_ref()),
        },
        Key {
            name: "error_pages",
            value: "list of pages",
            preset: Preset::Means("the listener's"),
            about: "Error pages, which precede the listener's.",
            needs_restart: false,
            read: |field, draft| draft.error_pages = error_pages::error_pages(field),
            show: |route| error_pages::show(&route.error_pages),
        },
        Key {
            name: "retry",
            value: "mapping",
            preset: Preset::Means("the upstream's `retries`"),
            about: "The failures that are retried.",
            needs_restart: false,
            read: |field, draft| draft.retry = retry(field),
            show: |route| {
                forward(route).and_then(|to| to.retry.as_ref()).map(|retry| RETRY.show(retry)).into()
            },
        },
    ],
};

/// Values read for a route; `None` for an invalid host or path.
pub(super) struct RouteDraft {
    host: Option<Option<String>>,
    path: Option<PathMatch>,
    headers: Vec<HeaderMatch>,
    upstream: Option<String>,
    split: Option<Vec<Weighted>>,
    redirect: Option<Redirect>,
    respond: Option<Respond>,
    rewrite: Option<PathRewrite>,
    timeout: Option<Duration>,
    request_headers: Vec<HeaderChange>,
    response_headers: Vec<HeaderChange>,
    retry: Option<RetryPolicy>,
    sticky: Vec<HashPolicy>,
    rate_limits: Vec<RateLimit>,
    body_limit: RouteBodyLimit,
    basic_auth: RouteBasicAuth,
    compression: Option<Option<Arc<Compression>>>,
    error_pages: Vec<ErrorPage>,
    mirrors: Vec<Mirror>,
}

/// Reads a route, which forwards, responds or redirects.
pub(super) fn route(field: &Field<'_>) -> Option<WrittenRoute> {
    let mut draft = RouteDraft::every_request();
    ROUTE.read(field, &mut draft)?;
    route_refused::refuse_contradictions(field);
    let (host, path, headers) = (draft.host.take(), draft.path.take(), std::mem::take(&mut draft.headers));
    let request_headers = std::mem::take(&mut draft.request_headers);
    let response_headers = std::mem::take(&mut draft.response_headers);
    let rate_limits = RouteRateLimits::Besides(std::mem::take(&mut draft.rate_limits));
    let (basic_auth, body_limit) = (std::mem::take(&mut draft.basic_auth), draft.body_limit);
    let error_pages = std::mem::take(&mut draft.error_pages);
    let compression = draft.compression.take();
    let uncompressed = matches!(compression, Some(None));
    let compression = compression.flatten();
    let action = draft.into_action()?;
    if !matches!(action, Action::Forward(_)) {
        for field in ["rewrite", "timeout", "retry", "sticky", "mirror", "request_headers", "compression"]
            .iter()
            .filter_map(|key| field.entry(key))
        {
            field.error(Problem::new("this route does not forward to an upstream", "remove this"));
        }
    }
    let route = Route::new(path?, action, field.place());
    let route = Route {
        headers,
        request_headers,
        response_headers,
        rate_limits,
        body_limit,
        basic_auth,
        compression,
        error_pages,
        ..route
    };
    Some(WrittenRoute { host: host?, route, uncompressed })
}

impl RouteDraft {
    fn every_request() -> Self {
        Self {
            host: Some(None),
            path: Some(segments(None)),
            headers: Vec::new(),
            upstream: None,
            split: None,
            redirect: None,
            respond: None,
            rewrite: None,
            timeout: None,
            request_headers: Vec::new(),
            response_headers: Vec::new(),
            retry: None,
            sticky: Vec::new(),
            rate_limits: Vec::new(),
            body_limit: RouteBodyLimit::default(),
            basic_auth: RouteBasicAuth::default(),
            compression: None,
            error_pages: Vec::new(),
            mirrors: Vec::new(),
        }
    }

    fn into_action(self) -> Option<Action> {
        let Self { rewrite, timeout, retry, sticky: hash, mirrors, .. } = self;
        if let Some(redirect) = self.redirect {
            return Some(Action::Redirect(Box::new(redirect)));
        }
        let to = self.split.or_else(|| Some(vec![Weighted::all(self.upstream?)]));
        let forward = |to| Forward { to, rewrite, timeout, retry, hash, mirrors, ..Forward::to("") };
        to.map(|to| Action::Forward(Box::new(forward(to)))).or(self.respond.map(Action::Respond))
    }
}

fn segments(path: Option<String>) -> PathMatch {
    PathMatch::segments(path.as_deref().unwrap_or_default())
}

fn exactly(path: String) -> PathMatch {
    PathMatch { rule: PathRule::Exact(path), ignore_case: false }
}

fn matching(expression: Expression) -> PathMatch {
    PathMatch { rule: PathRule::Regex(expression), ignore_case: false }
}

pub(super) fn to_upstream(name: String) -> Action {
    Action::Forward(Box::new(Forward::to(name)))
}

/// Shows every route of a table, each with its hosts.
pub(super) fn show_table(table: &RouteTable) -> Value {
    let mut shown = Vec::new();
    for host in &table.hosts {
        let domains: Vec<String> = host.domains.iter().map(ToString::to_string).collect();
        let domains: Value = if let [one] = &domains[..] { one.as_str().into() } else { domains.into() };
        if host.require_tls {
            shown.push(json!({ "host": domains, "redirect": "https", "require_tls": true }));
        }
        shown.extend(host.routes.iter().map(|route| show(route, &domains)));
    }
    shown.into()
}

/// Shows the route of every connection to these upstreams.
pub(super) fn show_targets(to: &[Weighted]) -> Value {
    let forward = Forward { to: to.to_vec(), ..Forward::to("") };
    let route = Route::new(segments(None), Action::Forward(Box::new(forward)), Place::builtin());
    show(&route, &"*".into())
}

fn show(route: &Route, domains: &Value) -> Value {
    let mut shown = ROUTE.show(route);
    let prefix = match &route.path.rule {
        PathRule::Prefix(path) => Some(path.as_str()),
        _ => None,
    };
    let forward = forward(route);
    put(
        &mut shown,
        [
            ("host", domains.clone()),
            ("name", text(&route.name)),
            ("path_prefix", prefix.into()),
            ("ignore_case", if_true(route.path.ignore_case)),
            ("query", list(route.query.iter().map(query_match))),
            ("rewrite_host", forward.and_then(|to| to.host.as_ref()).map(host_rewrite).into()),
            ("cors", route.cors.as_ref().map(cors).into()),
            ("fault", route.fault.as_ref().map(fault).into()),
            ("idle", forward.and_then(|to| to.idle).map(time).into()),
        ],
    );
    shown
}

/// Returns null: hosts are shown with the table, since routes belong to a host in the model.
fn shown_with_the_table(_: &Route) -> Value {
    Value::Null
}

fn forward(route: &Route) -> Option<&Forward> {
    match &route.action {
        Action::Forward(forward) => Some(forward),
        Action::Respond(_) | Action::Redirect(_) => None,
    }
}

fn show_action_redirect(action: &Action) -> Value {
    match action {
        Action::Redirect(redirect) => show_redirect(redirect),
        Action::Forward(_) | Action::Respond(_) => Value::Null,
    }
}

fn show_respond(action: &Action) -> Value {
    match action {
        Action::Respond(respond) => RESPOND.show(respond),
        Action::Forward(_) | Action::Redirect(_) => Value::Null,
    }
}
