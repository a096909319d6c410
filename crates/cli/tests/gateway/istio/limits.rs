//! Rate limiting with a rate limit service of the mesh, as in Istio's guide.

use super::{access::started, external};
use crate::support::rate_limit_service;

/// The filter, before the router.
fn filter() -> String {
    format!(
        "{HEAD}
metadata: {{ name: filter-ratelimit, namespace: istio-system }}
spec:
  workloadSelector: {{ labels: {{ istio: ingressgateway }} }}
  configPatches:
  - applyTo: HTTP_FILTER
    match:
      context: GATEWAY
      listener: {{ filterChain: {{ filter: {{ name: envoy.filters.network.http_connection_manager, subFilter: {{ name: envoy.filters.http.router }} }} }} }}
    patch:
      operation: INSERT_BEFORE
      value:
        name: envoy.filters.http.ratelimit
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
          domain: shop
          failure_mode_deny: true
          timeout: 10s
          rate_limit_service:
            grpc_service:
              envoy_grpc: {{ cluster_name: outbound|8081||limits.example.com, authority: limits.example.com }}
            transport_api_version: V3
"
    )
}

/// Descriptors: the path and the user.
fn actions() -> String {
    format!(
        "{HEAD}
metadata: {{ name: filter-ratelimit-svc, namespace: istio-system }}
spec:
  workloadSelector: {{ labels: {{ istio: ingressgateway }} }}
  configPatches:
  - applyTo: VIRTUAL_HOST
    match: {{ context: GATEWAY }}
    patch:
      operation: MERGE
      value:
        rate_limits:
        - actions:
          - request_headers: {{ header_name: \":path\", descriptor_key: PATH }}
          - request_headers: {{ header_name: x-user, descriptor_key: USER }}
"
    )
}

const HEAD: &str = "apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter";

/// Returns the service, whose server is on this loopback port.
fn service(port: u16) -> String {
    external("limits.example.com", "GRPC", 8081, port)
}

#[test]
fn a_service_limits_requests_by_user() {
    let objects =
        [("limits", service(rate_limit_service().port())), ("filter", filter()), ("actions", actions())];
    let objects = objects.each_ref().map(|(name, text)| (*name, text.as_str()));
    let Some((mesh, _nginx, port)) = started(&objects) else { return };
    let ask = |user: &str| {
        let header = format!("x-user: {user}");
        mesh.ask("shop-cert", "shop.example.com", port, "/a", &["-H", &header])
    };
    mesh.await_or_show("agent.log", || ask("alice") == "right  200");
    assert_eq!(ask("over"), "shop PATH=/a,USER=over 429");
    assert_eq!(ask("fail"), " 500");
    assert_eq!(
        mesh.get("shop-cert", "shop.example.com", port, "/a"),
        "right  200",
        "the request has no user"
    );
    // The service is unavailable.
    mesh.configure("limits", &service(1));
    mesh.await_or_show("agent.log", || ask("alice") == " 500");
    assert_eq!(mesh.refused(), Vec::<String>::new());
}
