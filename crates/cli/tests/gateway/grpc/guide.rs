//! The guide's configuration with gRPC's own client.

use super::interop::{Server, pass};
use crate::support::{Certificates, Configuration, Gateway, configuration_of, curl, eventually};

const PAGE: &str = include_str!("../../../../../docs/guide/grpc.md");

#[test]
fn the_guides_configuration_serves_grpc() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let (Some(mut first), Some(second)) = (Server::start(None), Server::start(None)) else { return };
    let text = configuration_of(
        PAGE,
        &[
            ("\"[::]:443\"", "\"127.0.0.1:0\""),
            ("chain: chain.pem", &format!("chain: {}", pair.chain.display())),
            ("key: key.pem", &format!("key: {}", pair.key.display())),
            ("10.0.0.1:50051", &first.address.to_string()),
            ("10.0.0.2:50051", &second.address.to_string()),
            ("interval: 2s", "interval: 50ms, timeout: 10s, unhealthy: 1"),
        ],
    );
    let file = Configuration::new(&format!("admin: 127.0.0.1:0\n{text}"));
    let gateway = Gateway::with_config(&file.path(), 1);
    pass(
        &gateway,
        &certificates,
        &["empty_unary", "large_unary", "client_streaming", "ping_pong", "deadline"],
    );
    assert_eq!(curl(&gateway, &certificates, &["--no-fail"], "/other.Service/Call"), "no such service");
    first.set("", "NOT_SERVING");
    let up = format!("server=\"{}\"", first.address);
    eventually("it is healthy", || gateway.metric("quadrille_upstream_server_up", &[&up]) == 0.0);
    pass(&gateway, &certificates, &["empty_unary", "custom_metadata", "status_and_message"]);
}
