//! Leaves of route tables: each rebuilds only its table.

use super::{Leaves, ROUTE_TABLE, TIME};
use http::{HeaderName, Method};
use quadrille_config::model::{
    Action, AttemptCounts, CookieMatch, Cors, Domain, Fault, FilterOnRoute, Forward, HashOn, HashPolicy,
    HeaderChange, HeaderMatch, HeaderRule, HostRewrite, Mirror, PathMatch, PathRewrite, PathRule, QueryMatch,
    Redirect, Respond, RetryOn, RetryPolicy, Route, RouteAuthorization, RouteBasicAuth, RouteBodyLimit,
    RouteDescriptors, RouteJwt, RouteRateLimits, RouteTable, Template, TextMatch, TextRule, Upgrades,
    VirtualHost, Weighted,
};
use std::{
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
};

pub(super) fn table(model: &mut RouteTable, leaves: &mut Leaves) {
    let RouteTable { name, hosts, fall_through, match_port, unreachable_is_503, internal_headers } = model;
    leaves.rebuild(ROUTE_TABLE);
    leaves.set("route_table.name", name, "other".into());
    leaves.flip("route_table.fall_through", fall_through);
    leaves.flip("route_table.match_port", match_port);
    leaves.flip("route_table.unreachable_is_503", unreachable_is_503);
    leaves.set("route_table.internal_headers", internal_headers, vec![HeaderName::from_static("x-other")]);
    for VirtualHost { name, domains, routes, require_tls, place: _ } in hosts {
        leaves.set("virtual_host.name", name, "other".into());
        leaves.set("virtual_host.domains", domains, vec![Domain::Exact("other.example".into())]);
        leaves.flip("virtual_host.require_tls", require_tls);
        routes.iter_mut().for_each(|one| route(one, leaves));
    }
}

fn route(model: &mut Route, leaves: &mut Leaves) {
    let Route {
        name,
        path,
        before_regex,
        methods,
        headers,
        query,
        cookies,
        access,
        action,
        request_headers,
        response_headers,
        cors,
        fault,
        rate_limits,
        descriptors,
        body_limit,
        active_per_client,
        basic_auth,
        jwt,
        authorization,
        compression,
        error_pages,
        tracing,
        logged_parts,
        place: _,
    } = model;
    leaves.set("route.access_log", logged_parts, Some(7));
    leaves.set("route.tracing", tracing, Some(Arc::default()));
    leaves.set("route.error_pages", error_pages, vec![super::listener::error_page()]);
    leaves.set("route.compression", compression, Some(Arc::default()));
    leaves.set("route.jwt", jwt, RouteJwt::Off);
    leaves.set("route.authorization", authorization, RouteAuthorization::Off);
    leaves.set("route.basic_auth", basic_auth, RouteBasicAuth::Off);
    leaves.set("route.body_limit", body_limit, RouteBodyLimit::Unlimited);
    leaves.set("route.active_per_client", active_per_client, NonZeroUsize::new(7));
    let told = RouteDescriptors { filters: vec![("other".into(), FilterOnRoute::Off)], ..Default::default() };
    leaves.set("route.descriptors", descriptors, Some(Arc::new(told)));
    leaves.set("route.rate_limits", rate_limits, RouteRateLimits::InPlace(Vec::new()));
    leaves.set("route.cors", cors, Some(Cors::default()));
    leaves.set("route.fault", fault, Some(Fault::default()));
    leaves.set("route.name", name, "other".into());
    leaves.flip("route.before_regex", before_regex);
    leaves.set("route.methods", methods, vec![Method::PUT]);
    leaves.set("route.access", access, vec![super::listener::deny_all()]);
    let PathMatch { rule, ignore_case } = path;
    leaves.set("route.path.rule", rule, PathRule::Exact("/other".into()));
    leaves.flip("route.path.ignore_case", ignore_case);
    for HeaderMatch { name, rule, invert, missing_is_empty } in headers {
        leaves.set("route.headers.name", name, "x-other".into());
        leaves.flip("route.headers.invert", invert);
        leaves.flip("route.headers.missing_is_empty", missing_is_empty);
        leaves.set("route.headers.rule", rule, HeaderRule::Range(1, 7));
    }
    for CookieMatch { name, value, invert } in cookies {
        leaves.set("route.cookies.name", name, "other".into());
        leaves.flip("route.cookies.invert", invert);
        leaves.set("route.cookies.value", value, None);
    }
    for QueryMatch { name, value, invert, decode } in query {
        leaves.set("route.query.name", name, "other".into());
        leaves.flip("route.query.invert", invert);
        leaves.flip("route.query.decode", decode);
        text_match(value.as_mut().expect("a value"), leaves);
        leaves.set("route.query.value", value, None);
    }
    header_changes("route", request_headers, response_headers, leaves);
    match action {
        Action::Forward(to) => forward(to, leaves),
        Action::Redirect(to) => redirect(to, leaves),
        Action::Respond(Respond { status, content_type, body }) => {
            leaves.set("respond.status", status, 410);
            leaves.set("respond.content_type", content_type, "text/other".into());
            leaves.set("respond.body", body, "other".into());
        }
    }
    leaves.set("route.action", action, Action::Respond(Respond::text("something else")));
}

