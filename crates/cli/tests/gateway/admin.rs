//! Limits of the admin address: hosts, connections, sizes and times.

use crate::support::{Certificates, Configuration, Gateway, PATIENCE, Pair, document, listener, output};
use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    process::Command,
    time::Duration,
};

/// Maximum number of concurrent connections of the admin address.
const PLACES: usize = 64;

fn gateway(pair: &Pair) -> Gateway {
    Gateway::with_flags(pair, &["--respond", "ok"])
}

fn address(gateway: &Gateway) -> SocketAddr {
    let url = gateway.admin("");
    url.trim_start_matches("http://").parse().expect("an address")
}

/// Returns the status of `/ready` requested with this host.
fn status(gateway: &Gateway, host: &str) -> String {
    let (_, text) = output(
        Command::new("curl")
            .args(["-sS", "--max-time", "600", "--output", "/dev/null", "--write-out", "%{http_code}"])
            .args(["--header", &format!("Host: {host}"), &gateway.admin("/ready")]),
    );
    text
}

#[test]
fn a_name_that_is_not_its_own_is_misdirected() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let document = document(&[listener(&pair, "respond: ok")], "");
    let named = document.replace(
        "admin: 127.0.0.1:0",
        "admin: {address: 127.0.0.1:0, hosts: [gateway.example, '*.internal']}",
    );
    assert_ne!(document, named);
    let file = Configuration::new(&named);
    let gateway = Gateway::with_config(&file.path(), 1);
    for host in ["127.0.0.1:1", "[::1]:1", "192.0.2.1", "localhost:1", "gateway.example", "a.b.internal"] {
        assert_eq!(status(&gateway, host), "200", "{host}");
    }
    for host in ["rebound.example", "localhost.example", "127.0.0.1.example", "internal", "a@b.example"] {
        assert_eq!(status(&gateway, host), "421", "{host}");
    }
}

/// Opens a connection and requests a page; returns the connection and the response within this time.
fn ask(gateway: &Gateway, limit: Duration) -> (TcpStream, Option<String>) {
    let mut tcp = TcpStream::connect(address(gateway)).expect("a connection");
    tcp.set_read_timeout(Some(limit)).expect("a limit");
    tcp.write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("a request");
    let mut answer = [0; 4096];
    match tcp.read(&mut answer) {
        Ok(count) => (tcp, Some(String::from_utf8_lossy(&answer[..count]).into_owned())),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => (tcp, None),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn connections_are_bounded_and_the_oldest_idle_one_is_closed_for_another() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates.ecdsa("P-256", &["localhost"]));
    let mut held: Vec<_> = (0..=PLACES).map(|_| ask(&gateway, PATIENCE)).collect();
    assert!(held.iter().all(|(_, answer)| answer.as_ref().is_some_and(|answer| answer.contains("ready"))));
    let mut room = [0; 4096];
    let closed = held[0].0.read(&mut room);
    assert!(matches!(closed, Ok(0) | Err(_)), "one connection above the limit: {closed:?}");
    held[1].0.write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("a request");
    let count = held[1].0.read(&mut room).expect("a response on a connection within the limit");
    assert!(String::from_utf8_lossy(&room[..count]).contains("ready"));
}

#[test]
fn a_header_is_bounded_and_a_body_is_not_read() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates.ecdsa("P-256", &["localhost"]));
    let long = format!("X: {}", "a".repeat(20_000));
    let head = ["-sS", "--max-time", "600", "--output", "/dev/null", "--write-out", "%{http_code}"];
    let (_, text) = output(Command::new("curl").args(head).args(["-H", &long, &gateway.admin("/ready")]));
    assert_eq!(text, "431");
    let mut tcp = TcpStream::connect(address(&gateway)).expect("a connection");
    let asked = "POST /ready HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\n";
    tcp.write_all(asked.as_bytes()).expect("a request");
    tcp.set_read_timeout(Some(PATIENCE)).expect("a limit");
    // The connection is closed after the response, without reading the rest.
    let mut answer = Vec::new();
    match tcp.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "{}", String::from_utf8_lossy(&answer));
}
