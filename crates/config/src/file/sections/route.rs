//! Routes: the table of their keys, and how `/config` shows them.

use super::{
    access_log, authorization, basic_auth, compression, cors, error_pages,
    fault::{self, FAULT},
    header_changes, jwt, listener_clients, rate_limits,
    route_actions::{only_upstream, redirect, show_redirect, show_split, split},
    route_client_auth, route_conditions,
    route_draft::{RouteDraft, exactly, matching, segments},
    route_limits, route_mirror, route_refused,
    route_respond::{self, RESPOND},
    route_retry::{RETRY, retry},
    route_shown::{
        exact_path, path_regex, path_rewrite, segments_of, show_cors, show_upstream_host, upstream_host,
    },
    route_sticky, upgrades, value_conditions,
    written_route::WrittenRoute,
};
use crate::{
    Field, Problem,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::{if_true, list, put, text, time},
    },
    model::{Action, Forward, PathRule, Place, Route, RouteTable, Weighted},
    values,
};
use serde_json::{Value, json};

/// Reads a route, which forwards, responds or redirects.
pub(super) fn route(field: &Field<'_>) -> Option<WrittenRoute> {
    let mut draft = RouteDraft::every_request();
    ROUTE.read(field, &mut draft)?;
    route_refused::refuse_contradictions(field);
    let (hosts, path) = (draft.hosts.take(), draft.path.take());
    let uncompressed = matches!(draft.compression, Some(None));
    let route = draft.take_settings(field.place());
    let action = draft.into_action()?;
    if !matches!(action, Action::Forward(_)) {
        for field in FORWARDING_KEYS.iter().filter_map(|key| field.entry(key)) {
            field.error(Problem::new("this route does not forward to an upstream", "remove this"));
        }
    }
    let route = Route { path: path?, action, ..route };
    Some(WrittenRoute { hosts: hosts?, route, uncompressed })
}

/// Keys of routes that forward to an upstream, and of no others.
pub const FORWARDING_KEYS: [&str; 10] = [
    "rewrite",
    "upstream_host",
    "timeout",
    "retry",
    "sticky",
    "mirror",
    "request_headers",
    "request_trailers",
    "compression",
    "upgrades",
];

