//! Upstreams on Unix sockets, with the same requests as the stock Envoy's.

use super::stock::{Both, bootstrap, difference, with_ports};
use crate::support::{Nginx, ports};

const MANAGER: &str = r#"
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes:
              - { match: { prefix: /one }, route: { cluster: one } }
              - { match: { prefix: /mixed }, route: { cluster: mixed } }
              - { match: { prefix: /absent }, route: { cluster: absent } }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

#[test]
fn both_ask_servers_on_unix_sockets() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = |name: &str| directory.path().join(name).display().to_string();
    let nginx = Nginx::new(&format!("listen unix:{}; return 200 \"$host $request_uri\";", socket("a")));
    let pipe =
        |name: &str| format!("{{ endpoint: {{ address: {{ pipe: {{ path: {} }} }} }} }}", socket(name));
    let tcp = "{ endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: UPSTREAM } } } }";
    let cluster = |name: &str, endpoints: &[&str]| {
        format!(
            "  - name: {name}
    connect_timeout: 1s
    load_assignment: {{ cluster_name: {name}, endpoints: [ {{ lb_endpoints: [ {} ] }} ] }}
",
            endpoints.join(", ")
        )
    };
    let clusters = [
        cluster("one", &[&pipe("a")]),
        cluster("mixed", &[&pipe("a"), tcp]),
        cluster("absent", &[&pipe("b")]),
    ];
    let text = with_ports(&bootstrap(MANAGER, &clusters.concat()), &[("UPSTREAM", nginx.address().port())]);
    let Some(both) = Both::start(&text) else { return };
    let mut differences = Vec::new();
    for (path, status) in [("/one", "200"), ("/mixed", "200"), ("/absent", "503")] {
        for turn in 0..4 {
            let host = format!("Host: app{turn}.example:{}", ports::free());
            let [ours, theirs] = both.ask("http", path, &["-H", &host]);
            assert_eq!(ours[0], status, "{path}: {ours:?}");
            // Error texts differ.
            let told = if status == "200" { ours.len() } else { 1 };
            differences.extend(difference(path, &ours[..told], &theirs[..told]));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
