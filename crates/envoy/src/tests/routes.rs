//! Translation of routes to the model.

use super::{gateway, routes, warnings, with_route_config, with_routes};
use quadrille_config::model::{
    Action, Domain, Forward, HeaderChange, HeaderPart, HeaderRule, HostRewrite, PathRewrite, PathRule, Serve,
};
use std::time::Duration;

fn forward(route: &str) -> Forward {
    let gateway = gateway(&with_routes(&format!("- {{ match: {{ prefix: /a }}, route: {route} }}")));
    match &routes(&gateway)[0].action {
        Action::Forward(forward) => (**forward).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn paths_in_four_ways_and_their_order() {
    let gateway = gateway(&with_routes(
        "- { match: { path: /exact }, direct_response: { status: 200 } }
- { match: { safe_regex: { google_re2: {}, regex: '/v[0-9]+' } }, direct_response: { status: 200 } }
- { match: { path_separated_prefix: /api, case_sensitive: false }, direct_response: { status: 200 } }
- { match: { prefix: / }, direct_response: { status: 200 } }",
    ));
    let [exact, regex, segments, prefix] = routes(&gateway) else { panic!("not four") };
    assert!(matches!(&exact.path.rule, PathRule::Exact(path) if path == "/exact"));
    assert!(regex.path.matches("/v12") && !regex.path.matches("/v12/x"), "the whole path matches");
    assert!(matches!(&segments.path.rule, PathRule::Segments(_)) && segments.path.ignore_case);
    assert!(matches!(&prefix.path.rule, PathRule::Prefix(path) if path == "/") && !prefix.path.ignore_case);
}

#[test]
fn conditions_on_headers_and_queries() {
    let gateway = gateway(&with_routes(
        "- match:
    prefix: /
    grpc: {}
    headers:
    - { name: X-A, string_match: { exact: a } }
    - { name: host, exact_match: h }
    - { name: n, range_match: { start: 1, end: '10' } }
    - { name: p, present_match: false, invert_match: true }
    - { name: q }
    query_parameters: [ { name: debug }, { name: v, string_match: { prefix: x } } ]
  direct_response: { status: 200 }",
    ));
    let route = &routes(&gateway)[0];
    let names: Vec<_> = route.headers.iter().map(|header| header.name.as_str()).collect();
    assert_eq!(names, ["x-a", ":authority", "n", "p", "q", "content-type"]);
    assert!(matches!(&route.headers[0].rule, HeaderRule::Text(text) if text.matches("a")));
    assert!(matches!(route.headers[2].rule, HeaderRule::Range(1, 10)));
    assert!(matches!(route.headers[3].rule, HeaderRule::Present(false)) && route.headers[3].invert);
    assert!(matches!(route.headers[4].rule, HeaderRule::Present(true)));
    assert!(
        matches!(&route.headers[5].rule, HeaderRule::Text(text) if text.matches("application/grpc+proto") && !text.matches("application/grpcx"))
    );
    assert!(route.query[0].value.is_none() && route.query[1].value.is_some());
}

#[test]
fn times() {
    for (route, expected) in [
        ("{ cluster: c }", Some(15)),
        ("{ cluster: c, timeout: 0s }", None),
        ("{ cluster: c, timeout: 3s }", Some(3)),
        ("{ cluster: c, timeout: 0s, max_stream_duration: { max_stream_duration: 7s } }", Some(7)),
        ("{ cluster: c, timeout: 30s, max_stream_duration: { max_stream_duration: 0s } }", Some(30)),
    ] {
        assert_eq!(forward(route).timeout, expected.map(Duration::from_secs), "{route}");
    }
}

#[test]
fn upgrades() {
    for (route, expected) in [
        ("{ cluster: c }", [None, None]),
        ("{ cluster: c, upgrade_configs: [ { upgrade_type: websocket } ] }", [Some(true), None]),
        (
            "{ cluster: c, upgrade_configs: [ { upgrade_type: WebSocket, enabled: false } ] }",
            [Some(false), None],
        ),
        ("{ cluster: c, upgrade_configs: [ { upgrade_type: SPDY/3.1 } ] }", [None, Some(true)]),
        (
            "{ cluster: c, upgrade_configs: [ { upgrade_type: spdy/3.1, enabled: false } ] }",
            [None, Some(false)],
        ),
        ("{ cluster: c, upgrade_configs: [ { upgrade_type: h2c } ] }", [None, None]),
    ] {
        let upgrades = forward(route).upgrades;
        assert_eq!(["websocket", "spdy/3.1"].map(|protocol| upgrades.decide(protocol)), expected, "{route}");
    }
}

#[test]
fn rewrites_and_shares() {
    assert!(
        matches!(forward("{ cluster: c, prefix_rewrite: /b }").rewrite, Some(PathRewrite::Prefix(to)) if to == "/b")
    );
    for action in ["route: { cluster: c, prefix_rewrite: /b }", "redirect: { prefix_rewrite: /b }"] {
        let gateway =
            gateway(&with_routes(&format!("- {{ match: {{ safe_regex: {{ regex: '/a.*' }} }}, {action} }}")));
        let rewrite = match &routes(&gateway)[0].action {
            Action::Forward(forward) => &forward.rewrite,
            Action::Redirect(redirect) => &redirect.path,
            Action::Respond(_) => panic!("a response"),
        };
        assert!(matches!(rewrite, Some(PathRewrite::Full(to)) if to == "/b"), "{rewrite:?}");
    }
    let regex =
        forward(r"{ cluster: c, regex_rewrite: { pattern: { regex: '^/a/(.*)$' }, substitution: '/\1/b' } }");
    assert!(matches!(regex.rewrite, Some(PathRewrite::Regex(_, to)) if to == "/${1}/b"));
    assert!(matches!(forward("{ cluster: c, host_rewrite_literal: h }").host, Some(HostRewrite::Literal(_))));
    assert!(matches!(forward("{ cluster: c, auto_host_rewrite: true }").host, Some(HostRewrite::Server)));
    assert!(forward("{ cluster: c, auto_host_rewrite: false }").host.is_none());
    let shares = forward(
        "{ weighted_clusters: { clusters: [ { name: a, weight: 90 }, { name: b, weight: 10 }, { name: c, weight: 0 } ] } }",
    );
    assert_eq!(shares.to.iter().map(|to| to.weight.get()).collect::<Vec<_>>(), [90, 10]);
}

#[test]
fn what_is_tried_again() {
    let retry = forward("{ cluster: c, retry_policy: { retry_on: 'connect-failure,refused-stream,unavailable,retriable-status-codes', num_retries: 2, retriable_status_codes: [503], per_try_timeout: 1s } }").retry.unwrap();
    assert!(retry.on.connect_failure && retry.on.refused_stream && !retry.on.reset && !retry.idempotent_only);
    assert_eq!((retry.on.statuses.as_slice(), retry.retries), (&[503][..], 2));
    let server_errors = forward("{ cluster: c, retry_policy: { retry_on: 5xx } }").retry.unwrap();
    assert!(server_errors.on.server_error && server_errors.on.reset && server_errors.retries == 1);
    assert!(forward("{ cluster: c }").retry.is_none());
    let inherited = gateway(&with_route_config(
        "virtual_hosts: [ { name: a, domains: ['*'], retry_policy: { retry_on: reset }, routes: [ { match: { prefix: / }, route: { cluster: c } } ] } ]",
    ));
    assert!(matches!(&routes(&inherited)[0].action, Action::Forward(forward) if forward.retry.is_some()));
    let lines = warnings(&with_routes(
        "- { match: { prefix: / }, route: { cluster: c, retry_policy: { retry_on: 'cancelled,reset' } } }",
    ));
    assert!(lines[0].contains("`cancelled` is not supported as a retry condition"), "{lines:?}");
}

#[test]
fn redirects_and_answers() {
    let gateway = gateway(&with_routes(
        "- { match: { path: /old }, redirect: { https_redirect: true, host_redirect: new.example, port_redirect: 444, path_redirect: /new, response_code: PERMANENT_REDIRECT, strip_query: true } }
- { match: { prefix: /p }, redirect: { prefix_rewrite: /q } }
- { match: { prefix: / }, direct_response: { status: 404, body: { inline_bytes: bm8= } } }",
    ));
    let [old, prefix, answer] = routes(&gateway) else { panic!("not three") };
    let Action::Redirect(to) = &old.action else { panic!("no redirect") };
    assert_eq!(
        (
            to.scheme.as_deref(),
            to.host.as_ref().and_then(|host| host.as_literal()),
            to.port,
            to.status,
            to.strip_query
        ),
        (Some("https"), Some("new.example"), Some(444), 308, true)
    );
    assert!(matches!(&to.path, Some(PathRewrite::Full(path)) if path == "/new"));
    assert!(
        matches!(&prefix.action, Action::Redirect(to) if to.status == 301 && matches!(&to.path, Some(PathRewrite::Prefix(_))))
    );
    assert!(
        matches!(&answer.action, Action::Respond(respond) if respond.status == 404 && &respond.body[..] == b"no")
    );
}

#[test]
fn changes_to_headers_from_the_route_outwards() {
    let text = with_route_config(
        "response_headers_to_add: [ { header: { key: x-from, value: config }, append_action: ADD_IF_ABSENT } ]
virtual_hosts:
- name: a
  domains: ['*']
  request_headers_to_add: [ { header: { key: x-host, value: '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT% 100%%' }, append: false } ]
  routes:
  - match: { prefix: / }
    direct_response: { status: 200 }
    request_headers_to_remove: [ x-gone ]
    request_headers_to_add: [ { header: { key: x-route, value: 'a %REQ(x-b)% c' } } ]",
    );
    let gateway = gateway(&text);
    let route = &routes(&gateway)[0];
    let [
        HeaderChange::Remove(gone),
        HeaderChange::Append(first, value),
        HeaderChange::Overwrite(second, client),
    ] = route.request_headers.as_slice()
    else {
        panic!("{:?}", route.request_headers)
    };
    assert_eq!((gone.as_str(), first.as_str(), second.as_str()), ("x-gone", "x-route", "x-host"));
    assert!(
        matches!(value.0.as_slice(), [HeaderPart::Literal(_), HeaderPart::RequestHeader(name), HeaderPart::Literal(_)] if name.as_str() == "x-b")
    );
    assert!(
        matches!(client.0.as_slice(), [HeaderPart::ClientIp, HeaderPart::Literal(text)] if text.as_bytes() == b" 100%")
    );
    assert!(matches!(route.response_headers.as_slice(), [HeaderChange::AddIfAbsent(..)]));
    let unknown = text.replace("%REQ(x-b)%", "%MOON%");
    assert!(super::problems(&unknown).contains("`%MOON%` is not supported; supported: %REQ(name)%"));
}

#[test]
fn hosts() {
    let gateway = gateway(&with_route_config(
        "ignore_port_in_host_matching: true
virtual_hosts:
- { name: a, domains: [ A.example, '*.b.example', 'c.*' ], require_tls: ALL, routes: [] }
- { name: all, domains: '*', routes: [] }",
    ));
    let Serve::Http(http) = &super::only_chain(&gateway).serve else { panic!("no HTTP") };
    assert!(!http.routes.match_port && !http.routes.fall_through);
    let [first, all] = http.routes.hosts.as_slice() else { panic!("not two") };
    assert_eq!(
        first.domains,
        [Domain::Exact("a.example".into()), Domain::Suffix(".b.example".into()), Domain::Prefix("c.".into())]
    );
    assert!(first.require_tls && !all.require_tls && all.domains == [Domain::Any]);
}
