//! Listeners that share an address: a host is served only under the rules of its own listener.

use crate::support::{
    Certificates, Configuration, Gateway, Http3Client, configuration::listener_at, curl, curl_status,
    document, echo_server, http3::Http3, ports,
};
use std::net::SocketAddr;

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    address: SocketAddr,
    _file: Configuration,
}

/// A user `ada` with the password `open sesame`.
const USERS: &str = "'ada:$2y$05$DdtPXFFCcdaikKOAhelah.ig4957ecLHk7CcmHEhDzxwEVL6SC1Ci'";

impl Site {
    /// Starts one address with these listeners.
    fn new(listeners: &[&str]) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let address = SocketAddr::from(([127, 0, 0, 1], ports::free()));
        let listener = |keys: &&str| {
            let http3 = if keys.contains("mode: tcp") { "off" } else { "on" };
            listener_at(address, &pair, &format!("http3: {http3}, {}", keys.replace("USERS", USERS)))
        };
        let listeners: Vec<_> = listeners.iter().map(listener).collect();
        let web = format!("web: {{servers: [\"{}\"]}}", echo_server());
        let file = Configuration::new(&document(&listeners, &web));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, address, _file: file }
    }

    /// Returns the status of a request for a host, on a connection for `localhost`, over each HTTP version.
    fn statuses(&self, host: &str) -> [String; 3] {
        let header = format!("Host: {host}");
        let status = |version| curl_status(&self.gateway, &self.certificates, &[version, "-H", &header], "/");
        let mut client = Http3Client::new(&self.certificates);
        let mut http3 = client.begin_for("localhost", self.address, None);
        http3.run_until("a connection", Http3::is_established);
        [status("--http1.1"), status("--http2"), http3.get_of(host, "/").status.to_string()]
    }
}

#[test]
fn a_guarded_host_is_not_reached_through_its_neighbour() {
    let site = Site::new(&[
        "match: {server_names: [admin.example]}, clients: {allow: [10.0.0.0/8]}, upstream: web",
        "match: {server_names: [secret.example]}, basic_auth: {users: USERS}, upstream: web",
        "match: {server_names: ['*.wild.example']}, rules: [{when: {path: /}, deny: 403}], upstream: web",
        "match: {server_names: [small.example]}, limits: {body: 10}, upstream: web",
        "match: {server_names: [few.example]}, rate_limits: [{rate: 1000/s}], upstream: web",
        "match: {server_names: [routed.example]}, routes: [{path: /, respond: routed}]",
        "match: {server_names: [raw.example]}, mode: tcp, upstream: web",
        "match: {server_names: [same.example]}, upstream: web",
        "match: {server_names: [localhost]}, upstream: web",
    ]);
    for (host, status) in [
        ("localhost", "200"),
        ("admin.example", "421"),
        ("Admin.Example.:8443", "421"),
        ("secret.example", "421"),
        ("a.wild.example", "421"),
        ("a.b.wild.example", "421"),
        ("wild.example", "200"),
        ("small.example", "421"),
        ("few.example", "421"),
        ("routed.example", "421"),
        ("raw.example", "421"),
        ("same.example", "200"),
        ("unknown.example", "200"),
    ] {
        assert_eq!(site.statuses(host), [status; 3], "{host}");
    }
}

/// The listener for all other names has rules as well.
#[test]
fn the_listener_without_names_is_a_neighbour_too() {
    let site = Site::new(&[
        "match: {server_names: [localhost]}, upstream: web",
        "basic_auth: {users: USERS}, upstream: web",
    ]);
    for (host, status) in [("localhost", "200"), ("other.example", "421"), ("127.0.0.1", "421")] {
        assert_eq!(site.statuses(host), [status; 3], "{host}");
    }
    let site = Site::new(&[
        "match: {server_names: [admin.example]}, basic_auth: {users: USERS}, upstream: web",
        "upstream: web",
    ]);
    for (host, status) in [("localhost", "200"), ("other.example", "200"), ("admin.example", "421")] {
        assert_eq!(site.statuses(host), [status; 3], "{host}");
    }
}

/// Envoy selects the routes by the connection, and serves any host that they have.
#[test]
fn envoys_filter_chains_serve_the_hosts_that_their_routes_have() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let chain = |name: &str| {
        CHAIN
            .replace("NAME", name)
            .replace("CHAIN", &pair.chain.display().to_string())
            .replace("KEY", &pair.key.display().to_string())
    };
    let text = LISTENER.replace("CHAINS", &(chain("localhost") + &chain("admin.example")));
    let (gateway, _file) = crate::envoy::serving(&text);
    for version in ["--http1.1", "--http2"] {
        let arguments = [version, "-H", "Host: admin.example"];
        assert_eq!(curl(&gateway, &certificates, &arguments, "/"), "localhost", "{version}");
    }
}

const LISTENER: &str = r#"
admin: { address: { socket_address: { address: 127.0.0.1, port_value: ADMIN } } }
static_resources:
  listeners:
  - name: web
    address: { socket_address: { address: 127.0.0.1, port_value: LISTEN } }
    listener_filters:
    - { name: envoy.filters.listener.tls_inspector, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector } }
    filter_chains:
CHAINS"#;

const CHAIN: &str = r#"    - filter_chain_match: { server_names: [ NAME ] }
      transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context: { alpn_protocols: [ h2, http/1.1 ], tls_certificates: [ { certificate_chain: { filename: CHAIN }, private_key: { filename: KEY } } ] }
      filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          route_config: { virtual_hosts: [ { name: all, domains: [ "*" ], routes: [ { match: { prefix: / }, direct_response: { status: 200, body: { inline_string: NAME } } } ] } ] }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;
