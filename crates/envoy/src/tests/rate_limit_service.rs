//! Rate limit services: translation of the filter and of per-route settings, and refused settings.

use super::{gateway, only_chain, problems, with_route_config};
use quadrille_config::{
    fraction,
    model::{
        AccessStep, DescriptorValue, FilterOnRoute, HostDescriptors, Http, RateLimitService,
        RateLimitedClients, Route, Serve,
    },
};
use std::{sync::Arc, time::Duration};

const KIND: &str = "\"@type\": a/envoy.extensions.filters.http.ratelimit.v3.RateLimit";
const SERVICE: &str = "rate_limit_service: { transport_api_version: V3, grpc_service: { envoy_grpc: { cluster_name: limits } } }";
const PER_ROUTE: &str = "\"@type\": a/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute";

/// Returns a listener with this filter, whose virtual host and only route have these settings.
fn text(filter: &str, host: &str, route: &str, to: &str) -> String {
    let routes = format!(
        "virtual_hosts: [ {{ name: h, domains: [ \"*\" ], {host} routes: [ {{ match: {{ prefix: / }}, {route} route: {{ {to} \
         }} }} ] }} ]"
    );
    with_route_config(&routes)
        + &format!(
            "          http_filters:
          - {{ name: envoy.filters.http.ratelimit, {filter} }}
          - name: envoy.filters.http.router
            typed_config: {{ \"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}
"
        )
}

fn with_filter(settings: &str) -> String {
    text(&format!("typed_config: {{ {KIND}, {settings} }}"), "", "", "cluster: c")
}

fn with_routes(host: &str, route: &str, to: &str) -> String {
    text(&format!("typed_config: {{ {KIND}, domain: d, {SERVICE} }}"), host, route, to)
}

/// Returns a configuration with every field.
pub(super) fn all() -> String {
    let actions = [
        "generic_key: { descriptor_key: k, descriptor_value: v, default_value: d }",
        "request_headers: { header_name: x-a, descriptor_key: a, skip_if_absent: true }",
        "query_parameters: { query_parameter_name: q, descriptor_key: q, skip_if_absent: true }",
        "remote_address: {}",
        "destination_cluster: {}",
        "masked_remote_address: { v4_prefix_mask_len: 24, v6_prefix_mask_len: 64 }",
        "header_value_match: { descriptor_key: k, descriptor_value: v, expect_match: false, headers: [ { name: n, present_match: \
         true } ] }",
        "query_parameter_value_match: { descriptor_key: k, descriptor_value: v, expect_match: false, query_parameters: [ { \
         name: q, present_match: true } ] }",
        "remote_address_match: { descriptor_key: k, descriptor_value: v, address_matcher: { ranges: [ { address_prefix: \
         10.0.0.0, prefix_len: 8 } ], invert_match: true } }",
        "metadata: { descriptor_key: k, metadata_key: { key: envoy.filters.http.jwt_authn, path: [ { key: payload } ] }, \
         default_value: d, source: DYNAMIC, skip_if_absent: true }",
    ]
    .map(|action| format!("{{ {action} }}"))
    .join(", ");
    let limits = format!(
        "rate_limits: [ {{ stage: 1, actions: [ {actions} ], limit: {{ rate_limit: {{ requests_per_unit: 5, unit: DAY }} }}, \
         hits_addend: {{ number: 2 }} }} ]"
    );
    let filter = format!(
        "typed_config: {{ {KIND}, domain: d, stage: 1, request_type: both, timeout: 1s, failure_mode_deny: true, \
         rate_limited_as_resource_exhausted: true, enable_x_ratelimit_headers: DRAFT_VERSION_03, \
         disable_x_envoy_ratelimited_header: true, rate_limited_status: {{ code: 503 }}, response_headers_to_add: [ {{ header: \
         {{ key: x-a, value: b }} }} ], status_on_error: {{ code: 503 }}, filter_enabled: {{ default_value: {{ numerator: 1 }} \
         }}, filter_enforced: {{ default_value: {{ numerator: 1 }} }}, failure_mode_deny_percent: {{ default_value: {{ \
         numerator: 1 }} }}, rate_limits: [ {{ actions: [ {{ remote_address: {{}} }} ] }} ], {SERVICE} }}"
    );
    let per_route = format!(
        "typed_per_filter_config: {{ r: {{ {PER_ROUTE}, vh_rate_limits: INCLUDE, domain: e, rate_limits: [ {{ actions: [ {{ \
         remote_address: {{}} }} ] }} ] }} }},"
    );
    let to = format!("cluster: c, include_vh_rate_limits: true, {limits}");
    text(&filter, &format!("{limits},"), &per_route, &to)
}

fn http(text: &str) -> Http {
    let gateway = gateway(text);
    let Serve::Http(http) = &only_chain(&gateway).serve else { panic!("no HTTP") };
    http.clone()
}

fn service(text: &str) -> Arc<RateLimitService> {
    let http = http(text);
    let [AccessStep::RateLimitService(service)] = &http.access[..] else { panic!("{:?}", http.access) };
    Arc::clone(service)
}

fn route(text: &str) -> Route {
    http(text).routes.hosts[0].routes[0].clone()
}

#[test]
fn a_filter_becomes_a_step() {
    let plain = service(&with_filter(&format!("domain: d, {SERVICE}")));
    assert_eq!((&*plain.upstream, &*plain.authority, &*plain.domain), ("limits", "limits", "d"));
    assert_eq!(
        (plain.timeout, plain.stage, plain.clients),
        (Duration::from_millis(20), 0, RateLimitedClients::All)
    );
    assert_eq!((plain.status, plain.status_on_error), (429, 500));
    assert_eq!((plain.asked, plain.enforced, plain.denied_on_failure), (fraction::ALL, fraction::ALL, 0));
    assert!(plain.on && plain.tells_limited && !plain.tells_left && !plain.resource_exhausted);
    let settings = "domain: d, stage: 10, request_type: internal, timeout: 1s, failure_mode_deny: true, \
                    rate_limited_status: { code: 503 }, status_on_error: { code: 502 }, enable_x_ratelimit_headers: 1, \
                    disable_x_envoy_ratelimited_header: true, rate_limits: [ { actions: [ { remote_address: {} } ] } ]";
    let other = service(&with_filter(&format!("{settings}, {SERVICE}")));
    assert_eq!(
        (other.timeout, other.stage, other.clients),
        (Duration::from_secs(1), 10, RateLimitedClients::Internal)
    );
    assert_eq!((other.status, other.status_on_error, other.denied_on_failure), (503, 502, fraction::ALL));
    assert!(other.tells_left && !other.tells_limited);
    assert_eq!(other.descriptors[0].parts[0].value, DescriptorValue::Client);
    let error = service(&with_filter(&format!("domain: d, rate_limited_status: {{ code: OK }}, {SERVICE}")));
    assert_eq!(error.status, 429, "as in Envoy for a status that is not an error");
}

#[test]
fn routes_set_the_descriptors() {
    let limits = |value: &str| {
        format!(
            "rate_limits: [ {{ stage: 2, actions: [ {{ generic_key: {{ descriptor_value: {value} }} }} ] }} ]"
        )
    };
    let plain = route(&with_routes("", "", "cluster: c"));
    assert_eq!(plain.descriptors, None, "no descriptors are sent");
    let both = route(&with_routes(
        &format!("{},", limits("host")),
        "",
        &format!("cluster: c, include_vh_rate_limits: true, {}", limits("route")),
    ));
    let told = both.descriptors.expect("descriptors");
    assert_eq!((told.own.len(), told.host.len(), told.includes_host), (1, 1, true));
    assert_eq!((told.own[0].stage, &*told.own[0].parts[0].key), (2, "generic_key"));
    // The most specific settings apply, for each filter separately.
    let said = |filters: &str| format!("typed_per_filter_config: {{ {filters} }},");
    let off = "\"@type\": a/envoy.config.route.v3.FilterConfig, disabled: true";
    let host = said(&format!("my.ratelimit: {{ {off} }}, other: {{ {PER_ROUTE}, vh_rate_limits: IGNORE }}"));
    let own = said(&format!("my.ratelimit: {{ {PER_ROUTE}, domain: e, vh_rate_limits: INCLUDE }}"));
    let told = route(&with_routes(&host, &own, "cluster: c")).descriptors.expect("settings of filters");
    let said = |name: &str| match told.of_filter(name) {
        Some(FilterOnRoute::On(said)) => Some((said.domain.clone(), said.host)),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(said("my.ratelimit"), Some((Some("e".into()), HostDescriptors::Always)));
    assert_eq!(said("other"), Some((None, HostDescriptors::Never)));
    let told = route(&with_routes(&host, "", "cluster: c")).descriptors.expect("the virtual host's settings");
    assert_eq!(told.of_filter("my.ratelimit"), Some(&FilterOnRoute::Off));
}

#[test]
fn what_cannot_be_served_is_refused() {
    let action = |action: &str| {
        with_routes("", "", &format!("cluster: c, rate_limits: [ {{ actions: [ {{ {action} }} ] }} ]"))
    };
    let limits = |limits: &str| with_routes("", "", &format!("cluster: c, rate_limits: [ {{ {limits} }} ]"));
    let any = "actions: [ { remote_address: {} } ]";
    for (text, said) in [
        (with_filter(SERVICE), "`domain` is missing"),
        (with_filter("domain: d"), "`rate_limit_service` is missing"),
        (
            with_filter("domain: d, rate_limit_service: { grpc_service: { google_grpc: {} } }"),
            "write `envoy_grpc`",
        ),
        (with_filter(&format!("domain: d, stage: 11, {SERVICE}")), "write 0 to 10"),
        (with_filter(&format!("domain: d, timeout: 0s, {SERVICE}")), "an unlimited timeout is not supported"),
        (
            with_filter(&format!("domain: d, request_type: some, {SERVICE}")),
            "write `internal`, `external` or `both`",
        ),
        (
            with_filter(&format!("domain: d, rate_limits: [ {{ stage: 1, {any} }} ], {SERVICE}")),
            "stages are not supported within a filter",
        ),
        (
            with_filter(&format!(
                "domain: d, rate_limits: [ {{ actions: [ {{ destination_cluster: {{}} }} ] }} ], {SERVICE}"
            )),
            "write it in the `rate_limits` of routes",
        ),
        (with_filter(&format!("domain: d, moon: full, {SERVICE}")), "Quadrille does not know this field"),
        (limits("actions: []"), "`actions` is missing"),
        (limits(&format!("apply_on_stream_done: true, {any}")), "before a request is served"),
        (limits(&format!("hits_addend: {{ format: \"%BYTES_RECEIVED%\" }}, {any}")), "could lift a limit"),
        (limits(&format!("hits_addend: {{ number: 1000000001 }}, {any}")), "write at most 1000000000"),
        (limits(&format!("limit: {{ dynamic_metadata: {{}} }}, {any}")), "no filter sets limits in metadata"),
        (action("source_cluster: {}"), "descriptor_key: source_cluster"),
        (action("extension: { name: x }"), "could lift a limit"),
        (action("header_value_match: { descriptor_value: v }"), "`headers` is missing"),
        (action("masked_remote_address: { v4_prefix_mask_len: 33 }"), "this type of address has 32 bits"),
        (
            action("metadata: { descriptor_key: k, metadata_key: { key: x, path: [ { key: y } ] } }"),
            "writes no metadata here",
        ),
        (action(""), "no action is set"),
        (
            with_routes(
                "",
                "",
                "weighted_clusters: { clusters: [ { name: a, weight: 1 }, { name: b, weight: 1 } ] }, rate_limits: [ { actions: \
                 [ { destination_cluster: {} } ] } ]",
            ),
            "it is selected later",
        ),
    ] {
        let found = problems(&text);
        assert!(found.contains(said), "{said}: {found}");
    }
}
