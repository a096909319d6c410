//! Closed parts of control planes' route configurations.

use crate::{Read, Resource, ResourceType, read_remote};
use quadrille_config::{
    Diagnostics,
    model::{Action, Origin, PathRule, Route, VirtualHost},
    yaml::{Limits, read},
};
use std::rc::Rc;

fn received(hosts: &str) -> Result<Read, Diagnostics> {
    let text = format!("name: r\nvirtual_hosts: {hosts}");
    let tree = read(&text, Limits::BY_PROGRAM).expect("YAML").expect("a document");
    read_remote(ResourceType::Routes, &tree, Origin::file("xds"), &Vec::new().into(), &Rc::default())
}

fn hosts(hosts: &str) -> (Vec<VirtualHost>, String) {
    let read = received(hosts).unwrap_or_else(|errors| panic!("{errors}"));
    let Resource::Routes(routes) = &read.resource else { panic!("no routes") };
    (routes.table.hosts.clone(), read.closed.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

fn route(route: &str) -> (Route, String) {
    let (mut hosts, told) = hosts(&format!("[ {{ name: a, domains: ['*'], routes: [ {route} ] }} ]"));
    (hosts.remove(0).routes.remove(0), told)
}

fn is_closed(route: &Route) -> bool {
    matches!(&route.action, Action::Respond(respond) if respond.status == 503)
}

#[test]
fn a_closed_route_matches_at_least_what_the_route_would() {
    let to = "direct_response: { status: 200 }";
    for (condition, path, headers, queries) in [
        ("{ prefix: /a, tls_context: { presented: true } }", "/a", 0, 0),
        ("{ prefix: /a, headers: [ { name: x }, { name: y, moon: full } ] }", "/a", 1, 0),
        ("{ prefix: /a, headers: [ { name: x, invert_match: perhaps } ] }", "/a", 0, 0),
        ("{ path: /a, query_parameters: [ { name: q }, { name: p, present_match: false } ] }", "/a", 0, 1),
        ("{ safe_regex: { regex: '(' } }", "", 0, 0),
        ("{ path_match_policy: { name: x } }", "", 0, 0),
        ("{ headers: [ { name: x } ] }", "", 1, 0),
    ] {
        let (route, told) = route(&format!("{{ match: {condition}, {to} }}"));
        assert!(is_closed(&route) && !told.is_empty(), "{condition}: {route:?}");
        assert_eq!(
            (route.path.rule.text(), route.headers.len(), route.query.len()),
            (path, headers, queries),
            "{condition}"
        );
    }
    let (connect, _) = route(&format!("{{ match: {{ connect_matcher: {{}} }}, {to} }}"));
    assert!(is_closed(&connect) && connect.headers.len() == 1);
}

#[test]
fn each_part_of_a_route_closes_it() {
    for part in [
        "route: { cluster_header: x }",
        "route: { weighted_clusters: { clusters: [ { name: c, weight: 1, host_rewrite_literal: h } ] } }",
        "route: { cluster: c, host_rewrite_path_regex: { pattern: { regex: a } } }",
        "redirect: { scheme_redirect: ftp }",
        "direct_response: { status: 99 }",
        "non_forwarding_action: {}",
        "route: { cluster: c }, request_headers_to_add: [ { header: { key: a, value: '%MOON%' } } ]",
        "route: { cluster: c }, typed_per_filter_config: { f: { '@type': a/envoy.extensions.filters.http.fault.v3.HTTPFault, delay: { fixed_delay: x } } }",
        "route: { cluster: c }, typed_per_filter_config: { f: { '@type': a/envoy.extensions.filters.http.jwt_authn.v3.PerRouteConfig, requirement_name: r } }",
    ] {
        let (route, told) = route(&format!("{{ name: n, match: {{ path: /a }}, {part} }}"));
        assert!(is_closed(&route) && route.name == "n", "{part}: {route:?}");
        assert!(matches!(&route.path.rule, PathRule::Exact(path) if path == "/a"), "{part}");
        assert!(told.contains("virtual_hosts[0].routes[0]"), "{told}");
    }
}

#[test]
fn a_virtual_host_is_closed_alone() {
    let guarded = "typed_per_filter_config: { envoy.filters.http.rbac: { '@type': a/envoy.extensions.filters.http.rbac.v3.RBACPerRoute } }";
    let good = "{ name: b, domains: ['*'], routes: [ { match: { prefix: / }, route: { cluster: c } } ] }";
    let with =
        |fields: &str| format!("[ {{ name: a, domains: [a.example], routes: [], {fields} }}, {good} ]");
    let (hosts, told) = hosts(&with("cors: { allow_origin_string_match: [ { exact: a } ] }"));
    assert!(is_closed(&hosts[0].routes[0]) && !is_closed(&hosts[1].routes[0]), "{hosts:?}");
    assert!(told.contains("virtual_hosts[0].cors"), "{told}");
    let (guarded, told) = self::hosts(&with(guarded));
    assert!(is_closed(&guarded[0].routes[0]) && !is_closed(&guarded[1].routes[0]), "{guarded:?}");
    assert!(told.contains("virtual_hosts[0].typed_per_filter_config"), "{told}");
    let errors = received(
        &good.replace("['*']", "['a*b']").replace("{ name: b", "[ { name: b").replace("} ] }", "} ] } ]"),
    );
    assert!(errors.expect_err("no domain").to_string().contains("is not a domain"));
}

#[test]
fn an_exhausted_allowance_closes_nothing() {
    let route = |index| {
        format!(
            "{{ match: {{ safe_regex: {{ regex: '{index}\\pL{{100}}' }} }}, direct_response: {{ status: 200 }} }}"
        )
    };
    let routes: Vec<String> = (0..60).map(route).collect();
    let errors = received(&format!("[ {{ name: a, domains: ['*'], routes: [ {} ] }} ]", routes.join(", ")));
    assert!(errors.expect_err("too much").to_string().contains("regular expressions received with it"));
}
