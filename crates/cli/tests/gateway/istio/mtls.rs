//! Workloads of a mesh that accept only mutual TLS.

use super::{Mesh, backend, mesh::GATEWAY, shop};
use crate::support::{Configuration, Gateway, ports, serve};

const WORKLOAD: &str = "spiffe://cluster.local/ns/default/sa/backend";

/// A workload of the mesh: another gateway that requires the gateway's certificate, and responds with `workload` to
/// clients with the ALPN of Istio's proxies.
fn workload(mesh: &Mesh, client: &str) -> (Gateway, Configuration) {
    mesh.identity("workload", WORKLOAD);
    let text = WORKLOAD_BOOTSTRAP
        .replace("ROOT", &mesh.root().display().to_string())
        .replace("CHAIN", &mesh.path("workload/cert-chain.pem").display().to_string())
        .replace("KEY", &mesh.path("workload/key.pem").display().to_string())
        .replace("CLIENT", client);
    let file = Configuration::new(&text);
    let mut command = serve();
    command.arg("--envoy-config").arg(file.path());
    (Gateway::start(command, 1), file)
}

const WORKLOAD_BOOTSTRAP: &str = r#"
static_resources:
  listeners:
  - name: workload
    address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
    filter_chains:
    - filter_chain_match: { application_protocols: [ istio-http/1.1 ] }
      transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          require_client_certificate: true
          common_tls_context:
            alpn_protocols: [ h2, http/1.1 ]
            tls_certificates: { certificate_chain: { filename: CHAIN }, private_key: { filename: KEY } }
            validation_context:
              trusted_ca: { filename: ROOT }
              match_typed_subject_alt_names: [ { san_type: URI, matcher: { exact: "CLIENT" } } ]
      filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: workload
          route_config:
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes: [ { match: { prefix: / }, direct_response: { status: 200, body: { inline_string: workload } } } ]
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

/// Returns the backend as a workload with mutual TLS, whose certificate must have this name.
fn meshed(port: u16, name: &str) -> String {
    let endpoints = format!(
        "[ {{ address: 127.0.0.1, ports: {{ http: {port} }}, labels: {{ security.istio.io/tlsMode: istio }} }} ]"
    );
    backend(&endpoints, &format!("  subjectAltNames: [ \"{name}\" ]\n"))
}

#[test]
fn a_workload_that_speaks_mutual_tls_is_reached() {
    let port = ports::free();
    let Some(mut mesh) = Mesh::start("{}", &[("shop", &shop(port))]) else { return };
    let (workload, _file) = workload(&mesh, GATEWAY);
    mesh.configure("backend", &meshed(workload.port(), WORKLOAD));
    mesh.secret("shop-cert", "shop.example.com");
    mesh.start_gateway();
    mesh.await_answer("shop-cert", "shop.example.com", port, "/", "workload 200");
    assert_eq!(mesh.refused(), Vec::<String>::new());
    // Another identity of the same CA is not the workload.
    mesh.configure("backend", &meshed(workload.port(), "spiffe://cluster.local/ns/default/sa/other"));
    mesh.await_or_show("agent.log", || {
        mesh.get("shop-cert", "shop.example.com", port, "/").ends_with(" 503")
    });
    // The agent forwards the gateway's log with a delay.
    mesh.await_or_show("agent.log", || {
        mesh.log("agent.log").contains("none of the required subjectAltNames")
    });
    mesh.configure("backend", &meshed(workload.port(), WORKLOAD));
    mesh.await_answer("shop-cert", "shop.example.com", port, "/", "workload 200");
}

#[test]
fn a_workload_that_rejects_the_gateway_is_not_reached() {
    let port = ports::free();
    let Some(mut mesh) = Mesh::start("{}", &[("shop", &shop(port))]) else { return };
    let (workload, _file) = workload(&mesh, "spiffe://cluster.local/ns/default/sa/other");
    mesh.configure("backend", &meshed(workload.port(), WORKLOAD));
    mesh.secret("shop-cert", "shop.example.com");
    mesh.start_gateway();
    mesh.await_or_show("agent.log", || {
        mesh.get("shop-cert", "shop.example.com", port, "/").ends_with(" 503")
    });
}
