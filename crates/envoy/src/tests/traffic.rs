//! Faults, CORS, hash policies, and mirrored requests.

use super::{gateway, problems, warnings, with_route_config};
use quadrille_config::model::{Action, Cors, Fault, HashOn, HashPolicy, Mirror, Route, Serve, TextMatch};
use std::time::Duration;

const CORS: &str = "\"@type\": type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy";
const FAULT: &str = "\"@type\": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault";

/// Returns a configuration whose virtual host and only route have these filter settings, and whose route has this
/// action.
fn text(host: &str, route: &str, action: &str) -> String {
    with_route_config(&format!(
        "virtual_hosts: [ {{ name: h, domains: [ \"*\" ], typed_per_filter_config: {{ {host} }}, routes: [ {{ match: {{ \
         prefix: / }}, typed_per_filter_config: {{ {route} }}, route: {{ cluster: app, {action} }} }} ] }} ]"
    ))
}

fn read(host: &str, route: &str, action: &str) -> Route {
    let text = text(host, route, action);
    assert_eq!(warnings(&text), Vec::<String>::new());
    let gateway = gateway(&text);
    let Serve::Http(http) = &gateway.listeners[0].chains[0].serve else { panic!("HTTP") };
    http.routes.hosts[0].routes[0].clone()
}

#[test]
fn cors_of_a_route_takes_the_place_of_the_hosts() {
    let host =
        format!("cors: {{ {CORS}, allow_origin_string_match: [ {{ exact: \"https://h.example\" }} ] }}");
    let own = format!(
        "cors: {{ {CORS}, allow_origin_string_match: [ {{ exact: \"https://r.example\" }} ], allow_methods: \"GET,POST\", \
         allow_headers: x-a, expose_headers: x-b, max_age: \"86400\", allow_credentials: true, \
         forward_not_matching_preflights: false }}"
    );
    let origins = |origin: &str| vec![TextMatch::exact(origin)];
    let of_host =
        Cors { origins: origins("https://h.example"), forward_other_preflights: true, ..Cors::default() };
    assert_eq!(read(&host, "", "").cors, Some(of_host));
    let of_route = Cors {
        origins: origins("https://r.example"),
        methods: "GET,POST".to_owned(),
        headers: "x-a".to_owned(),
        expose: "x-b".to_owned(),
        max_age: "86400".to_owned(),
        credentials: true,
        forward_other_preflights: false,
    };
    assert_eq!(read(&host, &own, "").cors, Some(of_route));
    let off = format!("cors: {{ {CORS}, filter_enabled: {{ default_value: {{ numerator: 0 }} }} }}");
    assert_eq!(read("", &off, "").cors, None);
    assert_eq!(read(&host, &off, "").cors, None, "switched off for this route, and on for the host");
}

#[test]
fn faults_are_for_shares_of_a_million() {
    let fault = format!(
        "fault: {{ {FAULT}, delay: {{ fixed_delay: 0.5s, percentage: {{ numerator: 25 }} }}, abort: {{ http_status: 418, \
         percentage: {{ numerator: 5, denominator: MILLION }} }} }}"
    );
    let expected = Fault { delay: Some((Duration::from_millis(500), 250_000)), abort: Some((418, 5)) };
    assert_eq!(read("", &fault, "").fault, Some(expected));
    let none = format!("fault: {{ {FAULT} }}");
    assert_eq!(read("", &none, "").fault, None);
    assert_eq!(read(&fault, &none, "").fault, None, "the host's fault is not the route's");
    let by_header = format!("fault: {{ {FAULT}, headers: [ {{ name: x }} ] }}");
    assert!(problems(&text("", &by_header, "")).contains("faults apply to all requests of a route"));
}

#[test]
fn requests_keep_to_servers_by_what_routes_say() {
    let action = "hash_policy: [ { header: { header_name: X-User }, terminal: true }, { cookie: { name: id, ttl: 0s } }, \
                  { connection_properties: { source_ip: true } }, { query_parameter: { name: q } } ]";
    let Action::Forward(forward) = read("", "", action).action else { panic!("forwarded") };
    let on = |on, terminal| HashPolicy { on, terminal };
    let cookie = HashOn::Cookie { name: "id".to_owned(), lifetime: Some(Duration::ZERO), path: None };
    assert_eq!(
        forward.hash,
        [
            on(HashOn::Header(http::HeaderName::from_static("x-user")), true),
            on(cookie, false),
            on(HashOn::ClientIp, false),
            on(HashOn::Query("q".to_owned()), false),
        ]
    );
}

#[test]
fn mirrors_are_those_of_the_route_or_else_of_its_host_or_the_configuration() {
    let mirrors = |of_host: &str, own: &str| {
        let text = with_route_config(&format!(
            "request_mirror_policies: [ {{ cluster: c }} ]\nvirtual_hosts: [ {{ name: h, domains: [ \"*\" ], {of_host} \
             routes: [ {{ match: {{ prefix: / }}, route: {{ cluster: app, {own} }} }} ] }} ]"
        ));
        let gateway = gateway(&text);
        let Serve::Http(http) = &gateway.listeners[0].chains[0].serve else { panic!("HTTP") };
        let Action::Forward(forward) = &http.routes.hosts[0].routes[0].action else { panic!("forwarded") };
        forward.mirrors.clone()
    };
    let mirror = |upstream: &str, parts, marks_host| Mirror { upstream: upstream.into(), parts, marks_host };
    let of_host = "request_mirror_policies: [ { cluster: b } ],";
    let own = "request_mirror_policies: [ { cluster: a, runtime_fraction: { default_value: { numerator: 5 } } }, \
               { cluster: d, disable_shadow_host_suffix_append: true } ]";
    assert_eq!(mirrors(of_host, own), [mirror("a", 50_000, true), mirror("d", 1_000_000, false)]);
    assert_eq!(mirrors(of_host, ""), [mirror("b", 1_000_000, true)]);
    assert_eq!(mirrors("", ""), [mirror("c", 1_000_000, true)]);
}
