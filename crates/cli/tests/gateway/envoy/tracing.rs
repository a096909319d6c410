//! Traces: sampled, propagated and described as by the stock Envoy.

use super::{
    serving,
    stock::{Both, ask, bootstrap, difference, with_ports},
};
use crate::support::{Collector, attribute, echo_server, eventually};
use opentelemetry_proto::tonic::trace::v1::Span;
use std::collections::BTreeMap;

const MANAGER: &str = r#"
          tracing:
            custom_tags:
            - { tag: one, literal: { value: first } }
            - { tag: said, request_header: { name: x-said, default_value: nothing } }
            - { tag: unsaid, request_header: { name: x-unsaid } }
            - { tag: variable, environment: { name: QUADRILLE_TEST_UNSET, default_value: unset } }
            max_path_tag_length: 20
            SETTINGS
            provider:
              name: envoy.tracers.opentelemetry
              typed_config:
                "@type": type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig
                service_name: edge
                SERVICE
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes:
              - { match: { prefix: /here }, direct_response: { status: 200, body: { inline_string: here } } }
              - { match: { path: /missing }, direct_response: { status: 404, body: { inline_string: missing } } }
              - { match: { path: /named }, route: { cluster: app }, decorator: { operation: mine } }
              - { match: { path: /silent }, route: { cluster: app }, decorator: { operation: mine, propagate: false } }
              - { match: { prefix: /never }, route: { cluster: app }, tracing: { random_sampling: { numerator: 0 } } }
              - { match: { path: /none }, route: { cluster: app }, tracing: { overall_sampling: { numerator: 0 } } }
              - { match: { path: /tagged }, route: { cluster: app }, tracing: { custom_tags: [ { tag: one, literal: { value: second } }, { tag: more, literal: { value: m } } ] } }
              - { match: { path: /gone }, route: { cluster: gone, retry_policy: { retry_on: connect-failure, num_retries: 1 } } }
              - { match: { prefix: / }, route: { cluster: app } }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router, ROUTER }
"#;

const CLUSTERS: &str = r#"
  - name: collector
    connect_timeout: 1s
    HTTP2
    load_assignment: { cluster_name: collector, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: COLLECTOR } } } } ] } ] }
  - name: gone
    connect_timeout: 1s
    load_assignment: { cluster_name: gone, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 1 } } } } ] } ] }
"#;

const HTTP2: &str = r#"typed_extension_protocol_options: { envoy.extensions.upstreams.http.v3.HttpProtocolOptions: { "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: { http2_protocol_options: {} } } }"#;

const GRPC: &str = "grpc_service: { envoy_grpc: { cluster_name: collector }, initial_metadata: [ { key: api-key, value: s3cr3t } ] }";
const HTTP: &str = "http_service: { http_uri: { uri: 'http://collector.example/in', cluster: collector, timeout: 5s }, request_headers_to_add: [ { header: { key: api-key, value: s3cr3t } } ] }";

const SAMPLED: &str = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "traceparent: 00-5bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

const REQUESTS: &[(&str, &[&str])] = &[
    ("/", &["-H", "x-said: something", "-H", "user-agent: test"]),
    ("/query?a=b", &["-X", "POST", "-d", "body"]),
    ("/a/very/long/path/of/which/the/end/is/missing", &[]),
    ("/here", &[]),
    ("/here/too", &["--head"]),
    ("/missing", &[]),
    ("/named", &[]),
    ("/named", &["-H", "x-envoy-decorator-operation: theirs"]),
    ("/silent", &["-H", "tracestate: forged=1"]),
    ("/tagged", &[]),
    ("/gone", &[]),
    ("/continued", &["-H", SAMPLED, "-H", "tracestate: a=1,b=2"]),
    ("/unsampled", &["-H", UNSAMPLED]),
    ("/nonsense", &["-H", "traceparent: nonsense"]),
    ("/asked", &["-H", "x-client-trace-id: 7"]),
    ("/cluster", &["-H", "x-envoy-downstream-service-cluster: front"]),
    ("/never", &[]),
    ("/never/asked", &["-H", "x-client-trace-id: 8"]),
    ("/never/forced", &["-H", "x-envoy-force-trace: 1"]),
    ("/never/decided", &["-H", "x-request-id: 00000001-3ab7-957e-b02d-f144dee51d25"]),
    ("/none", &["-H", "x-request-id: 00000001-3ab7-957e-b02d-f144dee51d25"]),
    ("/unnamed", &["-H", "x-request-id: mine"]),
];

