//! Rate limit services: the same queries, headers and results as the stock Envoy.

use super::{
    serving,
    stock::{Both, ask, bootstrap, with_ports},
    upstream,
};
use crate::support::rate_limit_service;
use std::net::TcpListener;

const MANAGER: &str = r#"
          use_remote_address: true
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              rate_limits:
              - { actions: [ { generic_key: { descriptor_value: host } }, { request_headers: { header_name: x-host, descriptor_key: of-host, skip_if_absent: true } } ] }
              - { stage: 3, actions: [ { generic_key: { descriptor_value: never } } ] }
              routes:
              - { match: { path: /none }, direct_response: { status: 200 } }
              - { match: { path: /moved }, redirect: { path_redirect: /elsewhere } }
              - { match: { path: /host }, route: { cluster: app } }
              - { match: { path: /header }, route: { cluster: app, rate_limits: [ { actions: [ { request_headers: { header_name: x-a, descriptor_key: a } }, { request_headers: { header_name: x-b, descriptor_key: b, skip_if_absent: true } } ] }, { actions: [ { request_headers: { header_name: ":path", descriptor_key: path } } ] } ] } }
              - { match: { path: /client }, route: { cluster: app, rate_limits: [ { actions: [ { remote_address: {} } ] }, { actions: [ { masked_remote_address: { v4_prefix_mask_len: 9 } } ] }, { actions: [ { masked_remote_address: {} } ] }, { actions: [ { destination_cluster: {} } ] } ] } }
              - { match: { path: /text }, route: { cluster: app, rate_limits: [ { actions: [ { generic_key: { descriptor_key: mine, descriptor_value: "a-%REQ(x-a)%" } } ] }, { actions: [ { generic_key: { descriptor_value: "%REQ(x-b)%", default_value: instead } } ] }, { actions: [ { generic_key: { descriptor_value: "%REQ(x-c)%" } } ] } ] } }
              - { match: { path: /match }, route: { cluster: app, rate_limits: [ { actions: [ { header_value_match: { descriptor_value: is-a, headers: [ { name: x-a, string_match: { exact: a } } ] } } ] }, { actions: [ { header_value_match: { descriptor_key: other, descriptor_value: is-not-a, expect_match: false, headers: [ { name: x-a, string_match: { exact: a } } ] } } ] } ] } }
              - { match: { path: /query }, route: { cluster: app, rate_limits: [ { actions: [ { query_parameters: { query_parameter_name: q, descriptor_key: q } } ] }, { actions: [ { query_parameters: { query_parameter_name: r, descriptor_key: r, skip_if_absent: true } }, { generic_key: { descriptor_value: rest } } ] }, { actions: [ { query_parameter_value_match: { descriptor_value: is-x, query_parameters: [ { name: q, string_match: { exact: x } } ] } } ] }, { actions: [ { query_parameter_value_match: { descriptor_key: not, descriptor_value: not-x, expect_match: false, query_parameters: [ { name: q, string_match: { exact: x } } ] } } ] } ] } }
              - { match: { path: /network }, route: { cluster: app, rate_limits: [ { actions: [ { remote_address_match: { descriptor_value: here, address_matcher: { ranges: [ { address_prefix: 127.0.0.0, prefix_len: 8 } ] } } } ] }, { actions: [ { remote_address_match: { descriptor_key: far, descriptor_value: far, address_matcher: { ranges: [ { address_prefix: 127.0.0.0, prefix_len: 8 } ], invert_match: true } } } ] } ] } }
              - { match: { path: /hits }, route: { cluster: app, rate_limits: [ { actions: [ { generic_key: { descriptor_value: v } } ], hits_addend: { number: 5 } }, { actions: [ { generic_key: { descriptor_value: w } } ], limit: { rate_limit: { requests_per_unit: 42, unit: HOUR } } } ] } }
              - { match: { path: /metadata }, route: { cluster: app, rate_limits: [ { actions: [ { metadata: { descriptor_key: user, metadata_key: { key: envoy.filters.http.jwt_authn, path: [ { key: payload }, { key: sub } ] }, default_value: absent } } ] }, { actions: [ { metadata: { descriptor_key: user, metadata_key: { key: envoy.filters.http.jwt_authn, path: [ { key: payload } ] }, skip_if_absent: true } }, { generic_key: { descriptor_value: rest } } ] }, { actions: [ { metadata: { descriptor_key: gone, metadata_key: { key: envoy.filters.http.jwt_authn, path: [ { key: payload } ] } } } ] } ] } }
              - { match: { path: /both }, route: { cluster: app, include_vh_rate_limits: true, rate_limits: [ { actions: [ { generic_key: { descriptor_value: route } } ] } ] } }
              - { match: { path: /included }, typed_per_filter_config: { envoy.filters.http.ratelimit: { PER_ROUTE, vh_rate_limits: INCLUDE } }, route: { cluster: app, rate_limits: [ { actions: [ { generic_key: { descriptor_value: route } } ] } ] } }
              - { match: { path: /ignored }, typed_per_filter_config: { envoy.filters.http.ratelimit: { PER_ROUTE, vh_rate_limits: IGNORE } }, route: { cluster: app } }
              - { match: { path: /own }, typed_per_filter_config: { envoy.filters.http.ratelimit: { PER_ROUTE, domain: other, rate_limits: [ { actions: [ { generic_key: { descriptor_value: own } } ] }, { actions: [ { generic_key: { descriptor_value: "a-%REQ(x-a)%" } } ] }, { actions: [ { generic_key: { descriptor_value: "%REQ(x-b)%", default_value: instead } } ] }, { actions: [ { generic_key: { descriptor_value: "%REQ(x-c)%" } } ] }, { actions: [ { header_value_match: { descriptor_value: "%REQ(x-a)%", headers: [ { name: x-a, present_match: true } ] } } ] }, { actions: [ { generic_key: { descriptor_value: hits } } ], hits_addend: { number: 5 } }, { actions: [ { generic_key: { descriptor_value: w } } ], limit: { rate_limit: { requests_per_unit: 42, unit: HOUR } } }, { actions: [ { destination_cluster: {} } ] } ] } }, route: { cluster: app, rate_limits: [ { actions: [ { generic_key: { descriptor_value: route } } ] } ] } }
              - { match: { path: /off }, typed_per_filter_config: { envoy.filters.http.ratelimit: { "@type": type.googleapis.com/envoy.config.route.v3.FilterConfig, disabled: true } }, route: { cluster: app } }
              - { match: { path: /staged }, route: { cluster: app, rate_limits: [ { stage: 0, actions: [ { generic_key: { descriptor_value: zero } } ] }, { stage: 2, actions: [ { generic_key: { descriptor_value: two } } ] } ] } }
              - { match: { path: /second }, typed_per_filter_config: { second: { PER_ROUTE, domain: renamed } }, route: { cluster: app, rate_limits: [ { stage: 2, actions: [ { request_headers: { header_name: x-a, descriptor_key: a } } ] } ] } }
          http_filters:
          - name: envoy.filters.http.ratelimit
            FIRST
            typed_config: { FILTER, domain: all, SERVICE, SETTINGS }
          - name: second
            typed_config: { FILTER, domain: second, stage: 2, timeout: 1s, SERVICE, disable_x_envoy_ratelimited_header: true, rate_limited_status: { code: ServiceUnavailable }, response_headers_to_add: [ { header: { key: x-second, value: "%REQ(x-a)%" } } ] }
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

