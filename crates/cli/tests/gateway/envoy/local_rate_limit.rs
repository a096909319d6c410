//! Local rate limits: the same requests are limited as by the stock Envoy. Buckets refill so slowly that no token is
//! added while a test runs.

use super::{
    serving,
    stock::{Both, ask, bootstrap, difference, with_ports},
    upstream,
};

const MANAGER: &str = r#"
          use_remote_address: true
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes:
              - { match: { path: /ready }, typed_per_filter_config: { envoy.filters.http.local_ratelimit: { "@type": type.googleapis.com/envoy.config.route.v3.FilterConfig, disabled: true } }, direct_response: { status: 200 } }
              - { match: { path: /wrapped }, typed_per_filter_config: { envoy.filters.http.local_ratelimit: { "@type": type.googleapis.com/envoy.config.route.v3.FilterConfig, config: { SETTINGS, stat_prefix: wrapped, ALWAYS, token_bucket: { max_tokens: 1, fill_interval: 3600s } } } }, direct_response: { status: 200 } }
              - { match: { path: /own }, typed_per_filter_config: { envoy.filters.http.local_ratelimit: { SETTINGS, stat_prefix: own, ALWAYS, token_bucket: { max_tokens: 2, fill_interval: 3600s }, status: { code: ServiceUnavailable }, response_headers_to_add: [ { header: { key: x-own, value: "%REQ(x-asked)%" }, append_action: OVERWRITE_IF_EXISTS_OR_ADD } ] } }, route: { cluster: app, prefix_rewrite: / } }
              - { match: { path: /counted }, typed_per_filter_config: { envoy.filters.http.local_ratelimit: { SETTINGS, stat_prefix: counted, filter_enabled: { default_value: { numerator: 100 } }, token_bucket: { max_tokens: 1, fill_interval: 3600s } } }, direct_response: { status: 200 } }
              - { match: { prefix: / }, direct_response: { status: 200, body: { inline_string: ok } } }
            - name: other
              domains: [ other.example ]
              typed_per_filter_config: { envoy.filters.http.local_ratelimit: { SETTINGS, stat_prefix: other, ALWAYS, token_bucket: { max_tokens: 2, fill_interval: 3600s }, status: { code: OK } } }
              routes:
              - { match: { path: /a }, direct_response: { status: 200 } }
              - { match: { path: /b }, direct_response: { status: 204 } }
          http_filters:
          - name: envoy.filters.http.local_ratelimit
            typed_config: { SETTINGS, stat_prefix: all, ALWAYS, token_bucket: { max_tokens: 3, tokens_per_fill: 1, fill_interval: 3600s }, response_headers_to_add: [ { header: { key: x-local-rate-limit, value: "true" } } ] }
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

const SETTINGS: &str =
    r#""@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit"#;
const ALWAYS: &str = "filter_enabled: { default_value: { numerator: 100 } }, filter_enforced: { default_value: { numerator: 100, denominator: HUNDRED } }";

/// Requests and their counts, in this order.
const REQUESTS: &[(&str, &[&str], usize)] = &[
    ("/own", &["-H", "x-asked: a"], 4),
    ("/wrapped", &[], 2),
    ("/counted", &[], 3),
    ("/a", &["-H", "Host: other.example"], 1),
    ("/b", &["-H", "Host: other.example"], 2),
    ("/a", &["-H", "Host: other.example"], 1),
    ("/a", &[], 1),
    ("/b", &[], 3),
    ("/", &["-I"], 1),
    ("/", &["-X", "POST", "-d", "x"], 1),
    ("/ready", &[], 1),
];

fn text() -> String {
    let text = bootstrap(MANAGER, "").replace("SETTINGS", SETTINGS).replace("ALWAYS", ALWAYS);
    with_ports(&text, &[("UPSTREAM", upstream::start().port())])
}

/// Returns the differences between the responses to these requests, each sent this many times.
fn differences(both: &Both, requests: &[(&str, &[&str], usize)]) -> Vec<String> {
    let repeated = requests.iter().flat_map(|request| (0..request.2).map(move |time| (request, time)));
    let differs = |((path, arguments, _), time): (&(&str, &[&str], usize), usize)| {
        let [ours, theirs] = both.ask("http", path, arguments);
        difference(&format!("{path} {arguments:?} {time}"), &ours, &theirs)
    };
    repeated.filter_map(differs).collect()
}

