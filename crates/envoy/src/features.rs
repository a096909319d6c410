//! Supported features of Envoy and Istio, with the tests that show them.

/// Support for a feature.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Works,
    /// Refused with this error; access that depends on it is denied.
    Refused(&'static str),
}

/// A feature.
pub(crate) struct Feature {
    pub(crate) name: &'static str,
    pub(crate) outcome: Outcome,
    /// The file of its test, relative to the crates' folder, and the test's function.
    pub(crate) test: (&'static str, &'static str),
}

/// The features required of ingress gateways.
pub(crate) const FEATURES: &[Feature] = &[
    // Gateways and their agent.
    works(
        "Gateway: HTTPS with a Secret (`SIMPLE`)",
        DEFAULTS,
        "requests_are_answered_and_nothing_is_refused",
    ),
    works(
        "Secret updates under load",
        XDS,
        "secrets_and_listeners_are_swapped_under_load_state_of_the_world",
    ),
    works("Incremental xDS", XDS, "secrets_and_listeners_are_swapped_under_load_delta"),
    works(
        "The agent's readiness and admin pages",
        DEFAULTS,
        "the_agent_finds_the_pages_that_it_asks_envoy_for",
    ),
    works("`/drain_listeners`", DEFAULTS, "the_agent_drains_the_gateway_as_it_drains_envoy"),
    works("Restart of istiod", DEFAULTS, "istiod_may_stop_and_restart"),
    works(
        "`privateKeyProvider` with `pollDelay`",
        "cli/tests/gateway/istio/delay.rs",
        "a_lone_client_waits_for_the_meshs_delay",
    ),
    works(
        "Gateway: client certificates (`MUTUAL`)",
        "cli/tests/gateway/envoy/rbac.rs",
        "both_allow_the_same_certificates",
    ),
    works("Gateway: `httpsRedirect`", ROUTES, CHANGED),
    // VirtualServices.
    works("Conditions on paths: exact, prefix, regular expression, case-insensitive", ROUTES, CHANGED),
    works("Conditions on methods and headers (`headers`, `withoutHeaders`)", ROUTES, CHANGED),
    works("Conditions on queries", ROUTES, CHANGED),
    works("`directResponse`", ROUTES, CHANGED),
    works("`redirect`", ROUTES, CHANGED),
    works("`rewrite` of path and authority", ROUTES, CHANGED),
    works("Changes to request and response headers", ROUTES, CHANGED),
    works("`weight`", ROUTES, CHANGED),
    works("`timeout`", ROUTES, CHANGED),
    works("`retries`", DIFFERENTIAL, "both_answer_the_same_way"),
    works("`mirrors`", ROUTES, CHANGED),
    works("`corsPolicy`", TRAFFIC, "pages_of_other_origins_receive_cors_headers"),
    works("`fault`", TRAFFIC, "faults_are_injected"),
    // DestinationRules and services.
    works(
        "istiod's configuration for a Gateway and a VirtualService, compared with stock Envoy",
        "cli/tests/gateway/istio/differential.rs",
        "both_serve_what_istiod_makes",
    ),
    works("Subsets", ROUTES, CHANGED),
    works(
        "Endpoints on Unix sockets",
        "cli/tests/gateway/envoy/unix_sockets.rs",
        "both_ask_servers_on_unix_sockets",
    ),
    works(
        "`connectionPool`",
        "envoy/src/tests/upstream_limits.rs",
        "limits_are_those_of_requests_without_a_priority",
    ),
    works("`outlierDetection`", TRAFFIC, "a_server_that_fails_is_left_out"),
    works("`consistentHash` by header", TRAFFIC, "requests_keep_to_a_server_by_a_header"),
    works(
        "`consistentHash` by cookie, address and query",
        "envoy/src/tests/traffic.rs",
        "requests_keep_to_servers_by_what_routes_say",
    ),
    works("Automatic mutual TLS to workloads", MTLS, "a_workload_that_speaks_mutual_tls_is_reached"),
    works("Workloads that deny the gateway", MTLS, "a_workload_that_rejects_the_gateway_is_not_reached"),
    works("Locality weights", CLUSTERS, "localities_share_the_load_by_their_weights"),
    works(
        "Priorities",
        "gateway/src/upstream/balance/balancer.rs",
        "servers_of_the_next_priority_wait_until_none_of_the_first_is_healthy",
    ),
    works(
        "`healthy_panic_threshold`",
        "cli/tests/gateway/envoy/panic.rs",
        "both_panic_at_the_same_threshold",
    ),
    works("The PROXY protocol to upstreams", CLUSTERS, "servers_get_a_proxy_header"),
    works("`auto_sni` with `auto_san_validation`", CLUSTERS, "the_host_of_a_request_is_sent_and_verified"),
    // Access control.
    works("RequestAuthentication", ACCESS, "tokens_and_what_they_say_let_clients_in"),
    works(
        "AuthorizationPolicy by paths, headers and addresses",
        "cli/tests/gateway/envoy/rbac.rs",
        "both_allow_the_same_requests",
    ),
    works(
        "AuthorizationPolicy by token claims",
        ACCESS,
        "requests_without_a_token_are_denied_and_tokens_of_two_issuers_are_accepted",
    ),
    works("JWKS fetched by the gateway", "cli/tests/gateway/envoy/remote_jwks.rs", "both_fetch_keys"),
    works("AuthorizationPolicy with `CUSTOM`: gRPC and HTTP", ACCESS, "an_authorization_server_decides"),
    works(
        "Request bodies for authorization servers",
        "cli/tests/gateway/envoy/authorization.rs",
        "both_tell_of_bodies",
    ),
    works("Local rate limits", "cli/tests/gateway/envoy/local_rate_limit.rs", "both_refuse_the_same"),
    works(
        "Local rate limits with `descriptors`",
        "cli/tests/gateway/envoy/local_rate_limit.rs",
        "both_count_by_descriptors",
    ),
    works("Global rate limits", "cli/tests/gateway/envoy/rate_limit_service.rs", "both_ask_and_obey"),
    works("`basic_auth`", "cli/tests/gateway/envoy/basic_auth.rs", "both_accept_the_same_users"),
    works("Response compression", "cli/tests/gateway/envoy/compressor.rs", "both_compress_the_same_answers"),
    works("`x-request-id`", "cli/tests/gateway/envoy/request_id.rs", "both_name_requests_the_same_way"),
    works(
        "`x-forwarded-client-cert`",
        "cli/tests/gateway/envoy/forwarded_certificate.rs",
        "both_tell_the_same_of_certificates",
    ),
    works(
        "Request body limits (`buffer`)",
        "cli/tests/gateway/envoy/request_limits.rs",
        "both_refuse_what_is_too_large",
    ),
    works(
        "Health checks by gRPC",
        "cli/tests/gateway/envoy/grpc_health.rs",
        "a_server_is_left_out_while_it_says_that_it_does_not_serve",
    ),
    works(
        "`local_reply_config`",
        "cli/tests/gateway/envoy/local_reply.rs",
        "both_write_local_replies_in_the_same_way",
    ),
    works("`x-envoy-*`", "cli/tests/gateway/envoy/envoy_headers.rs", "both_tell_the_same"),
    works(
        "Listeners with unsupported access rules are closed",
        "control-plane/src/tests.rs",
        "a_listener_whose_access_rules_are_rejected_is_closed",
    ),
    works(
        "Refused configuration on the readiness page",
        XDS,
        "what_is_refused_stands_on_the_page_of_readiness",
    ),
    works(
        "Routes that cannot be served are closed, and the others are served",
        "cli/tests/gateway/xds/closed_routes.rs",
        "routes_that_cannot_be_served_are_closed_alone_delta",
    ),
    // Unsupported features.
    refused("WebAssembly and Lua", "the behavior of its code is unknown", REFUSED, NOT_SERVED),
    works(
        "OpenTelemetry tracing, by gRPC and HTTP, with sampling and custom tags",
        "cli/tests/gateway/envoy/tracing.rs",
        "both_describe_requests_and_attempts",
    ),
    works(
        "Sidecars: redirected connections, outbound and inbound (`use_original_dst`, `bind_to_port: false`, `ORIGINAL_DST`)",
        SIDECAR,
        "redirected_connections_go_where_they_belong",
    ),
    works(
        "Sidecars: PERMISSIVE and STRICT mutual TLS as configured by istiod",
        "cli/tests/gateway/istio/sidecar.rs",
        "a_sidecar_serves_what_istiod_sends_it",
    ),
    refused(
        "Sidecars with connections redirected by `TPROXY` (`transparent`)",
        "connections are redirected by `REDIRECT`",
        "envoy/src/tests/sidecar.rs",
        "what_cannot_be_meant_is_refused",
    ),
];