pub(super) const ROUTE: Section<RouteDraft, Route> = Section {
    path: "listeners[].routes[]",
    about: "A route of requests. Each route has one of `upstream`, `split`, `redirect` and `respond`.",
    keys: &[
        Key::new(
            "host",
            "host, `*.domain`, `*`, or a list of them",
            Preset::Is("\"*\""),
            "`example.com` matches that host, `*.example.com` every host with one label before it.",
            |field, draft| draft.hosts = value_conditions::hosts(field),
            shown_with_the_table,
        ),
        Key::new(
            "path",
            "path",
            Preset::Is("/"),
            "A prefix of whole segments: `/api` matches `/api` and `/api/users`, not `/apis`.",
            |field, draft| draft.path = field.parse(values::route_path).map(segments),
            |route| segments_of(&route.path),
        ),
        Key::new(
            "path_exact",
            "path",
            Preset::Means("none"),
            "The exact path, in place of `path`. Precedes regular expressions and prefixes.",
            |field, draft| draft.path = field.parse(values::path).map(exactly),
            |route| exact_path(&route.path),
        ),
        Key::new(
            "path_regex",
            "regular expression",
            Preset::Means("none"),
            "An expression that matches the whole path, in place of `path`, in the syntax of RE2 (without \
                    look-around). Precedes prefixes; among several, the one with the most conditions, then the first in \
                    the file. `rewrite`, `redirect` and headers may refer to its groups: `{1}` or `{name}`.",
            |field, draft| draft.path = field.parse(values::whole_regex).map(matching),
            |route| path_regex(&route.path),
        ),
        Key::new(
            "before_regex",
            "`on` or `off`",
            Preset::Is("off"),
            "Whether `path` precedes every `path_regex` (`location ^~` of nginx).",
            |field, draft| field.set(&mut draft.before_regex, switch),
            |route| if_true(route.before_regex),
        ),
        Key::new(
            "methods",
            "list of methods",
            Preset::Means("any"),
            "The methods, such as `POST`; upper and lower case differ. Requests with another method go to the next \
                    route.",
            |field, draft| draft.methods = value_conditions::methods(field),
            |route| value_conditions::show_methods(&route.methods),
        ),
        Key::new(
            "headers",
            "list of conditions",
            Preset::Means("none"),
            "Conditions on the request's headers. If two routes have the same path, the one with more \
                    conditions comes first.",
            |field, draft| draft.headers = route_conditions::headers(field),
            |route| list(route.headers.iter().map(route_conditions::show)),
        ),
        Key::new(
            "queries",
            "list of conditions",
            Preset::Means("none"),
            "Conditions on parameters of the query.",
            |field, draft| draft.queries = value_conditions::queries(field),
            |route| value_conditions::show_queries(&route.query),
        ),
        Key::new(
            "cookies",
            "list of conditions",
            Preset::Means("none"),
            "Conditions on cookies.",
            |field, draft| draft.cookies = value_conditions::cookies(field),
            |route| value_conditions::show_cookies(&route.cookies),
        ),
        Key::new(
            "upstream",
            "name of an upstream",
            Preset::Means("none"),
            "The upstream that receives matching requests.",
            |field, draft| draft.upstream = field.upstream_name(),
            |route| forward(route).and_then(only_upstream).into(),
        ),
        Key::new(
            "split",
            "list of shares",
            Preset::Means("none"),
            "Several upstreams that share matching requests by weight, or, in `tcp` mode, connections.",
            |field, draft| draft.split = Some(split(field)),
            |route| forward(route).map(show_split).into(),
        ),
        Key::new(
            "redirect",
            "`https`, or mapping",
            Preset::Means("none"),
            "Redirects the client to another URL.",
            |field, draft| draft.redirect = redirect(field, draft.path_regex()),
            |route| show_action_redirect(&route.action),
        ),
        Key::new(
            "respond",
            "text, or mapping",
            Preset::Means("none"),
            "A fixed response, without an upstream. Text alone is the body of a response with status 200.",
            |field, draft| draft.respond = route_respond::respond(field),
            |route| show_respond(&route.action),
        ),
        Key::new(
            "rewrite",
            "path",
            Preset::Means("none"),
            "The path that replaces `path` for the upstream: `path: /old` with `rewrite: /new` makes \
                    `/new/x` of `/old/x`. With `path_regex` and `path_exact` it replaces the whole path, and may contain \
                    `{1}` or `{name}` (a group of `path_regex`), `{path}`, `{host}` and `{query}`.",
            |field, draft| draft.rewrite = draft.read_rewrite(field),
            |route| {
                forward(route)
                    .and_then(|to| to.rewrite.as_ref())
                    .map(|to| path_rewrite(to, &route.path))
                    .into()
            },
        ),
        Key::new(
            "upstream_host",
            "`received`, `server`, or a host",
            Preset::Is("received"),
            "The `Host` that servers receive: that of the request, that of the server's address (`server`), or this \
                    one, such as `app.internal` or `app.internal:8080`. `X-Forwarded-Host` has that of the request.",
            |field, draft| draft.upstream_host = field.parse(upstream_host).flatten(),
            |route| forward(route).and_then(|to| to.host.as_ref()).map(show_upstream_host).into(),
        ),
        Key::new(
            "timeout",
            "duration",
            Preset::Means("none"),
            "Time from the request to the end of its response, all attempts together. If no response has begun \
                    by then, the response is 504, or 408 if the server still waits for the client; a response that \
                    has begun is cut off. Not for WebSocket.",
            |field, draft| draft.timeout = field.parse(values::timeout),
            |route| forward(route).and_then(|to| to.timeout).map(time).into(),
        ),
        Key::new(
            "sticky",
            "list of `client_ip` or mappings",
            Preset::Means("none"),
            "Session affinity: the properties of a request, such as a cookie, that select its server \
                    in an upstream with `balance: hash`.",
            |field, draft| draft.sticky = route_sticky::sticky(field),
            |route| forward(route).map(|to| route_sticky::show(&to.hash)).into(),
        ),
        Key::new(
            "mirror",
            "names of upstreams, or list of mappings",
            Preset::Means("none"),
            "Upstreams that receive copies of requests.",
            |field, draft| draft.mirrors = route_mirror::mirrors(field),
            |route| forward(route).map(|to| route_mirror::show(&to.mirrors)).into(),
        ),
        Key::new(
            "request_headers",
            "list of changes",
            Preset::Means("none"),
            "Changes to the headers of requests that are forwarded, made in this order, in the format of \
                    `response_headers`.",
            |field, draft| {
                draft.request_headers = header_changes::header_changes_of(field, draft.path_regex());
            },
            |route| header_changes::show(&route.request_headers),
        ),
        Key::new(
            "request_trailers",
            "`on` or `off`",
            Preset::Is("off"),
            "Whether trailers of requests are forwarded to servers over HTTP/1.1, too. Enable it only if the servers \
                    do not treat trailers as headers. Over HTTP/2, trailers are always forwarded. Hop-by-hop fields, \
                    fields that control routing, framing, authentication or caching, and names that the gateway sets \
                    or removes are never forwarded as trailers, in either direction.",
            |field, draft| field.set(&mut draft.request_trailers, switch),
            |route| if_true(forward(route).is_some_and(|to| to.request_trailers)),
        ),
        Key::new(
            "response_headers",
            "list of changes",
            Preset::Means("none"),
            "Changes to the headers of responses, made in this order. They apply to responses of servers, of \
                    `respond` and of `redirect`, and to the gateway's own errors for requests that match the route.",
            |field, draft| {
                draft.response_headers = header_changes::header_changes_of(field, draft.path_regex());
            },
            |route| header_changes::show(&route.response_headers),
        ),
        Key::new(
            "access_log",
            "`on`, `off` or a percentage",
            Preset::Is("on"),
            "Whether the access log has requests of this route, or the share that it has, chosen at random.",
            |field, draft| field.set(&mut draft.logged_parts, access_log::share),
            |route| access_log::show_share(route.logged_parts),
        ),
        Key::new(
            "clients",
            "mapping",
            Preset::Means("all that the listener allows"),
            "Access control by client address, as `clients` of a listener, and in addition to it: others receive 403.",
            |field, draft| draft.clients = listener_clients::clients(field),
            |route| listener_clients::show(&route.access.iter().collect::<Vec<_>>()),
        ),
        Key::new(
            "client_auth",
            "`required`, or mapping",
            Preset::Means("that of the listener"),
            "Requires a client certificate that the listener has verified: requests on other connections receive 403, \
                    with a text that says whether the certificate is missing or not accepted.",
            |field, draft| draft.client_auth = route_client_auth::client_auth(field),
            |route| route_client_auth::show(&route.access),
        ),
        Key::new(
            "cors",
            "mapping",
            Preset::Means("none"),
            "Access for pages of other origins.",
            |field, draft| draft.cors = cors::cors(field),
            |route| route.cors.as_ref().map(show_cors).into(),
        ),
        Key::new(
            "fault",
            "mapping",
            Preset::Means("none"),
            "Fault injection, to test clients.",
            |field, draft| draft.fault = fault::fault(field),
            |route| route.fault.as_ref().map(|fault| FAULT.show(fault)).into(),
        ),
        Key::new(
            "rate_limits",
            "list of limits",
            Preset::Means("none"),
            "Rate limits for matching requests, in addition to the listener's limits.",
            |field, draft| draft.rate_limits = rate_limits::rate_limits(field),
            |route| rate_limits::show(route.rate_limits.limits()),
        ),
        Key::new(
            "limits",
            "mapping",
            Preset::Means("the listener's"),
            "Limits of matching requests.",
            |field, draft| draft.limits = route_limits::limits(field),
            route_limits::show,
        ),
        Key::new(
            "basic_auth",
            "mapping, a path of users, or `off`",
            Preset::Means("the listener's `basic_auth`"),
            "HTTP Basic authentication, in place of the listener's.",
            |field, draft| draft.basic_auth = basic_auth::basic_auth(field),
            |route| basic_auth::show(&route.basic_auth),
        ),
        Key::new(
            "jwt",
            "mapping, or `off`",
            Preset::Means("the listener's `jwt`"),
            "The JSON Web Token that requests need, in place of the listener's.",
            |field, draft| draft.jwt = jwt::jwt(field),
            |route| jwt::show(&route.jwt),
        ),
        Key::new(
            "authorization",
            "mapping, or `off`",
            Preset::Means("the listener's `authorization`"),
            "An external authorization server, in place of the listener's.",
            |field, draft| draft.authorization = authorization::authorization(field),
            |route| authorization::show(&route.authorization),
        ),
        Key::new(
            "compression",
            "mapping, `on` or `off`",
            Preset::Means("the listener's `compression`"),
            "Response compression, in place of the listener's.",
            |field, draft| draft.compression = Some(compression::compression(field)),
            |route| compression::show(route.compression.as_ref()),
        ),
        Key::new(
            "error_pages",
            "list of pages",
            Preset::Means("the listener's"),
            "Error pages, which precede the listener's.",
            |field, draft| draft.error_pages = error_pages::error_pages(field),
            |route| error_pages::show(&route.error_pages),
        ),
        Key::new(
            "upgrades",
            "list of protocols, or `off`",
            Preset::Means("the listener's `upgrades`"),
            "Protocols that matching requests may switch to, in place of the listener's.",
            |field, draft| draft.upgrades = upgrades::upgrades(field),
            |route| forward(route).map(|to| upgrades::show(&to.upgrades)).into(),
        ),
        Key::new(
            "retry",
            "mapping",
            Preset::Means("the upstream's `retries`"),
            "The failures that are retried.",
            |field, draft| draft.retry = retry(field),
            |route| forward(route).and_then(|to| to.retry.as_ref()).map(|retry| RETRY.show(retry)).into(),
        ),
    ],
};

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
