//! Tests of supported and refused configuration, and of messages. No connection is served.

mod accepted;
mod basic_auth;
mod closed;
mod clusters;
mod compressor;
mod deploy;
mod ext_authz;
mod forms;
mod istio;
mod jwt;
mod local_rate_limit;
mod local_reply;
mod overload;
mod quic;
mod rate_limit_service;
mod rbac;
mod reference;
mod refused;
mod resources;
mod routes;
mod sidecar;
mod tracing;
mod traffic;
mod upstream_limits;

use crate::{Bootstrap, bootstrap};
use quadrille_config::model::{Chain, Gateway, Listener, Route, Serve, Tls};

/// Returns a bootstrap with one listener that has this TLS context (not indented), and responds `ok`.
pub(crate) fn with_tls(context: &str) -> String {
    format!(
        "
static_resources:
  listeners:
  - name: web
    address: {{ socket_address: {{ address: 127.0.0.1, port_value: 8443 }} }}
    filter_chains:
    - transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
{}
      filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          route_config:
            virtual_hosts:
            - {{ name: all, domains: [\"*\"], routes: [ {{ match: {{ prefix: / }}, direct_response: {{ status: 200, body: {{ inline_string: ok }} }} }} ] }}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{ \"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}
",
        indented(context, 10)
    )
}

/// Returns a context with these fields of `common_tls_context`.
pub(crate) fn with_common(common: &str) -> String {
    with_tls(&format!("common_tls_context:\n{}", indented(common, 2)))
}

/// A certificate in one line.
pub(crate) const CERTIFICATE: &str =
    "tls_certificates: [ { certificate_chain: { filename: /c.pem }, private_key: { filename: /k.pem } } ]";

/// Returns a plaintext listener with these routes of one virtual host, a list.
pub(crate) fn with_routes(routes: &str) -> String {
    with_route_config(&format!(
        "virtual_hosts:\n- name: all\n  domains: [\"*\"]\n  routes:\n{}",
        indented(routes, 2)
    ))
}

/// Returns a plaintext listener with this route configuration.
pub(crate) fn with_route_config(config: &str) -> String {
    format!(
        "
static_resources:
  listeners:
  - name: web
    address: {{ socket_address: {{ address: 127.0.0.1, port_value: 8080 }} }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          route_config:
{}
",
        indented(config, 12)
    )
}

/// Returns an RBAC filter with these rules for the end of a connection manager, and the router.
pub(crate) fn http_rbac(rules: &str) -> String {
    format!(
        "          http_filters:
          - name: envoy.filters.http.rbac
            typed_config:
              \"@type\": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC
              rules:
{}
          - name: envoy.filters.http.router
            typed_config: {{ \"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}
",
        indented(rules, 16)
    )
}

pub(crate) fn indented(text: &str, by: usize) -> String {
    let pad = " ".repeat(by);
    text.lines().map(|line| format!("{pad}{line}")).collect::<Vec<_>>().join("\n")
}

pub(crate) fn read(text: &str) -> Bootstrap {
    bootstrap(text, "e.yaml").unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

pub(crate) fn gateway(text: &str) -> Gateway {
    read(text).model().unwrap_or_else(|problems| panic!("{problems:?}\n{text}")).0
}

/// Returns the errors of a configuration, one per line.
pub(crate) fn problems(text: &str) -> String {
    match bootstrap(text, "e.yaml") {
        Err(errors) => errors.to_string(),
        Ok(bootstrap) => match bootstrap.model() {
            Err(problems) => problems.to_string(),
            Ok(_) => panic!("no error in\n{text}"),
        },
    }
}

pub(crate) fn warnings(text: &str) -> Vec<String> {
    read(text).model().unwrap_or_else(|problems| panic!("{problems:?}\n{text}")).1.lines()
}

pub(crate) fn only_listener(gateway: &Gateway) -> &Listener {
    let [listener] = gateway.listeners.as_slice() else { panic!("{:?}", gateway.listeners) };
    listener
}

pub(crate) fn only_chain(gateway: &Gateway) -> &Chain {
    let [chain] = only_listener(gateway).chains.as_slice() else { panic!("not one chain") };
    chain
}

pub(crate) fn tls(gateway: &Gateway) -> &Tls {
    only_chain(gateway).tls.as_deref().expect("TLS")
}

/// Returns the routes of the only virtual host.
pub(crate) fn routes(gateway: &Gateway) -> &[Route] {
    let Serve::Http(http) = &only_chain(gateway).serve else { panic!("no HTTP") };
    let [host] = http.routes.hosts.as_slice() else { panic!("not one host") };
    &host.routes
}
