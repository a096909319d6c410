//! The PROXY protocol: accepted from a load balancer in front, sent to upstreams.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Nginx, curl, curl_status, document, eventually,
    listener, output,
};
use std::{
    io::{Read, Write},
    net::Ipv4Addr,
    process::Command,
};

/// Starts nginx that accepts only connections with a PROXY header, and reports its contents.
fn announced() -> Nginx {
    Nginx::listening(
        "proxy_protocol",
        "return 200 \"$proxy_protocol_addr $proxy_protocol_server_port $http_x_forwarded_for\";",
    )
}

fn before(
    certificates: &Certificates,
    nginx: &Nginx,
    listener_keys: &str,
    keys: &str,
) -> (Gateway, Configuration) {
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstreams = format!("web: {{servers: [\"{}\"], {keys}}}", nginx.address());
    let listener_keys = format!("upstream: web, {listener_keys}");
    let file = Configuration::new(&document(&[listener(&pair, &listener_keys)], &upstreams));
    (Gateway::with_config(&file.path(), 1), file)
}

/// Returns a v2 header for a TCP connection over IPv4; `command` is 1 for PROXY and 0 for LOCAL.
fn v2(command: u8, client: Ipv4Addr) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend([0x20 | command, 0x11, 0, 12]);
    header.extend(client.octets());
    header.extend([192, 0, 2, 1]);
    header.extend(4711_u16.to_be_bytes());
    header.extend(443_u16.to_be_bytes());
    header
}

#[test]
fn servers_learn_the_client_from_a_header() {
    let certificates = Certificates::new();
    let nginx = announced();
    for form in ["v1", "v2"] {
        let keys = format!("proxy_protocol: {form}");
        let (gateway, _file) = before(&certificates, &nginx, "mode: http", &keys);
        let port = gateway.port();
        for client in ["--http1.1", "--http2"] {
            // Sequential clients, so that a connection would be shared if that were allowed.
            for address in ["127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.3"] {
                let seen = curl(&gateway, &certificates, &[client, "--interface", address], "/");
                assert_eq!(seen, format!("{address} {port} {address}"), "{form} {client}");
            }
        }
        let (gateway, _file) = before(&certificates, &nginx, "mode: tcp", &keys);
        let port = gateway.port();
        let seen = curl(&gateway, &certificates, &["--interface", "127.0.0.2"], "/");
        assert_eq!(seen, format!("127.0.0.2 {port} "), "{form} tcp");
    }
}

#[test]
fn health_checks_of_such_servers_begin_with_a_header_too() {
    let certificates = Certificates::new();
    for form in ["v1", "v2"] {
        let log = certificates.path(&format!("{form}.log"));
        let directives = format!("access_log {} counted; location / {{ return 200 ok; }}", log.display());
        let nginx = Nginx::listening("proxy_protocol", &directives);
        let keys = format!(
            "proxy_protocol: {form}, health: {{path: /, interval: 50ms, timeout: 300s, unhealthy: 1}}"
        );
        let (gateway, _file) = before(&certificates, &nginx, "mode: http", &keys);
        // A check without a header is not logged. The result of the first one is known when the second arrives.
        let checks = || std::fs::read_to_string(&log).unwrap_or_default().lines().count();
        eventually("no checks", || checks() >= 2);
        assert_eq!(curl_status(&gateway, &certificates, &[], "/"), "200", "{form}\n{}", gateway.log());
    }
}

#[test]
fn a_balancer_in_front_announces_clients() {
    let certificates = Certificates::new();
    let nginx = Nginx::new("return 200 $http_x_forwarded_for;");
    let (gateway, _file) = before(&certificates, &nginx, "proxy_protocol: required", "retries: 1");
    for client in ["--http1.1", "--http2"] {
        assert_eq!(curl(&gateway, &certificates, &[client, "--haproxy-protocol"], "/"), "127.0.0.1");
    }
    let connector = Connector::new(&certificates);
    let client = Ipv4Addr::new(198, 51, 100, 7);
    let v1_long = "PROXY TCP6 2001:db8::7 2001:db8::1 65535 443\r\n";
    for (header, seen) in [
        (v2(1, client), "198.51.100.7"),
        (v2(0, client), "127.0.0.1"),
        (b"PROXY TCP4 198.51.100.8 192.0.2.1 4711 443\r\n".to_vec(), "198.51.100.8"),
        (v1_long.into(), "2001:db8::7"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
    ] {
        let tls = connector.tls_after(gateway.address(0), &header);
        let mut tls = tls.unwrap_or_else(|error| panic!("{header:?}: {error}"));
        tls.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sending");
        let mut answer = String::new();
        let _ = tls.read_to_string(&mut answer);
        assert!(answer.ends_with(&format!("\r\n\r\n{seen}")), "{header:?}: {answer}");
    }
}

#[test]
fn clients_without_a_proxy_header_are_rejected() {
    let certificates = Certificates::new();
    let nginx = Nginx::new("return 200 $http_x_forwarded_for;");
    let (gateway, _file) = before(&certificates, &nginx, "proxy_protocol: required", "retries: 1");
    let connector = Connector::new(&certificates);
    let refused = || gateway.metric("quadrille_handshake_failures_total", &["reason=\"proxy_header\""]);
    assert!(connector.tls(gateway.address(0)).is_err());
    eventually("the refusal is not counted", || refused() >= 1.0);
    for garbage in
        [&b"PROXY TCP4 nonsense\r\n"[..], b"PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n", b"GET / HTTP/1.1\r\n\r\n"]
    {
        assert!(connector.tls_after(gateway.address(0), garbage).is_err());
    }
    eventually("the refusals are not counted", || refused() >= 4.0);
    // Conversely, an unexpected header is not TLS.
    let (gateway, _file) = before(&certificates, &nginx, "proxy_protocol: off", "retries: 1");
    let url = format!("https://localhost:{}/", gateway.port());
    let (ok, _) = output(Command::new("curl").args(["-sk", "--max-time", "600", "--haproxy-protocol", &url]));
    assert!(!ok);
}