pub(super) fn text_match(model: &mut TextMatch, leaves: &mut Leaves) {
    let TextMatch { rule, ignore_case } = model;
    leaves.set("text_match.rule", rule, TextRule::Suffix("other".into()));
    leaves.flip("text_match.ignore_case", ignore_case);
}

fn header_changes(
    of: &str,
    requests: &mut Vec<HeaderChange>,
    responses: &mut Vec<HeaderChange>,
    leaves: &mut Leaves,
) {
    let other = || vec![HeaderChange::Remove(HeaderName::from_static("x-other"))];
    leaves.set(&format!("{of}.request_headers"), requests, other());
    leaves.set(&format!("{of}.response_headers"), responses, other());
}

pub(super) fn upgrades(model: &mut Upgrades, leaves: &mut Leaves) {
    let Upgrades { on, off, only } = model;
    leaves.set("upgrades.on", on, vec!["other".into()]);
    leaves.set("upgrades.off", off, vec!["other".into()]);
    leaves.flip("upgrades.only", only);
}

fn forward(model: &mut Forward, leaves: &mut Leaves) {
    let Forward {
        to,
        rewrite,
        host,
        timeout,
        idle,
        retry,
        hash,
        mirrors,
        request_trailers,
        attempts,
        upgrades: of_route,
    } = model;
    upgrades(of_route, leaves);
    leaves.flip("forward.request_trailers", request_trailers);
    leaves.set("forward.hash", hash, vec![HashPolicy { on: HashOn::ClientIp, terminal: true }]);
    let other = Mirror { upstream: "other".into(), parts: 1, marks_host: true };
    let AttemptCounts { in_requests, in_responses } = attempts;
    leaves.flip("forward.attempts.in_requests", in_requests);
    leaves.flip("forward.attempts.in_responses", in_responses);
    leaves.set("forward.mirrors", mirrors, vec![other]);
    to.iter_mut().for_each(|to| weighted(to, leaves));
    leaves.set("forward.rewrite", rewrite, Some(PathRewrite::Full("/other".into())));
    leaves.set("forward.host", host, Some(HostRewrite::Server));
    leaves.set("forward.timeout", timeout, Some(TIME));
    leaves.set("forward.idle", idle, Some(TIME));
    let RetryPolicy { on, retries, per_try_timeout, idempotent_only, backoff } =
        retry.as_mut().expect("retries");
    leaves.set("retry.retries", retries, 7);
    leaves.set("retry.per_try_timeout", per_try_timeout, Some(TIME));
    leaves.flip("retry.idempotent_only", idempotent_only);
    leaves.flip("retry.backoff", backoff);
    let RetryOn {
        connect_failure,
        refused_stream,
        stale_connection,
        reset,
        server_error,
        gateway_error,
        conflict,
        statuses,
    } = on;
    leaves.flip("retry.on.connect_failure", connect_failure);
    leaves.flip("retry.on.refused_stream", refused_stream);
    leaves.flip("retry.on.stale_connection", stale_connection);
    leaves.flip("retry.on.reset", reset);
    leaves.flip("retry.on.server_error", server_error);
    leaves.flip("retry.on.gateway_error", gateway_error);
    leaves.flip("retry.on.conflict", conflict);
    leaves.set("retry.on.statuses", statuses, vec![429]);
    leaves.set("forward.retry", retry, None);
}

/// A filter chain in TCP mode builds no part from these settings.
pub(super) fn weighted(model: &mut Weighted, leaves: &mut Leaves) {
    let Weighted { upstream, weight, request_headers, response_headers } = model;
    leaves.set("weighted.upstream", upstream, "other".into());
    leaves.set("weighted.weight", weight, NonZeroU32::MIN.saturating_add(6));
    header_changes("weighted", request_headers, response_headers, leaves);
}

fn redirect(model: &mut Redirect, leaves: &mut Leaves) {
    let Redirect { scheme, host, port, path, status, strip_query } = model;
    leaves.set("redirect.scheme", scheme, Some("http".into()));
    leaves.set("redirect.host", host, Some(Template::literal("other.example")));
    leaves.set("redirect.port", port, Some(1));
    leaves.set("redirect.path", path, Some(PathRewrite::Full("/other".into())));
    leaves.set("redirect.status", status, 302);
    leaves.flip("redirect.strip_query", strip_query);
}
