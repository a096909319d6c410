//! Tracing by a Telemetry resource and the mesh's `extensionProviders`.

use super::{Mesh, backend, external, shop};
use crate::support::{Collector, Nginx, attribute, eventually, ports};
use opentelemetry_proto::tonic::trace::v1::Span;

#[test]
fn spans_go_to_the_collector_of_the_mesh() {
    let collector = Collector::grpc();
    let nginx = Nginx::new("location / { return 200 \"right $http_traceparent\"; }");
    let port = ports::free();
    let endpoints = format!("[ {{ address: 127.0.0.1, ports: {{ http: {} }} }} ]", nginx.address().port());
    let mesh = "extensionProviders:
- name: otel
  opentelemetry: { service: collector.example.com, port: 4317 }
";
    let service = external("collector.example.com", "GRPC", 4317, collector.address.port());
    let telemetry = "apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: { name: traces, namespace: istio-system }
spec:
  tracing:
  - providers: [ { name: otel } ]
    randomSamplingPercentage: 100
    customTags: { team: { literal: { value: payments } } }
";
    let (shop, backend) = (shop(port), backend(&endpoints, ""));
    let objects =
        [("shop", shop.as_str()), ("backend", &backend), ("collector", &service), ("telemetry", telemetry)];
    let Some(mut mesh) = Mesh::start(mesh, &objects) else { return };
    mesh.secret("shop-cert", "shop.example.com");
    mesh.start_gateway();
    let ask = || mesh.get("shop-cert", "shop.example.com", port, "/path?a=b");
    mesh.await_or_show("agent.log", || ask().starts_with("right 00-") && ask().ends_with("-01 200"));
    assert_eq!(mesh.refused(), Vec::<String>::new());
    // Before the backend was known, the response was different.
    let answered = || {
        let is_answered = |span: &Span| attribute(span, "http.status_code") == "200";
        collector.spans().into_iter().filter(is_answered).find(|span| !attribute(span, "http.url").is_empty())
    };
    eventually("no spans", || answered().is_some());
    let span = answered().expect("a span");
    assert!(attribute(&span, "http.url").ends_with("/path?a=b"), "{span:#?}");
    // The name in istiod's decorator of the route.
    assert!(span.name.starts_with("backend.example.com:80/"), "{span:#?}");
    assert_eq!(attribute(&span, "team"), "payments");
    assert!(attribute(&span, "upstream_cluster").contains("backend.example.com"), "{span:#?}");
    assert_eq!(attribute(&span, "istio.namespace"), "istio-system");
}