fn text(settings: &str, router: &str, service: &str, collector: u16) -> String {
    let text = bootstrap(MANAGER, CLUSTERS).replace("SERVICE", service);
    let text = text
        .replace("            SETTINGS\n", &line(12, settings))
        .replace(", ROUTER }", &format!("{router} }}"));
    let text = text.replace("    HTTP2\n", &line(4, if service == GRPC { HTTP2 } else { "" }));
    with_ports(&text, &[("UPSTREAM", echo_server().port()), ("COLLECTOR", collector)])
}

fn line(indent: usize, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{:indent$}{text}\n", "") }
}

/// Attributes that differ or that only one sends: random values, times, and data about itself or its servers that
/// Quadrille does not have.
const NOT_COMPARED: [&str; 7] = [
    "response_size",
    "node_id",
    "zone",
    "guid:x-request-id",
    "request_size",
    "response_flags",
    "error.reason",
];

/// Returns the spans of each trace by request path, with their names, kinds, parents, outcomes and attributes.
fn told(spans: &[Span], port: u16) -> BTreeMap<String, Vec<String>> {
    let port = format!(":{port}");
    let mut told = BTreeMap::<_, Vec<_>>::new();
    for span in spans {
        let of_trace = || spans.iter().filter(|other| other.trace_id == span.trace_id);
        let parent = of_trace().find(|other| other.span_id == span.parent_span_id);
        let parent = match parent {
            Some(parent) => parent.name.replace(&port, ":PORT"),
            None if span.parent_span_id.is_empty() => "-".to_owned(),
            None => "of an unknown parent".to_owned(),
        };
        let is_child = span.name.starts_with("router ");
        let said = |key: &str| !(NOT_COMPARED.contains(&key) || is_child && key == "http.protocol");
        let keys = span.attributes.iter().map(|attribute| attribute.key.as_str()).filter(|key| said(key));
        let mut attributes: Vec<_> =
            keys.map(|key| format!("{key}={}", attribute(span, key).replace(&port, ":PORT"))).collect();
        attributes.sort();
        let url = of_trace().map(|other| attribute(other, "http.url")).find(|url| url.starts_with("http"));
        let (name, status) =
            (span.name.replace(&port, ":PORT"), span.status.as_ref().map_or(0, |status| status.code));
        told.entry(url.unwrap_or_default().replace(&port, ":PORT")).or_default().push(format!(
            "{name} kind={} parent={parent} status={status} state={:?} {attributes:?}",
            span.kind, span.trace_state
        ));
    }
    told.values_mut().for_each(|lines| lines.sort());
    told
}

/// Returns the trace headers that the server received: whether traces are sampled, by the request's name.
fn passed_on(answer: &[String]) -> Vec<String> {
    let echoed = answer.last().expect("a body").to_ascii_lowercase();
    let told = echoed.lines().filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let value = value.trim();
        match name {
            "traceparent" if value.len() == 55 => Some(format!("traceparent -{}", &value[53..])),
            // Envoy sends an empty `tracestate` with traces that it starts.
            "tracestate" if value.is_empty() => None,
            "x-request-id" if value.len() == 36 => Some(format!("x-request-id {}", &value[14..15])),
            "traceparent" | "tracestate" | "x-request-id" | "x-envoy-decorator-operation" => {
                Some(line.to_owned())
            }
            _ => None,
        }
    });
    let mut told: Vec<_> = told.collect();
    told.sort();
    told
}

