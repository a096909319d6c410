//! `x-envoy-*` headers: accepted, removed and sent as by the stock Envoy.

use super::{
    serving,
    stock::{Both, ask, bootstrap, difference, with_ports},
    upstream,
};
use std::thread;

const MANAGER: &str = r#"
          SETTINGS
          route_config:
            name: routes
            internal_only_headers: [ x-mine ]
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              include_request_attempt_count: true
              include_attempt_count_in_response: true
              routes:
              - { match: { path: /here }, direct_response: { status: 200, body: { inline_string: ok } } }
              - { match: { prefix: /rewritten }, route: { cluster: app, prefix_rewrite: /told, host_rewrite_literal: h.example } }
              - { match: { prefix: /header }, route: { cluster: app, prefix_rewrite: /told, host_rewrite_header: x-host } }
              - { match: { prefix: /retried }, route: { cluster: app, prefix_rewrite: /flaky/told, timeout: 200s, retry_policy: { retry_on: 5xx, num_retries: 3, per_try_timeout: 100s } } }
              - { match: { prefix: /told/one }, route: { cluster: app, timeout: 200s, retry_policy: { retry_on: 5xx, per_try_timeout: 100s } } }
              - { match: { prefix: /told/long }, route: { cluster: app, timeout: 50s, retry_policy: { retry_on: 5xx, per_try_timeout: 100s } } }
              - { match: { prefix: /flaky }, route: { cluster: app, timeout: 0s } }
              - { match: { prefix: /empty }, route: { cluster: empty } }
              - { match: { prefix: /refused }, route: { cluster: refused } }
              - { match: { prefix: /slow }, route: { cluster: app, timeout: 0.3s } }
              - { match: { prefix: /changed }, request_headers_to_remove: [ x-envoy-expected-rq-timeout-ms, x-envoy-original-path, x-envoy-attempt-count ], response_headers_to_remove: [ x-envoy-upstream-service-time, x-envoy-attempt-count ], route: { cluster: app, prefix_rewrite: /told } }
              - { match: { prefix: / }, route: { cluster: app, timeout: 0s } }
            - name: quiet
              domains: [ quiet.example ]
              routes: [ { match: { prefix: / }, route: { cluster: app } } ]
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router, suppress_envoy_headers: SUPPRESSED }
"#;

const CLUSTERS: &str = r#"
  - name: refused
    connect_timeout: 1s
    load_assignment: { cluster_name: refused, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 1 } } } } ] } ] }
  - name: empty
    connect_timeout: 1s
"#;

const INTERNAL: &str =
    "internal_address_config: { cidr_ranges: [ { address_prefix: 127.0.0.0, prefix_len: 8 } ] }";

/// Fields of the connection manager, one per line; whether the router suppresses Envoy's headers.
const SETTINGS: [(&[&str], bool); 6] = [
    (&["use_remote_address: true"], false),
    (&["use_remote_address: false"], false),
    (&["use_remote_address: true", INTERNAL], false),
    (&["use_remote_address: false", INTERNAL], false),
    (&["use_remote_address: true", "xff_num_trusted_hops: 1"], false),
    (&["use_remote_address: true", INTERNAL], true),
];

const PATHS: &[&str] = &[
    "/here",
    "/rewritten/x?y",
    "/header",
    "/retried",
    "/told/one",
    "/told/long",
    "/empty",
    "/refused",
    "/slow",
    "/changed/x",
    "/told",
    "/nowhere",
];

/// A timeout that a slow machine does not exceed.
const TIMEOUT: &str = "x-envoy-upstream-rq-timeout-ms: 50000";

/// Headers by which a client describes itself and controls its upstream request.
const SAID: &[&str] = &[
    "x-envoy-internal: true",
    "x-envoy-external-address: 192.0.2.9",
    "x-envoy-downstream-service-cluster: c",
    "x-envoy-downstream-service-node: n",
    "x-envoy-decorator-operation: d",
    TIMEOUT,
    "x-envoy-retry-on: 5xx",
    "x-envoy-retry-grpc-on: cancelled",
    "x-envoy-max-retries: 2",
    "x-envoy-retriable-status-codes: 503",
    "x-envoy-retriable-header-names: x",
    "x-envoy-hedge-on-per-try-timeout: false",
    "x-envoy-upstream-rq-timeout-alt-response: 1",
    "x-envoy-upstream-alt-stat-name: s",
    "x-envoy-expected-rq-timeout-ms: 9",
    "x-envoy-force-trace: 1",
    "x-envoy-ip-tags: t",
    "x-envoy-original-url: u",
    "x-envoy-original-path: /mine",
    "x-envoy-original-host: mine",
    "x-envoy-attempt-count: 9",
    "x-envoy-other: o",
    "x-mine: m",
    "x-host: h.example",
];

