//! `healthy_panic_threshold`: if too few servers are healthy, all receive requests, as with the stock Envoy.

use super::{
    serving,
    stock::{Both, ask, bootstrap, with_ports},
    upstream,
};
use crate::support::{eventually, ports};

const MANAGER: &str = r#"
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes:
              - { match: { prefix: /preset }, route: { cluster: preset } }
              - { match: { prefix: /never }, route: { cluster: never } }
              - { match: { prefix: /half }, route: { cluster: half } }
              - { match: { prefix: /often }, route: { cluster: often } }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

/// Number of running servers of each cluster's four; the cluster's fields; whether all four receive requests.
const CLUSTERS: &[(&str, usize, &str, bool)] = &[
    ("preset", 1, "{}", true),
    ("never", 1, "{ healthy_panic_threshold: {} }", false),
    ("half", 2, "{ healthy_panic_threshold: { value: 50 } }", false),
    ("often", 2, "{ healthy_panic_threshold: { value: 60 } }", true),
];

fn cluster((name, there, common, _): &(&str, usize, &str, bool), absent: u16) -> String {
    let endpoint = |server: usize| {
        // Further addresses of this machine, to have four.
        let (address, port) = match server < *there {
            true => ("127.0.0.1".to_owned(), "UPSTREAM".to_owned()),
            false => (format!("127.0.0.{}", server + 1), absent.to_string()),
        };
        let port = if server == 1 && *there == 2 { "SECOND".to_owned() } else { port };
        format!(
            "{{ endpoint: {{ address: {{ socket_address: {{ address: {address}, port_value: {port} }} }} }} }}"
        )
    };
    let endpoints: Vec<_> = (0..4).map(endpoint).collect();
    format!(
        "  - name: {name}
    connect_timeout: 1s
    common_lb_config: {common}
    health_checks: [ {{ timeout: 1s, interval: 0.1s, no_traffic_interval: 0.1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {{}} }} ]
    load_assignment: {{ cluster_name: {name}, endpoints: [ {{ lb_endpoints: [ {} ] }} ] }}
",
        endpoints.join(", ")
    )
}

fn text() -> String {
    let absent = ports::free();
    let clusters: String = CLUSTERS.iter().map(|one| cluster(one, absent)).collect();
    let text = bootstrap(MANAGER, &clusters);
    with_ports(&text, &[("UPSTREAM", upstream::start().port()), ("SECOND", upstream::start().port())])
}

/// Returns how many of 40 requests succeed.
fn answered(port: u16, cluster: &str) -> usize {
    (0..40).filter(|_| ask("http", port, &format!("/{cluster}"), &[])[0] == "200").count()
}

#[test]
fn with_too_few_healthy_servers_all_receive_requests() {
    let (gateway, _file) = serving(&text());
    for (cluster, there, _, panics) in CLUSTERS {
        eventually("the missing servers are not detected", || {
            gateway.admin_page("/stats").contains(&format!("cluster.{cluster}.membership_healthy: {there}\n"))
        });
        let answered = answered(gateway.port(), cluster);
        assert_eq!(answered < 40, *panics, "{cluster}: {answered}");
        assert!(answered >= 10 * there - 5, "{cluster}: {answered}");
    }
}

#[test]
fn both_panic_at_the_same_threshold() {
    let Some(both) = Both::start(&text()) else { return };
    for (cluster, there, _, panics) in CLUSTERS {
        for port in both.ports() {
            let calm = || answered(port, cluster);
            if *panics {
                let answered = calm();
                assert!((10 * there - 5..40).contains(&answered), "{cluster}: {answered}");
            } else {
                eventually("not all requests succeed", || calm() == 40);
            }
        }
    }
}