const CLUSTERS: &str = r#"
  - name: limits
    connect_timeout: 1s
    typed_extension_protocol_options: { envoy.extensions.upstreams.http.v3.HttpProtocolOptions: { "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: { http2_protocol_options: {} } } }
    load_assignment: { cluster_name: limits, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: LIMITS } } } } ] } ] }
"#;

const FILTER: &str = r#""@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit"#;
const PER_ROUTE: &str =
    r#""@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute"#;
const SERVICE: &str = "rate_limit_service: { transport_api_version: V3, grpc_service: { envoy_grpc: { cluster_name: limits, authority: limits.example } } }";

const REQUESTS: &[(&str, &[&str])] = &[
    ("/none", &[]),
    ("/moved", &[]),
    ("/host", &[]),
    ("/host", &["-H", "x-host: one"]),
    ("/host", &["-H", "x-host: over"]),
    ("/host", &["-H", "x-host: over", "-I"]),
    ("/host", &["-H", "x-host: over-silent"]),
    ("/host", &["-H", "x-host: over-in-json"]),
    ("/host", &["-H", "x-host: over", "-H", "content-type: application/grpc", "-H", "te: trailers"]),
    ("/host", &["-H", "x-host: over", "-X", "POST", "-d", "body"]),
    ("/host", &["-H", "x-host: fail"]),
    ("/host", &["-H", "x-host: unknown"]),
    ("/header", &[]),
    ("/header", &["-H", "x-a: 1"]),
    ("/header", &["-H", "x-a: 1", "-H", "x-b: 2"]),
    ("/header", &["-H", "x-a: 1", "-H", "x-a: 3"]),
    ("/header", &["-H", "x-b: 2"]),
    ("/header", &["-H", "x-a;"]),
    ("/client", &[]),
    ("/client", &["-H", "x-forwarded-for: 192.0.2.1"]),
    ("/text", &[]),
    ("/text", &["-H", "x-a: 1", "-H", "x-b: 2", "-H", "x-c: 3"]),
    ("/match", &[]),
    ("/match", &["-H", "x-a: a"]),
    ("/match", &["-H", "x-a: b"]),
    ("/query", &[]),
    ("/query?q=x", &[]),
    ("/query?q=a%20b&r=2", &[]),
    ("/query?q=over&q=x", &[]),
    ("/query?q", &[]),
    ("/network", &[]),
    ("/hits", &[]),
    ("/metadata", &[]),
    ("/both", &[]),
    ("/included", &["-H", "x-host: included"]),
    ("/ignored", &[]),
    ("/own", &[]),
    ("/own", &["-H", "x-a: 1", "-H", "x-b: 2", "-H", "x-c: 3"]),
    ("/off", &[]),
    ("/staged", &[]),
    ("/second", &["-H", "x-a: 1"]),
    ("/second", &["-H", "x-a: over"]),
    ("/second", &["-H", "x-a: over", "-H", "content-type: application/grpc+proto"]),
    ("/second", &[]),
];

