//! gRPC health checks of a server that changes to `NOT_SERVING` and back.

use super::{before, interop::Server};
use crate::support::{
    Certificates, Configuration, Gateway, document, eventually, listener, output, quadrille,
};

fn is_healthy(gateway: &Gateway, server: &Server) -> bool {
    let server = format!("server=\"{}\"", server.address);
    gateway.metric("quadrille_upstream_server_up", &[&server]) == 1.0
}

const CHECKS: &str = "interval: 50ms, timeout: 10s, unhealthy: 1";

#[test]
fn a_server_is_healthy_while_it_says_that_it_serves() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let (Some(plain), Some(secure)) = (Server::start(None), Server::start(Some(&pair))) else { return };
    let tls = format!("tls: {{server_name: localhost, ca: {}}}", certificates.ca().display());
    for (mut server, way) in [(plain, "protocol: http2".to_owned()), (secure, tls)] {
        let (mut gateway, _file) =
            before(&certificates, &[&server], &format!("{way}, health: {{grpc: on, {CHECKS}}}"), "");
        assert!(is_healthy(&gateway, &server));
        server.set("", "NOT_SERVING");
        eventually("it is healthy", || !is_healthy(&gateway, &server));
        gateway.wait_for_log("NOT_SERVING");
        server.set("", "SERVING");
        eventually("it is not healthy again", || is_healthy(&gateway, &server));
    }
}

#[test]
fn a_service_is_asked_for_by_its_name() {
    let certificates = Certificates::new();
    let Some(mut server) = Server::start(None) else { return };
    let keys = format!("protocol: http2, health: {{grpc: my.Service, {CHECKS}}}");
    let (mut gateway, _file) = before(&certificates, &[&server], &keys, "");
    eventually("the server with an unknown service stays healthy", || !is_healthy(&gateway, &server));
    gateway.wait_for_log("unknown service (NOT_FOUND)");
    server.set("my.Service", "SERVING");
    eventually("it is not healthy", || is_healthy(&gateway, &server));
}

/// The default protocol in plain text is HTTP/1.1.
#[test]
fn a_check_needs_http2() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let text = document(
        &[listener(&pair, "upstream: app")],
        "app: {servers: [\"127.0.0.1:1\"], health: {grpc: on}}",
    );
    let file = Configuration::new(&text);
    let (good, said) = output(quadrille("check").arg(file.path()));
    assert!(!good && said.contains("gRPC needs HTTP/2"), "{said}");
    assert!(said.contains("add `protocol: http2` to the upstream"), "{said}");
}
