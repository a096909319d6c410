//! The external authorization filter: translation, and refused settings.

use super::{gateway, only_chain, problems, with_route_config};
use quadrille_config::model::{AccessStep, AuthorizationService, Serve};

/// Returns a listener with this filter behind RBAC's shadow rules.
fn with_filter(filter: &str) -> String {
    with_route_config("virtual_hosts: []")
        + &format!(
            "          http_filters:
          - name: envoy.filters.http.rbac
            typed_config: {{ \"@type\": a/envoy.extensions.filters.http.rbac.v3.RBAC, shadow_rules_stat_prefix: istio_ext_authz_, \
             shadow_rules: {{ action: DENY, policies: {{ p: {{ permissions: [ {{ any: true }} ], principals: [ {{ any: true }} ] }} }} }} }}
          - name: envoy.filters.http.ext_authz
            typed_config: {{ \"@type\": a/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz, {filter} }}
          - name: envoy.filters.http.router
            typed_config: {{ \"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}
"
        )
}

const GRPC: &str =
    "grpc_service: { envoy_grpc: { cluster_name: 'outbound|9000||a', authority: a.example }, timeout: 600s }";

#[test]
fn what_istiod_sends() {
    let filter = format!(
        "{GRPC}, transport_api_version: V3, filter_enabled_metadata: {{ filter: envoy.filters.http.rbac, path: [ {{ key: \
         istio_ext_authz_shadow_effective_policy_id }} ], value: {{ string_match: {{ prefix: istio-ext-authz }} }} }}"
    );
    let gateway = gateway(&with_filter(&filter));
    let Serve::Http(http) = &only_chain(&gateway).serve else { panic!("no HTTP") };
    let [AccessStep::Shadow(rules, name), AccessStep::Authorization(asked)] = &http.access[..] else {
        panic!("{:?}", http.access)
    };
    assert_eq!(name, "istio_ext_authz_shadow_effective_policy_id");
    assert_eq!(rules.policies[0].name, "p");
    assert_eq!((asked.upstream.as_str(), asked.timeout.as_secs()), ("outbound|9000||a", 600));
    assert_eq!(asked.service, AuthorizationService::Grpc("a.example".into()));
    assert_eq!((asked.fail_open, asked.status_on_error), (false, 403));
}

#[test]
fn what_cannot_be_served_is_refused() {
    let http = |service: &str| {
        format!("http_service: {{ server_uri: {{ uri: a, cluster: c, timeout: 1s }}, {service} }}")
    };
    for (filter, said) in [
        (String::new(), "`grpc_service` or `http_service` is missing"),
        (
            format!("{GRPC}, with_request_body: {{ allow_partial_message: true }}"),
            "`max_request_bytes` is missing",
        ),
        (format!("{GRPC}, with_request_body: {{ max_request_bytes: 16777217 }}"), "write 1 to 16777216"),
        (format!("{GRPC}, filter_enabled: {{ default_value: {{}} }}"), "filter_enabled: refused"),
        (format!("{GRPC}, status_on_error: {{ code: Continue }}"), "is not supported here"),
        (format!("{GRPC}, transport_api_version: V2"), "is not supported here"),
        (format!("{GRPC}, moon: full"), "Quadrille does not know this field"),
        (format!("{GRPC}, {}", http("")), "only one of them is allowed"),
        ("grpc_service: { google_grpc: {} }".into(), "google_grpc: refused"),
        (
            "grpc_service: { envoy_grpc: { cluster_name: 'a b' } }".into(),
            "set the server's name as `authority`",
        ),
        (http("path_prefix: check"), "is not a path prefix"),
        (
            http("authorization_request: { headers_to_add: [ { key: a, value: '%REQ(b)%' } ] }"),
            "variables are not substituted here",
        ),
        (GRPC.replace("600s", "0s"), "an unlimited timeout is not supported"),
    ] {
        let found = problems(&with_filter(&filter));
        assert!(found.contains(said), "{filter}: {found}");
    }
}
