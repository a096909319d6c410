//! Connections: both wait for a peer that does not send first, and use the client's HTTP version towards servers.

use super::stock::{Both, ask, bootstrap, with_ports};
use crate::support::{Configuration, Gateway, PATIENCE, document};
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

const LISTENER: &str = r#"
admin: { address: { socket_address: { address: 127.0.0.1, port_value: ADMIN } } }
static_resources:
  listeners:
  - name: bytes
    address: { socket_address: { address: 127.0.0.1, port_value: LISTEN } }
    listener_filters_timeout: 1s
    continue_on_listener_filters_timeout: CONTINUES
    listener_filters:
    - { name: envoy.filters.listener.tls_inspector, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector } }
    filter_chains:
    - filter_chain_match: { transport_protocol: tls }
      filters: [ { name: envoy.filters.network.tcp_proxy, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: tls, cluster: absent } } ]
    - filters: [ { name: envoy.filters.network.tcp_proxy, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: bytes, cluster: app } } ]
  clusters:
  - name: app
    connect_timeout: 1s
    load_assignment: { cluster_name: app, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: UPSTREAM } } } } ] } ] }
  - { name: absent, connect_timeout: 1s, load_assignment: { cluster_name: absent } }
"#;

/// A server that sends first. Serves until the process ends.
fn greeting() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"220 ready\r\n");
        }
    });
    port
}

/// Returns the bytes that a silent client receives, and whether it waited for them.
fn silent(port: u16) -> (String, bool) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let began = Instant::now();
    let mut got = String::new();
    // A reset also counts as the end.
    let _ = stream.read_to_string(&mut got);
    (got, began.elapsed() >= Duration::from_millis(900))
}

#[test]
fn both_wait_for_a_peer_that_does_not_send_first() {
    for (continues, expected) in [("true", "220 ready\r\n"), ("false", "")] {
        let text = with_ports(&LISTENER.replace("CONTINUES", continues), &[("UPSTREAM", greeting())]);
        let Some(both) = Both::start(&text) else { return };
        for port in both.ports() {
            assert_eq!(
                silent(port),
                (expected.to_owned(), true),
                "{continues}, {port} of {:?}",
                both.ports()
            );
        }
    }
}

const MANAGER: &str = r#"
          route_config: { name: r, virtual_hosts: [ { name: all, domains: [ "*" ], routes: [ { match: { prefix: / }, route: { cluster: either } } ] } ] }
          http_filters:
          - { name: envoy.filters.http.router, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router, suppress_envoy_headers: true } }
"#;

const EITHER: &str = r#"
  - name: either
    connect_timeout: 1s
    typed_extension_protocol_options: { envoy.extensions.upstreams.http.v3.HttpProtocolOptions: { "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, use_downstream_protocol_config: { http_protocol_options: {}, http2_protocol_options: {} } } }
    load_assignment: { cluster_name: either, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: UPSTREAM } } } } ] } ] }
"#;

/// A server without TLS that reports the HTTP version of the request.
fn telling() -> (Gateway, Configuration) {
    let plain = "{address: \"127.0.0.1:0\", tls: off, respond: told, response_headers: [{set: X-Spoken, value: \"{protocol}\"}]}";
    let file = Configuration::new(&document(&[plain.to_owned()], ""));
    let gateway = Gateway::with_config(&file.path(), 1);
    (gateway, file)
}

#[test]
fn both_speak_what_clients_speak() {
    let (server, _file) = telling();
    let text = with_ports(&bootstrap(MANAGER, EITHER), &[("UPSTREAM", server.port())]);
    let Some(both) = Both::start(&text) else { return };
    for port in both.ports() {
        for (version, spoken) in [("--http1.1", "http/1.1"), ("--http2-prior-knowledge", "http/2")] {
            for _ in 0..3 {
                let answer = ask("http", port, "/", &[version]);
                assert!(
                    answer.contains(&format!("x-spoken: {spoken}")),
                    "{port} of {:?}: {answer:?}",
                    both.ports()
                );
            }
        }
    }
}