fn compare(settings: &str, router: &str, service: &str, outbound: bool) {
    let collector = if service == GRPC { Collector::grpc() } else { Collector::http("/in") };
    let mut text = text(settings, router, service, collector.address.port());
    if outbound {
        text = text.replace("  - name: web\n", "  - name: web\n    traffic_direction: OUTBOUND\n");
    }
    let Some(both) = Both::start(&text) else { return };
    let mut differences = Vec::new();
    for (path, arguments) in REQUESTS.iter().chain(&[("/last", &[][..])]) {
        let [ours, theirs] = both.ports().map(|port| passed_on(&ask("http", port, path, arguments)));
        differences.extend(difference(&format!("{path} {arguments:?}"), &ours, &theirs));
    }
    let is_last = |span: &Span| attribute(span, "http.url").ends_with("/last");
    let of = |scope| collector.spans_of(scope);
    for scope in ["quadrille", "envoy"] {
        eventually(&format!("the last span of {scope} does not arrive"), || of(scope).iter().any(is_last));
    }
    let [ours, theirs] = both.ports();
    let (ours, theirs) = (told(&of("quadrille"), ours), told(&of("envoy"), theirs));
    let urls: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let none = Vec::new();
    differences.extend(
        urls.into_iter().filter_map(|url| {
            difference(url, ours.get(url).unwrap_or(&none), theirs.get(url).unwrap_or(&none))
        }),
    );
    assert!(differences.is_empty(), "{settings} {router}\n{}", differences.join("\n"));
    assert!(ours.len() > REQUESTS.len() / 2, "{ours:?}");
    assert!(collector.header("api-key").iter().all(|value| value == "s3cr3t"), "both send it");
}

#[test]
fn both_describe_requests_and_attempts() {
    compare("spawn_upstream_span: true", "", GRPC, false);
    compare("spawn_upstream_span: true", "", HTTP, true);
}

#[test]
fn both_have_one_span_a_request_if_nothing_is_said_and_the_router_may_ask_for_more() {
    compare("", "", GRPC, false);
    compare("", ", start_child_span: true", GRPC, true);
}

#[test]
fn both_record_the_same_requests_by_chance() {
    const SHARES: [&str; 4] = [
        "random_sampling: { value: 30 }",
        "random_sampling: { value: 0.07 }",
        "{ random_sampling: { value: 60 }, overall_sampling: { value: 50 } }",
        "{ client_sampling: { value: 0 }, random_sampling: { value: 10 } }",
    ];
    for share in SHARES {
        let settings = share.trim_matches(['{', '}', ' ']).replace("}, ", "}\n            ");
        let settings = if share.starts_with('{') { format!("{settings} }}") } else { share.to_owned() };
        let collector = Collector::grpc();
        let text = text(&settings, "", GRPC, collector.address.port());
        let Some(both) = Both::start(&text) else { return };
        let mut recorded = 0;
        for number in 0_u32..60 {
            let id = format!("x-request-id: {:08x}-3ab7-457e-b02d-f144dee51d25", number * 7_919);
            let asked: &[&str] = if number % 5 == 0 { &["-H", "x-client-trace-id: 1"] } else { &[] };
            let arguments = [&["-H", id.as_str()], asked].concat();
            let [ours, theirs] = both.ports().map(|port| passed_on(&ask("http", port, "/", &arguments)));
            assert_eq!(ours, theirs, "{share} {id}");
            recorded += usize::from(ours.iter().any(|line| line == "traceparent -01"));
        }
        assert!(recorded < 60, "{share}: some are not recorded");
    }
}

/// The API key is a secret, and an unavailable collector does not delay requests.
#[test]
fn a_collector_is_a_cluster_and_its_headers_are_secrets() {
    for (service, collector) in [(GRPC, Collector::grpc()), (HTTP, Collector::http("/in"))] {
        let (gateway, _file) = serving(&text("", "", service, collector.address.port()));
        assert_eq!(ask("http", gateway.port(), "/here", &[])[0], "200");
        eventually("no span", || !collector.spans().is_empty());
        assert_eq!(collector.service(), "edge");
        assert_eq!(attribute(&collector.spans()[0], "response_size"), "4");
        assert_eq!(collector.header("api-key"), ["s3cr3t"]);
        let dump = gateway.admin_page("/config_dump");
        assert!(dump.contains("api-key") && !dump.contains("s3cr3t"), "{dump}");
        assert!(!gateway.log().contains("s3cr3t"), "{}", gateway.log());
    }
    let (mut gateway, _file) = serving(&text("", "", GRPC, 1));
    assert_eq!(ask("http", gateway.port(), "/here", &[])[0], "200");
    gateway.wait_for_log("cannot send spans");
    gateway.wait_for_metric("quadrille_spans_total", &["result=\"failed\""], |count| count >= 1.0);
}
