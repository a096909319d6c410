//! Tests of route lookups, by table.

use super::router::{RouteLookup, Router};
use crate::{
    http::{rate_limit::Limiters, request::request_view::RequestView},
    upstream::Upstreams,
};
use http::{HeaderMap, HeaderValue};
use quadrille_config::model::{
    Action, Domain, HeaderMatch, HeaderRule, PathMatch, PathRule, Place, QueryMatch, Respond, Route,
    RouteTable, TextMatch, TextRule, VirtualHost, whole,
};
use std::sync::Arc;

fn route(path: PathRule, body: &'static str) -> Route {
    let path = PathMatch { rule: path, ignore_case: false };
    Route::new(path, Action::Respond(Respond::text(body)), Place::builtin())
}

fn prefix(path: &str, body: &'static str) -> Route {
    route(PathRule::Prefix(path.into()), body)
}

fn host(domains: &[&str], routes: Vec<Route>) -> VirtualHost {
    VirtualHost::new(
        domains.iter().map(|domain| Domain::wildcard(domain)).collect(),
        routes,
        Place::builtin(),
    )
}

fn compiled(table: RouteTable) -> Arc<Router> {
    Arc::new(Router::new(&Arc::new(table), &Upstreams::default(), &Limiters::default()))
}

/// A table with Envoy's order of hosts.
fn ordered(hosts: Vec<VirtualHost>) -> Arc<Router> {
    compiled(RouteTable { hosts, match_port: true, ..RouteTable::default() })
}

fn body(routes: &Arc<Router>, request: &RequestView<'_>) -> String {
    match routes.find(request) {
        Some(RouteLookup::Route(matched)) => match &matched.route().action {
            Action::Respond(respond) => String::from_utf8_lossy(&respond.body).into_owned(),
            _ => "another action".into(),
        },
        Some(RouteLookup::NeedsTls) => "needs TLS".into(),
        None => "none".into(),
    }
}

/// Looks up `url`, which is a host and a path.
fn get(routes: &Arc<Router>, url: &str, headers: &[(&'static str, &'static str)]) -> String {
    let at = url.find('/').expect("a path");
    let (path, query) =
        url[at..].split_once('?').map_or((&url[at..], None), |(path, query)| (path, Some(query)));
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_static(value));
    }
    body(routes, &RequestView { authority: &url[..at], method: "GET", path, query, headers: &map, tls: true })
}

#[test]
fn envoys_order_of_hosts() {
    let routes = ordered(vec![
        host(&["*"], vec![prefix("/", "any")]),
        host(&["example.*"], vec![prefix("/", "example.*")]),
        host(&["exam*"], vec![prefix("/", "exam*")]),
        host(&["*.example.com"], vec![prefix("/", "*.example.com")]),
        host(&["*-bar.example.com", "*.com"], vec![prefix("/", "two")]),
        host(&["www.example.com", "Other.example.com:8443"], vec![prefix("/", "exact")]),
    ]);
    for (url, expected) in [
        ("www.example.com/", "exact"),
        ("WWW.Example.Com/", "exact"),
        ("other.example.com:8443/", "exact"),
        ("other.example.com/", "*.example.com"),
        ("a.b.example.com/", "*.example.com"),
        ("foo-bar.example.com/", "two"),
        ("-bar.example.com/", "*.example.com"),
        ("example.com/", "two"),
        ("example.net/", "example.*"),
        ("exams.net/", "exam*"),
        ("example./", "exam*"),
        ("www.example.com:443/", "any"),
        (".com/", "any"),
        ("/", "any"),
    ] {
        assert_eq!(get(&routes, url, &[]), expected, "{url}");
    }
}

#[test]
fn ports_matter_only_if_they_are_to() {
    let hosts = || vec![host(&["a.example"], vec![prefix("/", "a")])];
    assert_eq!(get(&ordered(hosts()), "a.example:1/", &[]), "none");
    let routes = compiled(RouteTable { hosts: hosts(), ..RouteTable::default() });
    assert_eq!(get(&routes, "a.example:1/", &[]), "a");
}

#[test]
fn the_first_matching_route_of_the_most_specific_host_wins() {
    let routes = ordered(vec![
        host(
            &["a.example"],
            vec![
                prefix("/a", "prefix"),
                route(PathRule::Exact("/ab".into()), "never"),
                route(PathRule::Segments("/s".into()), "segments"),
                route(PathRule::Regex(whole("/v[0-9]").expect("an expression")), "regex"),
                route(PathRule::Exact("/exact".into()), "exact"),
            ],
        ),
        host(&["*"], vec![prefix("/", "any")]),
    ]);
    for (url, expected) in [
        ("a.example/ab?q", "prefix"),
        ("a.example/s", "segments"),
        ("a.example/s/x", "segments"),
        ("a.example/sx", "none"),
        ("a.example/v1?x=/", "regex"),
        ("a.example/v12", "none"),
        ("a.example/exact?x", "exact"),
        ("a.example/exact/", "none"),
        ("b.example/exact/", "any"),
    ] {
        assert_eq!(get(&routes, url, &[]), expected, "{url}");
    }
}

