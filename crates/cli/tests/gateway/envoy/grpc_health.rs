//! gRPC health checks: both exclude a server that reports `NOT_SERVING`.

use super::{
    serving,
    stock::{Both, ask, bootstrap, with_ports},
};
use crate::{grpc::Server, support::eventually};

const MANAGER: &str = r#"
          route_config:
            name: routes
            virtual_hosts:
            - { name: all, domains: [ "*" ], routes: [ { match: { prefix: / }, route: { cluster: grpc } } ] }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

const CLUSTER: &str = r#"
  - name: grpc
    connect_timeout: 1s
    common_lb_config: { healthy_panic_threshold: { value: 0 } }
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: { http2_protocol_options: {} }
    health_checks: [ { timeout: 5s, interval: 0.1s, no_traffic_interval: 0.1s, unhealthy_threshold: 1, healthy_threshold: 1, grpc_health_check: { service_name: my.Service, authority: app.example } } ]
    load_assignment: { cluster_name: grpc, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: GRPC } } } } ] } ] }
"#;

fn text(server: &Server) -> String {
    let port = server.address.port();
    with_ports(&bootstrap(MANAGER, CLUSTER), &[("UPSTREAM", port), ("GRPC", port)])
}

/// A server that is checked and does not support gRPC, or no server at all.
fn is_asked(port: u16) -> bool {
    ask("http", port, "/", &[])[0] != "503"
}

#[test]
fn a_server_is_left_out_while_it_says_that_it_does_not_serve() {
    let Some(mut server) = Server::start(None) else { return };
    server.set("my.Service", "SERVING");
    let (gateway, _file) = serving(&text(&server));
    for (state, asked) in [("NOT_SERVING", false), ("SERVING", true)] {
        server.set("my.Service", state);
        eventually(state, || is_asked(gateway.port()) == asked);
    }
}

#[test]
fn both_leave_it_out() {
    let Some(mut server) = Server::start(None) else { return };
    server.set("my.Service", "SERVING");
    let Some(both) = Both::start(&text(&server)) else { return };
    for (state, asked) in [("SERVING", true), ("NOT_SERVING", false), ("SERVING", true)] {
        server.set("my.Service", state);
        for port in both.ports() {
            eventually(state, || is_asked(port) == asked);
        }
    }
}
