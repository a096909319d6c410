//! The authority of a request, used consistently for routes, upstreams and forwarding headers.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Response, configuration::listener_at, curl, curl_status,
    document, echo_server, listener, ports,
};

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    _file: Configuration,
}

impl Site {
    /// A gateway with these routes, whose upstream `web` echoes the request.
    fn new(routes: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let web = format!("web: {{servers: [\"{}\"]}}", echo_server());
        let file = Configuration::new(&document(&[listener(&pair, &format!("routes: [{routes}]"))], &web));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, _file: file }
    }

    fn send(&self, request: &[u8]) -> Response {
        let mut client =
            Connector::new(&self.certificates).http(self.gateway.address(0)).expect("a connection");
        client.send(request).expect("sending");
        client.response().expect("a response")
    }
}

#[test]
fn no_spelling_of_a_host_walks_around_its_rules() {
    let site = Site::new("{host: localhost, respond: {status: 403, body: no}}, {upstream: web}");
    let requests: [(&[u8], u16); 16] = [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 403),
        (b"GET / HTTP/1.1\r\nHost: localhost.\r\n\r\n", 403),
        (b"GET / HTTP/1.1\r\nHost: localhost.:8443\r\n\r\n", 403),
        (b"GET / HTTP/1.1\r\nHost: LocalHost:\r\n\r\n", 403),
        (b"GET / HTTP/1.0\r\nHost: localhost:1\r\n\r\n", 403),
        (b"GET http://localhost/ HTTP/1.1\r\nHost: other\r\n\r\n", 403),
        (b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n", 400),
        (b"GET / HTTP/1.0\r\nHost: \xff\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: user@localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost:1:2\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost..\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: loc%61lhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost, other\r\n\r\n", 400),
        (b"GET http://user@localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: other\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: other\r\n\r\n", 200),
    ];
    for (request, status) in requests {
        let response = site.send(request);
        assert_eq!(response.status, status, "{}: {}", String::from_utf8_lossy(request), response.text());
    }
}

/// Only routes for every host apply, and the server receives no host either.
#[test]
fn a_request_without_a_host_has_none_upstream() {
    let site = Site::new("{host: localhost, respond: {status: 403, body: no}}, {upstream: web}");
    let response = site.send(b"GET /p HTTP/1.0\r\n\r\n");
    let seen = response.text().to_ascii_lowercase();
    assert!(response.status == 200 && seen.starts_with("get /p http/1.0\r\n"), "{} {seen}", response.status);
    assert!(!seen.contains("host:"), "{seen}");
}

#[test]
fn servers_see_the_authority_that_routes_have_seen() {
    let site = Site::new("{upstream: web}");
    for request in [
        "GET /p?q HTTP/1.1\r\nHost: Other.example.:8443\r\nX-Forwarded-Host: localhost\r\n\r\n",
        "GET https://Other.example:8443/p?q HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ] {
        let seen = site.send(request.as_bytes()).text();
        assert!(seen.starts_with("GET /p?q HTTP/1.1\r\n"), "{seen}");
        for line in ["host: Other.example:8443\r\n", "x-forwarded-host: Other.example:8443\r\n"] {
            assert!(seen.contains(line), "{seen}");
        }
        assert!(!seen.contains("localhost"), "{seen}");
    }
}

#[test]
fn what_a_client_claims_about_itself_reaches_no_server() {
    let site = Site::new("{upstream: web}");
    let claims = [
        "Forwarded: for=claimed",
        "X-Real-IP: claimed",
        "X_Real_IP: claimed",
        "X-Forwarded-Proto: claimed",
        "X-Forwarded-Host: claimed",
        "X-Forwarded-Port: claimed",
        "X-Forwarded-Server: claimed",
        "X_Forwarded_For: claimed",
        "X-Forwarded_For: claimed",
        "X_FORWARDED_PROTO: claimed",
    ];
    for client in ["--http1.1", "--http2"] {
        let mut arguments = vec![client];
        arguments.extend(claims.iter().flat_map(|claim| ["-H", claim]));
        let seen = curl(&site.gateway, &site.certificates, &arguments, "/");
        assert!(!seen.contains("claimed"), "{client}: {seen}");
        for line in ["x-forwarded-for: 127.0.0.1\r\n", "x-forwarded-proto: https\r\n"] {
            assert!(seen.contains(line), "{client}: {seen}");
        }
    }
    // An HTTP/1.0 request without a host has no value that could replace the claimed one.
    let seen = site.send(b"GET / HTTP/1.0\r\nX-Forwarded-Host: claimed\r\n\r\n").text();
    assert!(!seen.contains("claimed"), "{seen}");
}

/// A host that requires client certificates cannot be reached on a connection that was accepted without one (RFC 9110
/// section 15.5.20), regardless of the routes of that connection's chain.
#[test]
fn a_host_of_another_policy_is_asked_for_on_a_connection_of_its_own() {
    let certificates = Certificates::new();
    let pair =
        certificates.ecdsa("P-256", &["localhost", "guarded.example", "strict.example", "like.example"]);
    let chain = |name: &str, keys: &str| {
        listener_at(
            "127.0.0.1:PORT",
            &pair,
            &format!("match: {{server_names: [{name}]}}, respond: {name}{keys}"),
        )
    };
    let ca = certificates.ca();
    let text = document(
        &[
            chain("localhost", ""),
            chain(
                "guarded.example",
                &format!(", tls: {{client_auth: {{mode: required, ca: {}}}}}", ca.display()),
            ),
            chain("strict.example", ", tls: {min: 1.3}"),
            chain("like.example", ""),
            chain("same.example", "").replace("respond: same.example", "respond: localhost"),
        ],
        "",
    );
    let file = Configuration::new(&text.replace("PORT", &ports::free().to_string()));
    let gateway = Gateway::with_config(&file.path(), 1);
    for client in ["--http1.1", "--http2"] {
        for (host, status) in [
            ("localhost", "200"),
            ("guarded.example", "421"),
            ("Guarded.Example.:8443", "421"),
            ("strict.example", "421"),
            ("like.example", "421"),
            ("same.example", "200"),
            ("unknown.example", "200"),
        ] {
            let host = format!("Host: {host}");
            let seen = curl_status(&gateway, &certificates, &[client, "-H", &host], "/");
            assert_eq!(seen, status, "{client} {host}");
        }
        for (host, words) in [
            ("guarded.example", "a separate connection, for which it requests a client certificate."),
            ("strict.example", "a separate connection."),
        ] {
            let host = format!("Host: {host}");
            let text = curl(&gateway, &certificates, &[client, "--no-fail", "-H", &host], "/");
            assert!(text.contains(words), "{client} {host}: {text}");
        }
    }
}
