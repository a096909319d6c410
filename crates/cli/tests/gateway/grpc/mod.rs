//! gRPC through the gateway, with gRPC's own client and server.

mod guide;
mod health;
mod interop;

use crate::support::{Certificates, Configuration, Gateway, curl, document, listener};
pub(crate) use interop::{Server, pass};

/// Starts a gateway in front of these servers, with these keys of the upstream and of the listener.
fn before(
    certificates: &Certificates,
    servers: &[&Server],
    upstream: &str,
    keys: &str,
) -> (Gateway, Configuration) {
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let servers: Vec<_> = servers.iter().map(|server| format!("\"{}\"", server.address)).collect();
    let upstreams = format!("app: {{servers: [{}], {upstream}}}", servers.join(", "));
    let keys = if keys.is_empty() { "upstream: app" } else { keys };
    let file = Configuration::new(&document(&[listener(&pair, keys)], &upstreams));
    (Gateway::with_config(&file.path(), 1), file)
}

/// gRPC's interoperability tests (doc/interop-test-descriptions.md), with plain text and with TLS towards servers.
const CASES: [&str; 12] = [
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "deadline",
    "cancel_after_begin",
    "cancel_after_first",
    "custom_metadata",
    "status_and_message",
    "special_message",
];

/// Local errors of the gateway have a gRPC status, and are counted by it.
#[test]
fn clients_read_of_errors_in_their_own_terms() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let keys = "routes: [{path: /gone.Service, upstream: gone}, {path: /few.Service, respond: ok, rate_limits: [{rate: 1/h}]}]";
    let upstreams =
        format!("gone: {{servers: [\"127.0.0.1:{}\"], protocol: http2}}", crate::support::ports::free());
    let file = Configuration::new(&document(&[listener(&pair, keys)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    let call = |path: &str| {
        let headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"];
        let arguments = [&["--http2", "--no-fail", "--include", "--request", "POST"], &headers[..]].concat();
        curl(&gateway, &certificates, &arguments, path).to_lowercase()
    };
    let few = call("/few.Service/Call");
    assert!(few.starts_with("http/2 200") && !few.contains("grpc-status"), "{few}");
    for (path, status, message) in [
        ("/gone.Service/Call", 14, "the server cannot be reached, or closed the connection."),
        ("/other.Service/Call", 12, "no route for this host and path."),
        ("/few.Service/Call", 14, "too many requests"),
    ] {
        let answer = call(path);
        assert!(answer.starts_with("http/2 200"), "{path}: {answer}");
        assert!(answer.contains(&format!("grpc-status: {status}\r\n")), "{path}: {answer}");
        assert!(answer.contains(&format!("grpc-message: {message}\r\n")), "{path}: {answer}");
        assert!(answer.contains("content-type: application/grpc\r\n"), "{path}: {answer}");
    }
    assert!(call("/few.Service/Call").contains("retry-after: "));
    assert_eq!(gateway.metric("quadrille_requests_total", &["status=\"5xx\""]), 1.0);
}

#[test]
fn the_interoperability_tests_pass() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let (Some(plain), Some(secure)) = (Server::start(None), Server::start(Some(&pair))) else { return };
    let tls = format!("tls: {{server_name: localhost, ca: {}}}", certificates.ca().display());
    for (server, keys) in [(&plain, "protocol: http2".to_owned()), (&secure, tls)] {
        let (gateway, _file) = before(&certificates, &[server], &keys, "");
        pass(&gateway, &certificates, &CASES);
    }
}
