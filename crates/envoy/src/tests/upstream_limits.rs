//! Circuit breakers and outlier detection, as Istio configures them for a DestinationRule.

use super::{gateway, warnings};
use quadrille_config::model::{HealthProbe, HttpProbe, OutlierDetection, Upstream};
use std::num::NonZeroUsize;

/// Returns a cluster with these fields.
fn cluster_with(fields: &str) -> String {
    format!(
        "
static_resources:
  clusters:
  - name: c
    type: STATIC
    load_assignment:
      cluster_name: c
      endpoints: [ {{ lb_endpoints: [ {{ endpoint: {{ address: {{ socket_address: {{ address: 10.0.0.1, port_value: 80 }} }} }} }} ] }} ]
    {fields}
"
    )
}

/// Returns the model's upstream for such a cluster, without a warning.
fn upstream(fields: &str) -> Upstream {
    let text = cluster_with(fields);
    assert_eq!(warnings(&text), Vec::<String>::new());
    gateway(&text).upstreams["c"].clone()
}

#[test]
fn limits_are_those_of_requests_without_a_priority() {
    let limits = upstream(
        "circuit_breakers: { thresholds: [ { max_connections: 100, max_pending_requests: 1, max_requests: 4294967295, \
         max_retries: 0, track_remaining: true }, { priority: HIGH, max_requests: 7 } ] }",
    )
    .limits;
    assert_eq!(limits.connections.map(NonZeroUsize::get), Some(100));
    assert_eq!((limits.pending, limits.requests, limits.retries), (Some(1), None, Some(0)));
}

#[test]
fn servers_are_left_out_by_what_is_enforced() {
    let found = upstream(
        "outlier_detection: { consecutive_5xx: 0, enforcing_consecutive_5xx: 0, consecutive_gateway_failure: 3, \
         enforcing_consecutive_gateway_failure: 100, enforcing_success_rate: 0, interval: 7s, base_ejection_time: 180s, \
         max_ejection_time: 200s, max_ejection_percent: 100, split_external_local_origin_errors: true, \
         consecutive_local_origin_failure: 4, enforcing_consecutive_local_origin_failure: 100 }",
    );
    let found = found.outlier_detection.expect("outlier detection");
    let counts = [found.errors, found.gateway_errors, found.local_errors];
    assert_eq!(counts.map(|count| count.map(NonZeroUsize::get)), [None, Some(3), Some(4)]);
    let times = [found.interval, found.ejection, found.longest_ejection].map(|time| time.as_secs());
    assert_eq!((times, found.most, found.split), ([7, 180, 200], 100, true));
}

#[test]
fn what_is_not_said_is_as_in_envoy() {
    let found = upstream("outlier_detection: {}").outlier_detection.expect("outlier detection");
    let five = NonZeroUsize::new(5);
    assert_eq!(found, OutlierDetection { errors: five, local_errors: five, ..OutlierDetection::default() });
    assert_eq!(upstream("").outlier_detection, None);
}

/// Returns fields of clusters with a slow start, of both policies that have one.
fn slow_starts() -> [String; 2] {
    ["ROUND_ROBIN", "LEAST_REQUEST"].map(|policy| {
        let config = format!("{}_lb_config", policy.to_lowercase());
        format!("lb_policy: {policy}\n    {config}: {{ slow_start_config: {{ slow_start_window: 30s }} }}")
    })
}

/// Returns configurations with all fields of slow starts.
pub(super) fn all() -> [String; 2] {
    slow_starts().map(|fields| cluster_with(&fields))
}

#[test]
fn the_share_of_new_endpoints_grows_over_the_window() {
    for fields in slow_starts() {
        assert_eq!(upstream(&fields).slow_start.map(|window| window.as_secs()), Some(30), "{fields}");
    }
    assert_eq!(upstream("round_robin_lb_config: {}").slow_start, None);
}

#[test]
fn health_checks_have_their_host_method_and_statuses() {
    let checked = |request: &str| {
        let times = "timeout: 1s, interval: 2s, unhealthy_threshold: 3, healthy_threshold: 2";
        upstream(&format!("health_checks: [ {{ {times}, http_health_check: {{ path: /ok, {request} }} }} ]"))
    };
    let health = checked(
        "host: app.example, method: HEAD, expected_statuses: [ { start: 200, end: 300 }, { start: 401, end: 402 } ]",
    );
    let expected = HttpProbe {
        method: http::Method::HEAD,
        host: Some("app.example".to_owned()),
        statuses: vec![(200, 299), (401, 401)],
        ..HttpProbe::get("/ok")
    };
    assert_eq!(health.health.expect("health checks").probe, HealthProbe::Http(expected));
}
