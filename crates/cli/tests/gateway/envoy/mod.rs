//! Envoy bootstraps, served and requested with curl.

mod admin;
mod arguments;
mod authorization;
mod basic_auth;
mod compressor;
mod connections;
mod differential;
mod envoy_headers;
mod forms;
mod forwarded_certificate;
mod grpc_health;
mod guide;
mod http3;
mod jwt;
mod local_rate_limit;
mod local_reply;
mod more_requests;
mod panic;
mod rate_limit_service;
mod rbac;
mod remote_jwks;
mod request_id;
mod request_limits;
mod statistics;
pub mod stock;
mod tracing;
mod unix_sockets;
mod upstream;

use crate::support::{Certificates, Configuration, Gateway, Pair, serve};

/// A bootstrap with one TLS listener on a free port that responds with `ok`, and an admin address. `common` contains
/// the fields of its `common_tls_context`, without indentation; PATH/ in them becomes the certificate's folder.
pub(super) fn with_common(common: &str, pair: &Pair) -> String {
    let folder = pair.chain.parent().expect("a folder");
    let certificate = pair.chain.file_name().and_then(|name| name.to_str()).expect("a name");
    let key = pair.key.file_name().and_then(|name| name.to_str()).expect("a name");
    let common = common.replace("/path/cert.pem", &format!("/path/{certificate}"));
    let common = common.replace("/path/key.pem", &format!("/path/{key}"));
    let common = common.replace("/path", &folder.display().to_string());
    let indented: String = common.lines().map(|line| format!("            {line}\n")).collect();
    BOOTSTRAP.replace("            COMMON\n", &indented)
}

const BOOTSTRAP: &str = r#"
admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }
static_resources:
  listeners:
  - name: web
    address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
    filter_chains:
    - transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            COMMON
      filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          route_config:
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes: [ { match: { prefix: / }, direct_response: { status: 200, body: { inline_string: ok } } } ]
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

/// Starts a gateway that serves a bootstrap, in which ADMIN and LISTEN are replaced by free ports.
pub fn serving(text: &str) -> (Gateway, Configuration) {
    let file = Configuration::new(&stock::with_ports(text, &[("ADMIN", 0), ("LISTEN", 0)]));
    let mut command = serve();
    command.arg("--envoy-config").arg(file.path());
    (Gateway::start(command, 1), file)
}

/// Returns an RSA-2048 certificate, whose operations the engine computes.
pub(super) fn certificates() -> (Certificates, Pair) {
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["localhost"]);
    (certificates, pair)
}