fn text((settings, suppressed): &(&[&str], bool), upstream: u16) -> String {
    let text = bootstrap(MANAGER, CLUSTERS).replace("SETTINGS", &settings.join("\n          "));
    with_ports(&text.replace("SUPPRESSED", &suppressed.to_string()), &[("UPSTREAM", upstream)])
}

/// Returns the status, the headers with attempts and times, and the body unless it is a local reply's text.
fn told(path: &str, answer: &[String]) -> Vec<String> {
    let mut told: Vec<String> =
        answer[1..].iter().filter(|line| line.starts_with("x-envoy-")).cloned().collect();
    if path == "/slow" {
        // The number of attempts before the timeout is random.
        told.retain(|line| !line.starts_with("x-envoy-attempt-count"));
    }
    told.insert(0, answer[0].clone());
    let body = answer.last().filter(|_| answer[0] == "200").map(|body| {
        // The remaining time of 50 s after the first attempt.
        let left = |part: &str| path == "/retried" && part.starts_with("x-envoy-expected-rq-timeout-ms: 4");
        body.split('|').filter(|part| !left(part)).collect::<Vec<_>>().join("|")
    });
    told.extend(body);
    told
}

#[test]
fn both_tell_the_same() {
    let said: Vec<&str> = SAID.iter().flat_map(|header| ["-H", header]).collect();
    let forwarded = ["-H", "x-forwarded-for: 127.0.0.9"];
    let outside = ["-H", "x-forwarded-for: 127.0.0.9, 192.0.2.1"];
    let clients: [&[&str]; 5] = [
        &[],
        &said,
        &[&forwarded[..], &said].concat(),
        &[&outside[..], &said].concat(),
        &["-H", "Host: quiet.example"],
    ];
    let compare = |settings| {
        let mut differences = Vec::new();
        // It fails in turns, so that each pair needs its own server.
        let upstream = upstream::start().port();
        let Some(both) = Both::start(&text(settings, upstream)) else { return differences };
        for path in PATHS {
            for (number, client) in clients.iter().enumerate() {
                // This path has no response before the timeout.
                let short = |argument| {
                    if *path == "/slow" && argument == TIMEOUT {
                        "x-envoy-upstream-rq-timeout-ms: 500"
                    } else {
                        argument
                    }
                };
                let client: Vec<_> = client.iter().copied().map(short).collect();
                let [ours, theirs] = both.ask("http", path, &client).map(|answer| told(path, &answer));
                differences.extend(difference(&format!("{settings:?} {path} {number}"), &ours, &theirs));
            }
        }
        differences
    };
    // Most of the time is spent in delays before retries, and until the timeout.
    let differences: Vec<String> = thread::scope(|scope| {
        let all = SETTINGS.each_ref().map(|settings| scope.spawn(|| compare(settings)));
        all.into_iter().flat_map(|one| one.join().expect("a comparison")).collect()
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Checks the comparison's results on machines without Envoy.
#[test]
fn as_envoy_tells() {
    let upstream = upstream::start().port();
    let said = ["-H", TIMEOUT, "-H", "x-envoy-internal: true"];
    let (edge, _file) = serving(&text(&SETTINGS[0], upstream));
    let answer = ask("http", edge.port(), "/rewritten/x?y", &said);
    let body = "/told/x?y x-envoy-attempt-count: 1|x-envoy-expected-rq-timeout-ms: 15000|x-envoy-external-address: 127.0.0.1\
                |x-envoy-original-host: 127.0.0.1:PORT|x-envoy-original-path: /rewritten/x?y";
    assert_eq!(answer.last().map(String::as_str), Some(body));
    assert!(answer.contains(&"x-envoy-attempt-count: 1".to_owned()), "{answer:?}");
    assert!(answer.contains(&"x-envoy-upstream-service-time: MS".to_owned()), "{answer:?}");
    // A spelling that servers may accept as the same header.
    let spelled = ask("http", edge.port(), "/told", &["-H", "x_envoy_internal: true", "-H", "x-mine: m"]);
    assert_eq!(
        spelled.last().map(String::as_str),
        Some("/told x-envoy-attempt-count: 1|x-envoy-external-address: 127.0.0.1")
    );
    let (internal, _file) = serving(&text(&SETTINGS[2], upstream));
    let answer = ask("http", internal.port(), "/told", &said);
    let body = "/told x-envoy-attempt-count: 1|x-envoy-expected-rq-timeout-ms: 50000|x-envoy-internal: true";
    assert_eq!(answer.last().map(String::as_str), Some(body));
    let often = ["-H", "x-envoy-retry-on: connect-failure", "-H", "x-envoy-max-retries: 2"];
    let answer = ask("http", internal.port(), "/refused", &often);
    assert!(answer[0] == "503" && answer.contains(&"x-envoy-attempt-count: 3".to_owned()), "{answer:?}");
    let answer = ask("http", edge.port(), "/refused", &often);
    assert!(answer[0] == "503" && answer.contains(&"x-envoy-attempt-count: 1".to_owned()), "{answer:?}");
}