fn text(first: &str, settings: &str, limits: u16) -> String {
    // The default timeout of 20 ms is short for a busy machine.
    let timeout = if settings.contains("timeout") { "" } else { "timeout: 5s, " };
    let manager = MANAGER.replace("            FIRST\n", &if_any(first));
    let manager = manager.replace("SETTINGS", &format!("{timeout}{settings}"));
    let manager =
        manager.replace("PER_ROUTE", PER_ROUTE).replace("FILTER", FILTER).replace("SERVICE", SERVICE);
    let ports = [("UPSTREAM", upstream::start().port()), ("LIMITS", limits)];
    with_ports(&bootstrap(&manager, CLUSTERS), &ports)
}

fn if_any(line: &str) -> String {
    if line.is_empty() { String::new() } else { format!("            {line}\n") }
}

fn same(first: &str, settings: &str, limits: u16) {
    let Some(both) = Both::start(&text(first, settings, limits)) else { return };
    let differences = both.differences(REQUESTS);
    assert!(differences.is_empty(), "{settings}\n{}", differences.join("\n"));
}

#[test]
fn both_ask_and_obey() {
    let limits = rate_limit_service().port();
    same("", "stat_prefix: s", limits);
    same("", "failure_mode_deny: true, enable_x_ratelimit_headers: DRAFT_VERSION_03", limits);
    same(
        "",
        "rate_limited_as_resource_exhausted: true, failure_mode_deny: true, status_on_error: { code: ServiceUnavailable }",
        limits,
    );
}

#[test]
fn both_take_what_the_filter_says_itself() {
    let limits = rate_limit_service().port();
    same(
        "",
        "rate_limits: [ { actions: [ { request_headers: { header_name: x-host, descriptor_key: in-filter } } ] } ]",
        limits,
    );
    same("", "filter_enforced: { default_value: { numerator: 0 } }", limits);
    same("", "filter_enabled: { default_value: { numerator: 0 } }", limits);
    same("", "request_type: internal", limits);
    same("", "request_type: external", limits);
    same("disabled: true", "stat_prefix: s", limits);
}

#[test]
fn both_do_the_same_if_no_server_is_available() {
    same("", "stat_prefix: s", 1);
    same("", "failure_mode_deny: true", 1);
    same("", "failure_mode_deny_percent: { default_value: { numerator: 100 } }", 1);
    same("", "failure_mode_deny: true, failure_mode_deny_percent: { default_value: { numerator: 0 } }", 1);
    // A server that accepts connections and never responds.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    same("", "failure_mode_deny: true, timeout: 0.1s", silent.local_addr().expect("an address").port());
}

/// Checks the comparison's results on machines without Envoy.
#[test]
fn as_envoy_asks() {
    let (gateway, _file) =
        serving(&text("", "enable_x_ratelimit_headers: DRAFT_VERSION_03", rate_limit_service().port()));
    let asked = |path: &str, arguments: &[&str]| ask("http", gateway.port(), path, arguments);
    let over = asked("/host", &["-H", "x-host: over"]);
    let told = |answer: &[String], header: &str| answer.iter().any(|line| line == header);
    assert_eq!(
        (&*over[0], over.last().map(String::as_str)),
        ("429", Some("all generic_key=host,of-host=over"))
    );
    assert!(told(&over, "x-envoy-ratelimited: true"), "{over:?}");
    assert!(told(&over, "x-ratelimit-limit: 1000, 10;w=60, 1000;w=3600;name=\"hourly\""), "{over:?}");
    assert!(told(&over, "x-ratelimit-remaining: 3") && told(&over, "x-ratelimit-reset: 1200"), "{over:?}");
    let passed = asked("/client", &[]);
    let descriptors = "remote_address=127.0.0.1 | masked_remote_address=127.0.0.0/9 | masked_remote_address=127.0.0.1/32 | \
                       destination_cluster=app";
    assert!(told(&passed, &format!("x-told-client: all {descriptors}")), "{passed:?}");
    let json = asked("/host", &["-H", "x-host: over-in-json"]);
    assert!(told(&json, "content-type: application/json"), "{json:?}");
    assert_eq!(asked("/host", &["-H", "x-host: fail"])[0], "200");
    let counted = |result: &str| {
        let labels =
            ["limit=\"all\"".to_owned(), "by=\"service\"".to_owned(), format!("result=\"{result}\"")];
        gateway.metric("quadrille_rate_limited_total", &labels.each_ref().map(String::as_str))
    };
    assert_eq!((counted("refused"), counted("unanswered")), (2.0, 1.0));
}