#[test]
fn both_refuse_the_same() {
    let Some(both) = Both::start(&text()) else { return };
    let differences = differences(&both, REQUESTS);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Checks the comparison's results on machines without Envoy.
#[test]
fn as_envoy_refuses() {
    let (gateway, _file) = serving(&text());
    let asked = |path: &str, arguments: &[&str]| ask("http", gateway.port(), path, arguments);
    let own: Vec<_> = (0..3).map(|_| asked("/own", &["-H", "x-asked: a"])).collect();
    assert_eq!((&*own[0][0], &*own[1][0], &*own[2][0]), ("200", "200", "503"));
    let header = |answer: &[String], header: &str| answer.iter().any(|line| line == header);
    assert!(header(&own[2], "x-own: a") && own[2].last().is_some_and(|body| body == "local_rate_limited"));
    let other = |path: &str| asked(path, &["-H", "Host: other.example"])[0].clone();
    assert_eq!([other("/a"), other("/b"), other("/b"), other("/a")], ["200", "204", "429", "429"]);
    let all: Vec<_> = (0..4).map(|_| asked("/a", &[])).collect();
    assert!(all[..3].iter().all(|answer| answer[0] == "200"), "{all:?}");
    assert!(all[3][0] == "429" && header(&all[3], "x-local-rate-limit: true"), "{all:?}");
    assert!((0..3).all(|_| asked("/counted", &[])[0] == "200"));
    let limited = |limit: &str, result: &str| {
        let labels = [format!("limit=\"{limit}\""), format!("result=\"{result}\"")];
        gateway.metric("quadrille_rate_limited_total", &[&labels[0], &labels[1]])
    };
    assert_eq!(
        [limited("own", "refused"), limited("other", "refused"), limited("all", "refused")],
        [1.0, 2.0, 1.0]
    );
    assert_eq!(limited("counted", "let_through"), 2.0);
}

const DESCRIBED: &str = r#"
          use_remote_address: true
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              rate_limits: [ { actions: [ { request_headers: { header_name: x-tenant, descriptor_key: tenant } } ] } ]
              routes:
              - { match: { path: /plan }, route: { cluster: app, rate_limits: [ { actions: [ { request_headers: { header_name: x-plan, descriptor_key: plan } } ] }, { actions: [ { request_headers: { header_name: x-plan, descriptor_key: plan } }, { request_headers: { header_name: x-user, descriptor_key: user } } ] } ] } }
              - { match: { path: /staged }, route: { cluster: app, rate_limits: [ { stage: 1, actions: [ { generic_key: { descriptor_value: staged } } ] } ] } }
              - { match: { path: /here }, direct_response: { status: 200 } }
              - { match: { path: /own }, typed_per_filter_config: { envoy.filters.http.local_ratelimit: { SETTINGS, stat_prefix: own, ALWAYS, token_bucket: { max_tokens: 100, fill_interval: 3600s }, rate_limits: [ { actions: [ { request_headers: { header_name: x-user, descriptor_key: user } } ] } ], descriptors: [ { entries: [ { key: user } ], token_bucket: { max_tokens: 1, fill_interval: 3600s } }, { entries: [ { key: user, value: root } ], token_bucket: { max_tokens: 3, fill_interval: 3600s }, shadow_mode: true } ] } }, direct_response: { status: 200 } }
              - { match: { path: /never }, typed_per_filter_config: { envoy.filters.http.local_ratelimit: { SETTINGS, stat_prefix: never, ALWAYS, vh_rate_limits: IGNORE, descriptors: [ { entries: [ { key: tenant, value: a } ], token_bucket: { max_tokens: 1, fill_interval: 3600s } } ], token_bucket: { max_tokens: 2, fill_interval: 3600s } } }, route: { cluster: app } }
              - { match: { prefix: / }, route: { cluster: app } }
          http_filters:
          - name: envoy.filters.http.local_ratelimit
            typed_config: { SETTINGS, stat_prefix: all, ALWAYS, always_consume_default_token_bucket: CONSUMES, token_bucket: { max_tokens: 6, fill_interval: 3600s }, descriptors: [ DESCRIPTORS ] }
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

const DESCRIPTORS: &str = "{ entries: [ { key: plan, value: free } ], token_bucket: { max_tokens: 3, fill_interval: 3600s } }, { entries: [ { key: plan, value: free }, { key: user, value: alice } ], token_bucket: { max_tokens: 1, fill_interval: 7200s } }, { entries: [ { key: tenant, value: a } ], token_bucket: { max_tokens: 2, fill_interval: 3600s } }, { entries: [ { key: generic_key, value: staged } ], token_bucket: { max_tokens: 1, fill_interval: 3600s } }";

/// Requests and their counts, in this order.
const DESCRIBED_REQUESTS: &[(&str, &[&str], usize)] = &[
    ("/plan", &["-H", "x-plan: free", "-H", "x-user: alice"], 3),
    ("/plan", &["-H", "x-plan: free", "-H", "x-user: bob"], 3),
    ("/plan", &["-H", "x-plan: paid"], 2),
    ("/a", &["-H", "x-tenant: a"], 3),
    ("/a", &["-H", "x-tenant: b"], 2),
    ("/staged", &[], 2),
    ("/here", &["-H", "x-tenant: a"], 2),
    ("/own", &["-H", "x-user: alice"], 2),
    ("/own", &["-H", "x-user: bob"], 2),
    ("/own", &["-H", "x-user: root"], 5),
    ("/own", &[], 3),
    ("/never", &["-H", "x-tenant: a"], 3),
    ("/a", &[], 3),
];

fn described(consumes: &str) -> String {
    let text = bootstrap(&DESCRIBED.replace("CONSUMES", consumes), "");
    let text =
        text.replace("SETTINGS", SETTINGS).replace("ALWAYS", ALWAYS).replace("DESCRIPTORS", DESCRIPTORS);
    with_ports(&text, &[("UPSTREAM", upstream::start().port())])
}

#[test]
fn both_count_by_descriptors() {
    for consumes in ["true", "false"] {
        let Some(both) = Both::start(&described(consumes)) else { return };
        let differences = differences(&both, DESCRIBED_REQUESTS);
        assert!(differences.is_empty(), "{consumes}\n{}", differences.join("\n"));
    }
}

/// Checks the comparison's results on machines without Envoy.
#[test]
fn as_envoy_counts_by_descriptors() {
    let (gateway, _file) = serving(&described("false"));
    let asked = |path: &str, headers: &[&str]| ask("http", gateway.port(), path, headers)[0].clone();
    let alice = ["-H", "x-plan: free", "-H", "x-user: alice"];
    assert_eq!([asked("/plan", &alice), asked("/plan", &alice)], ["200", "429"]);
    let bob = ["-H", "x-plan: free", "-H", "x-user: bob"];
    assert_eq!([asked("/plan", &bob), asked("/plan", &bob), asked("/plan", &bob)], ["200", "200", "429"]);
    let of = |user: &str| asked("/own", &["-H", &format!("x-user: {user}")]);
    assert_eq!([of("carol"), of("carol"), of("dave"), of("dave")], ["200", "429", "200", "429"]);
}