#[test]
fn headers_and_queries_are_conditions() {
    let header =
        |name: &str, rule| HeaderMatch { name: name.into(), rule, invert: false, missing_is_empty: false };
    let text = |text: &str| HeaderRule::Text(TextMatch::exact(text));
    let on = |headers: Vec<HeaderMatch>, body| Route { headers, ..prefix("/", body) };
    let query = |name: &str, value: Option<TextMatch>| QueryMatch {
        name: name.into(),
        value,
        invert: false,
        decode: false,
    };
    let starts = TextMatch { rule: TextRule::Prefix("1".into()), ignore_case: false };
    let routes = ordered(vec![host(
        &["*"],
        vec![
            on(vec![header("x-a", text("1")), header("x-b", HeaderRule::Present(true))], "both"),
            on(vec![HeaderMatch { invert: true, ..header("x-c", text("1")) }], "c is not 1"),
            on(vec![header("x-n", HeaderRule::Range(-5, 10))], "a number"),
            on(vec![header(":method", text("GET")), header("x-list", text("b"))], "in the list"),
            on(
                vec![
                    HeaderMatch { missing_is_empty: true, ..header("x-e", text("")) },
                    header("x-f", text("1")),
                ],
                "e empty",
            ),
            on(
                vec![header("x-g", HeaderRule::Present(true)), header("x-a", HeaderRule::Present(false))],
                "no a",
            ),
            Route { query: vec![query("q", Some(starts)), query("r", None)], ..prefix("/", "by query") },
            on(vec![header("host", text("h"))], "host"),
        ],
    )]);
    for (url, headers, expected) in [
        ("h/", &[("x-a", "1"), ("x-b", "")][..], "both"),
        ("h/", &[("x-a", "1")], "host"),
        ("h/", &[("x-c", "2")], "c is not 1"),
        ("g/", &[("x-c", "1")], "none"),
        ("g/", &[("x-n", "-5")], "a number"),
        ("g/", &[("x-n", "10")], "none"),
        ("g/", &[("x-n", "1x")], "none"),
        ("g/", &[("x-list", "a"), ("x-list", "b")], "in the list"),
        ("g/", &[("x-list", "a,b")], "none"),
        ("g/", &[("x-c", "2"), ("x-c", "1")], "none"),
        ("g/", &[("x-c", "2"), ("x-c", "3")], "c is not 1"),
        ("g/", &[("x-n", "10"), ("x-n", "9")], "a number"),
        ("g/", &[("x-f", "1")], "e empty"),
        ("g/", &[("x-f", "1"), ("x-e", "x")], "none"),
        ("g/", &[("x-g", "1")], "no a"),
        ("g/", &[("x-g", "1"), ("x-a", "2")], "none"),
        ("g/?q=12&r", &[], "by query"),
        ("g/?q=2&q=1&r", &[], "none"),
        ("g/?q=1", &[], "none"),
        ("h/", &[], "host"),
    ] {
        assert_eq!(get(&routes, url, headers), expected, "{url} {headers:?}");
    }
}

#[test]
fn a_host_may_want_tls() {
    let mut wants = host(&["a.example"], vec![prefix("/", "a")]);
    wants.require_tls = true;
    let routes = ordered(vec![wants]);
    assert_eq!(get(&routes, "a.example/", &[]), "a");
    let headers = HeaderMap::new();
    let request = RequestView {
        authority: "a.example",
        method: "GET",
        path: "/",
        query: None,
        headers: &headers,
        tls: false,
    };
    assert_eq!(body(&routes, &request), "needs TLS");
}

fn by_weight(routes: &[(&str, &str, &'static str)]) -> Arc<Router> {
    compiled(RouteTable::by_weight(routes.iter().map(|(host, path, body)| {
        let domain = match host.strip_prefix("*.") {
            Some(parent) => Domain::Below(parent.to_owned()),
            None => Domain::wildcard(host),
        };
        (domain, route(PathRule::Segments(path.trim_end_matches('/').to_owned()), body))
    })))
}

#[test]
fn by_weight_the_order_does_not_matter() {
    let routes = by_weight(&[
        ("*", "", "any"),
        ("*.example.com", "", "wildcard"),
        ("www.example.com", "/api", "api"),
        ("www.example.com", "/api/v2/", "v2"),
        ("www.example.com", "/", "www"),
        ("*.wide.example.com", "", "wide"),
    ]);
    for (url, expected) in [
        ("www.example.com/api", "api"),
        ("WWW.example.com:8443/api/v1", "api"),
        ("www.example.com/api/v2", "v2"),
        ("www.example.com/api/v2/x", "v2"),
        ("www.example.com/apix", "www"),
        ("shop.example.com/api", "wildcard"),
        ("a.shop.example.com/", "any"),
        ("a.wide.example.com/", "wide"),
        ("example.com/", "any"),
    ] {
        assert_eq!(get(&routes, url, &[]), expected, "{url}");
    }
}

#[test]
fn by_weight_a_host_without_a_matching_path_falls_back() {
    let routes = by_weight(&[("a.example", "/x", "x"), ("*", "/y", "y")]);
    assert_eq!(get(&routes, "a.example/y", &[]), "y");
    assert_eq!(get(&routes, "a.example/z", &[]), "none");
}

/// The cost does not grow with the number of hosts.
#[test]
fn ten_thousand_routes_over_a_thousand_hosts_are_found_fast() {
    let routes = |host: usize| (0..10).map(|path| prefix(&format!("/{host}/{path}"), "found")).collect();
    let exact = (0..500).map(|index| host(&[&format!("{index}.example.com")], routes(index)));
    let wild = (500..1000).map(|index| host(&[&format!("*.{index}.example.com")], routes(index)));
    let table = ordered(exact.chain(wild).collect());
    let began = std::time::Instant::now();
    for round in 0..100 {
        for index in 0..1000 {
            let label = if index < 500 { "" } else { "a." };
            assert_eq!(
                get(&table, &format!("{label}{index}.example.com/{index}/{}", round % 10), &[]),
                "found"
            );
        }
    }
    let each = began.elapsed() / 100_000;
    assert!(each < std::time::Duration::from_micros(50), "{each:?} for one look-up");
}
