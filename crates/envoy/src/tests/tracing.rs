//! Tracing: translation, and refused or ignored settings.

use super::{gateway, only_chain, problems, routes, warnings, with_route_config};
use quadrille_config::model::{
    CollectorServers, HttpTracing, Serve, TraceSampling, TraceShare, TraceTagValue, TracingProtocol,
};
use std::{sync::Arc, time::Duration};

const ROUTES: &str = "virtual_hosts:
- name: all
  domains: [\"*\"]
  routes:
  - match: { prefix: / }
    direct_response: { status: 200 }
    decorator: { operation: mine, propagate: false }
    tracing: { client_sampling: { numerator: 5 }, random_sampling: { numerator: 7, denominator: MILLION }, custom_tags: [ { tag: r, literal: { value: s } } ] }";

fn text(tracing: &str) -> String {
    with_route_config(ROUTES) + &format!("          tracing: {tracing}\n")
}

fn provided(service: &str) -> String {
    text(&format!("{{ provider: {} }}", provider(service)))
}

fn provider(service: &str) -> String {
    format!(
        "{{ name: o, typed_config: {{ \"@type\": type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig, {service} }} }}"
    )
}

fn tracing(text: &str) -> Option<Arc<HttpTracing>> {
    let gateway = gateway(text);
    let Serve::Http(http) = &only_chain(&gateway).serve else { panic!("no HTTP") };
    http.tracing.clone()
}

const GRPC: &str = "grpc_service: { envoy_grpc: { cluster_name: c, authority: c.example }, timeout: 2s, \
    initial_metadata: [ { key: api-key, value: s3cr3t } ] }, service_name: edge";
const HTTP: &str = "http_service: { http_uri: { uri: 'http://c.example:80/in?a=b', cluster: c, timeout: 1s }, \
    request_headers_to_add: [ { header: { key: api-key, value: s3cr3t } } ] }";

/// Returns configurations with every field.
pub(super) fn all() -> [String; 2] {
    let tracing = format!(
        "{{ client_sampling: {{ value: 12 }}, random_sampling: {{ value: 0.5 }}, overall_sampling: {{ value: 50 }}, \
         max_path_tag_length: 9, spawn_upstream_span: true, provider: {}, custom_tags: [ {{ tag: a, literal: {{ value: b }} }}, \
         {{ tag: c, request_header: {{ name: x-c, default_value: d }} }}, {{ tag: e, environment: {{ name: HOME }} }} ] }}",
        provider(GRPC)
    );
    let outbound =
        text(&tracing).replace("  - name: web\n", "  - name: web\n    traffic_direction: OUTBOUND\n");
    [outbound, provided(HTTP)]
}

#[test]
fn what_is_said_is_read() {
    let [grpc, http] = all();
    let found = tracing(&grpc).expect("traces");
    let share = |numerator, denominator| TraceShare { numerator, denominator };
    let (client, random, overall) = (share(12, 100), share(50, 10_000), share(5_000, 10_000));
    assert_eq!(found.sampling, TraceSampling { client, random, overall });
    assert!(found.outbound && found.attempts && found.own_hop);
    assert_eq!((found.longest_path, found.tags.len()), (9, 3));
    assert!(
        matches!(&found.tags[1].value, TraceTagValue::RequestHeader(name, Some(d)) if name == "x-c" && d == "d")
    );
    let collector = &found.collector;
    assert_eq!(
        collector.servers,
        CollectorServers::Upstream { name: "c".into(), authority: "c.example".into() }
    );
    assert_eq!((collector.timeout, collector.service.as_str()), (Duration::from_secs(2), "edge"));
    assert!(!format!("{found:?}").contains("s3cr3t"), "it is a secret");

    let found = tracing(&http).expect("traces");
    assert_eq!(
        found.sampling,
        TraceSampling {
            client: share(100, 100),
            random: share(10_000, 10_000),
            overall: share(10_000, 10_000)
        }
    );
    assert!(!found.outbound && !found.attempts && !found.own_hop && found.longest_path == 256);
    let collector = &found.collector;
    assert_eq!((collector.protocol, collector.path.as_str()), (TracingProtocol::Http, "/in?a=b"));
    let authority = "c.example:80".into();
    assert_eq!(collector.servers, CollectorServers::Upstream { name: "c".into(), authority });
    assert_eq!(collector.service, "unknown_service:envoy");

    let gateway = gateway(&http);
    let route = routes(&gateway)[0].tracing.as_ref().expect("traces of a route");
    assert_eq!((route.operation.as_str(), route.propagate, route.tags.len()), ("mine", false, 1));
    let sampling = route.sampling.expect("shares");
    assert_eq!((sampling.client, sampling.random), (share(5, 100), share(7, 1_000_000)));
    assert_eq!(sampling.overall, TraceShare::ALL);
}

#[test]
fn what_cannot_be_had_is_refused_or_makes_no_spans() {
    for (service, message) in [
        ("service_name: a", "`grpc_service` or `http_service` is missing"),
        (
            "grpc_service: { google_grpc: { target_uri: a } }",
            "Google gRPC is not supported; write `envoy_grpc`",
        ),
        ("grpc_service: { envoy_grpc: { cluster_name: 'a b' } }", "`a b` is not an authority"),
        (
            "grpc_service: { envoy_grpc: { cluster_name: a }, timeout: 0s }",
            "an unlimited timeout is not supported",
        ),
        (
            "http_service: { http_uri: { uri: /in, cluster: c } }",
            "`/in` is not a URL; write `http://host/v1/traces`",
        ),
        (&format!("{GRPC}, sampler: {{ name: s }}"), "write `random_sampling` of the connection manager"),
        (
            "http_service: { http_uri: { uri: 'http://c/in', cluster: c }, request_headers_to_add: [ { header: { key: a, value: '%s3cr3t%' } } ] }",
            "variables are not substituted here",
        ),
    ] {
        let said = problems(&provided(service));
        assert!(said.contains(message) && !said.contains("s3cr3t"), "{service}: {said}");
    }
    for (tracing, message) in [
        ("{ random_sampling: { value: 101 } }", "`101` is not a percentage; write 0 to 100"),
        ("{ custom_tags: [ { literal: { value: a } } ] }", "`tag` is missing"),
        ("{ custom_tags: [ { tag: a, request_header: { name: 'a b' } } ] }", "not a header name"),
        ("{ no_context_propagation: true }", "trace context is sent to upstreams"),
    ] {
        let said = problems(&text(tracing));
        assert!(said.contains(message), "{tracing}: {said}");
    }
    for (tracing_text, message) in [
        (
            text(
                "{ provider: { name: z, typed_config: { \"@type\": type.googleapis.com/envoy.config.trace.v3.ZipkinConfig } } }",
            ),
            "is not supported; use",
        ),
        (text("{ verbose: true }"), "spans have no events"),
    ] {
        assert_eq!(tracing(&tracing_text), None);
        let said = warnings(&tracing_text);
        assert!(said.iter().any(|line| line.contains(message)), "{said:?}");
    }
    let several = format!(
        "{{ custom_tags: [ {{ tag: m, metadata: {{ kind: {{ request: {{}} }} }} }} ], provider: {} }}",
        provider(GRPC)
    );
    assert!(tracing(&text(&several)).expect("traces").tags.is_empty());
    assert!(warnings(&text(&several)).iter().any(|line| line.contains("metadata tags are not supported")));
    assert_eq!(
        (tracing(&text("{ random_sampling: { value: 1 } }")), warnings(&text("{}"))),
        (None, Vec::new()),
        "as configured by Istio"
    );
}