const ACCESS: &str = "cli/tests/gateway/istio/access.rs";
const CLUSTERS: &str = "envoy/src/tests/clusters.rs";
const DEFAULTS: &str = "cli/tests/gateway/istio/defaults.rs";
const DIFFERENTIAL: &str = "cli/tests/gateway/envoy/differential.rs";
const MTLS: &str = "cli/tests/gateway/istio/mtls.rs";
const REFUSED: &str = "envoy/src/tests/refused.rs";
const ROUTES: &str = "cli/tests/gateway/istio/routes.rs";
const SIDECAR: &str = "cli/tests/gateway/sidecar/mod.rs";
const TRAFFIC: &str = "cli/tests/gateway/istio/traffic.rs";
const XDS: &str = "cli/tests/gateway/xds.rs";

const CHANGED: &str = "routes_take_what_is_theirs_and_change_it";
const NOT_SERVED: &str = "what_is_not_served_says_so";

const fn works(name: &'static str, file: &'static str, test: &'static str) -> Feature {
    Feature { name, outcome: Outcome::Works, test: (file, test) }
}

const fn refused(
    name: &'static str,
    message: &'static str,
    file: &'static str,
    test: &'static str,
) -> Feature {
    Feature { name, outcome: Outcome::Refused(message), test: (file, test) }
}

/// Returns the table of features in Markdown.
pub(crate) fn features() -> String {
    let rows: String = FEATURES
        .iter()
        .map(|Feature { name, outcome, test: (file, test) }| {
            let outcome = match outcome {
                Outcome::Works => "works".to_owned(),
                Outcome::Refused(message) => format!("refused, fails closed: `{message}`"),
            };
            format!("| {name} | {outcome} | `{test}` in `crates/{file}` |\n")
        })
        .collect();
    let works = FEATURES.iter().filter(|feature| feature.outcome == Outcome::Works).count();
    let all = FEATURES.len();
    format!(
        "\n## Features\n\nOf the {all} features listed here, {works} work. The others are refused with an error, and a \
         refused access rule\ncloses its listener. [What works under Istio](under-istio.md) describes those configured \
         by istiod.\n\n| Feature | | Shown by |\n|---|---|---|\n{rows}"
    )
}
