//! `/stats`: the same counter names and values as the stock Envoy's.

use super::{
    stock::{Both, bootstrap, with_ports},
    upstream,
};
use crate::support::output;
use std::{collections::BTreeMap, process::Command};

const MANAGER: &str = r#"
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes:
              - { match: { path: /gone }, direct_response: { status: 410 } }
              - { match: { path: /moved }, redirect: { path_redirect: / } }
              - { match: { path: /absent }, route: { cluster: absent } }
              - { match: { path: /nowhere }, route: { cluster: nowhere } }
              - { match: { prefix: /flaky }, route: { cluster: app, retry_policy: { retry_on: 5xx, num_retries: 3 } } }
              - { match: { path: /slow }, route: { cluster: app, timeout: 0.3s } }
              - { match: { prefix: /up }, route: { cluster: app } }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

const CLUSTERS: &str = r#"
  - { name: absent, connect_timeout: 1s, load_assignment: { cluster_name: absent } }
  - name: nowhere
    connect_timeout: 1s
    load_assignment: { cluster_name: nowhere, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 1 } } } } ] } ] }
"#;

const PATHS: &[&str] =
    &["/gone", "/moved", "/absent", "/nowhere", "/flaky", "/slow", "/up", "/up/more", "/not-there"];

const COUNTED: &str = r"^(http\.web\.|cluster\.(app|absent|nowhere)\.|listener\.|server\.(live|state)$|listener_manager\.workers_started)";

/// Counters that differ: requests in progress, and attempts, each of which Envoy counts as a request.
const OTHERWISE: &[&str] =
    &["downstream_cx_destroy", "downstream_cx_active", "upstream_rq_active", "upstream_rq_total"];

fn statistics(page: &str, port: u16) -> BTreeMap<String, String> {
    let (good, text) = output(Command::new("curl").args(["-sS", "--globoff", page]));
    assert!(good, "{text}");
    let line = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        let name =
            name.replace(&format!("127.0.0.1_{port}."), "ADDRESS.").replace("127.0.0.1_0.", "ADDRESS.");
        Some((name, value.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn both_count_the_same() {
    let text = with_ports(&bootstrap(MANAGER, CLUSTERS), &[("UPSTREAM", upstream::start().port())]);
    let Some(both) = Both::start(&text) else { return };
    for path in PATHS {
        both.ask("http", path, &[]);
    }
    let filter = format!("/stats?filter={COUNTED}");
    let [ours, theirs] = both.admin_pages(&filter);
    let [our_port, their_port] = both.ports();
    let (ours, theirs) = (statistics(&ours, our_port), statistics(&theirs, their_port));
    assert!(ours.len() > 60, "{ours:?}");
    let differs = |(name, value): (&String, &String)| {
        // Envoy omits counters of events that have not occurred.
        let other = theirs.get(name).map_or("0", String::as_str);
        let is_alike = OTHERWISE.iter().any(|otherwise| name.ends_with(otherwise)) || other == value;
        (!is_alike).then(|| format!("{name}: {value}, Envoy {other}"))
    };
    let differences: Vec<_> = ours.iter().filter_map(differs).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
