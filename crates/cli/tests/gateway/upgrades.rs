//! Protocols other than WebSocket that requests switch to: `kubectl exec`, `docker attach` and the like.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Uninterrupted, accept_blocking, document,
    frames::{DATA, Frames, HEADERS},
    listener, output, quadrille,
};
use boring::ssl::SslStream;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
};

/// Starts a server that switches to the offered protocol, and then returns the request, in lower case, and echoes. It
/// responds with 200 and the request to a request without an offer.
fn switching_server() -> SocketAddr {
    accept_blocking(serve)
}

fn serve(tcp: TcpStream) -> Option<()> {
    let mut writer = tcp.try_clone().ok()?;
    let mut reader = BufReader::new(tcp);
    loop {
        let mut seen = String::new();
        while !seen.ends_with("\r\n\r\n") {
            if reader.read_line(&mut seen).ok()? == 0 {
                return None;
            }
        }
        let lower = seen.to_ascii_lowercase();
        let field = |name: &str| {
            lower.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
        };
        let mut body = vec![0; field("content-length").map_or(0, |length| length.parse().expect("digits"))];
        reader.read_exact(&mut body).ok()?;
        let told = lower.trim_end().replace("\r\n", "|") + "|#" + &String::from_utf8_lossy(&body);
        let Some(protocol) = field("upgrade") else {
            let length = told.len();
            write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{told}").ok()?;
            continue;
        };
        let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nContent-Length: 5\r\n";
        write!(writer, "{head}Upgrade: {protocol}\r\n\r\n{told}\n").ok()?;
        let mut bytes = [0; 1024];
        loop {
            match reader.read(&mut bytes).ok()? {
                0 => return Some(()),
                count => writer.write_all(&bytes[..count]).ok()?,
            }
        }
    }
}

fn gateway(keys: &str) -> (Certificates, Gateway, Configuration) {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstreams = format!("web: {{servers: ['{}']}}", switching_server());
    let file = Configuration::new(&document(&[listener(&pair, keys)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    (certificates, gateway, file)
}

/// Sends a request; returns the connection, the status line and the fields of the response.
fn send(
    certificates: &Certificates,
    gateway: &Gateway,
    request: &str,
) -> (BufReader<SslStream<Uninterrupted>>, String) {
    let mut tls = Connector::new(certificates).tls(gateway.address(0)).expect("a TLS connection");
    tls.write_all(request.as_bytes()).expect("sending");
    let mut reader = BufReader::new(tls);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).expect("a line"), 0, "{head}");
    }
    (reader, head.to_ascii_lowercase())
}

/// Checks that the connection is a tunnel: the request that the server saw, and an echo.
fn tunnel(mut reader: BufReader<SslStream<Uninterrupted>>) -> String {
    let mut told = String::new();
    reader.read_line(&mut told).expect("a line");
    for round in 0..3 {
        let text = format!("frame {round}\n");
        reader.get_mut().write_all(text.as_bytes()).expect("sending");
        let mut echo = String::new();
        reader.read_line(&mut echo).expect("an echo");
        assert_eq!(echo, text);
    }
    told
}

#[test]
fn configured_protocols_pass() {
    let (certificates, gateway, _file) = gateway("upstream: web, upgrades: [websocket, SPDY/3.1, tcp]");
    for (method, upgrade, body) in
        [("POST", "SPDY/3.1", ""), ("POST", "tcp", "{\"Detach\":false}"), ("GET", "unknown, spdy/3.1", "")]
    {
        let length = body.len();
        let request = format!(
            "{method} /exec HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        let (reader, head) = send(&certificates, &gateway, &request);
        let chosen = upgrade.rsplit(' ').next().expect("a protocol").to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 101 "), "{upgrade}: {head}");
        assert!(
            head.contains(&format!("upgrade: {chosen}\r\n")) && !head.contains("content-length"),
            "{head}"
        );
        let told = tunnel(reader);
        assert!(told.starts_with(&format!("{} /exec", method.to_ascii_lowercase())), "{told}");
        assert!(told.contains(&format!("|upgrade: {chosen}|")), "{told}");
        assert!(told.ends_with(&format!("#{body}\n")), "{told}");
    }
}

#[test]
fn other_protocols_are_requests_without_an_upgrade() {
    for keys in ["upstream: web", "upstream: web, upgrades: [websocket]", "upstream: web, upgrades: off"] {
        let (certificates, gateway, _file) = gateway(keys);
        let request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: spdy/3.1\r\n\r\n";
        let (_, head) = send(&certificates, &gateway, request);
        assert!(head.starts_with("http/1.1 200 ") && !head.contains("upgrade"), "{keys}: {head}");
    }
}

#[test]
fn a_route_replaces_the_protocols_of_its_listener() {
    let (certificates, gateway, _file) = gateway(
        "upgrades: [spdy/3.1], routes: [{upstream: web}, {path: /b, upstream: web, upgrades: [tcp]}]",
    );
    for (path, upgrade, status) in [
        ("/", "spdy/3.1", 101),
        ("/", "tcp", 200),
        ("/b", "spdy/3.1", 200),
        ("/b", "tcp", 101),
        ("/", "websocket", 403),
    ] {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\r\n"
        );
        let (_, head) = send(&certificates, &gateway, &request);
        assert!(head.starts_with(&format!("http/1.1 {status} ")), "{path} {upgrade}: {head}");
    }
}

#[test]
fn protocols_pass_over_http2() {
    let (certificates, gateway, _file) =
        gateway("upstream: web, upgrades: [spdy/3.1], routes: [{path: /a, respond: a}]");
    let mut frames = Frames::connect(&Connector::new(&certificates), gateway.address(0), 65_535);
    frames.connect_protocol(1, "/exec", "spdy/3.1");
    assert_eq!(frames.expect(HEADERS).payload.first(), Some(&0x88), ":status 200");
    // A line may arrive in several frames.
    let line = |frames: &mut Frames| {
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            line.extend(frames.expect(DATA).payload);
        }
        String::from_utf8(line).expect("text")
    };
    let told = line(&mut frames);
    assert!(told.starts_with("get /exec") && told.contains("|upgrade: spdy/3.1|"), "{told}");
    frames.send(DATA, 0, 1, b"frame\n");
    assert_eq!(line(&mut frames), "frame\n");
    for (stream, path, protocol) in [(3, "/exec", "tcp"), (5, "/a", "spdy/3.1")] {
        frames.connect_protocol(stream, path, protocol);
        assert_ne!(frames.expect(HEADERS).payload.first(), Some(&0x88), "{path} {protocol}: no tunnel");
    }
}

#[test]
fn protocols_that_carry_http_are_refused() {
    for protocol in ["h2c", "HTTP/2.0", "TLS/1.2", "connect-udp", "a b", "/1"] {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let keys = format!("respond: ok, upgrades: ['{protocol}']");
        let file = Configuration::new(&document(&[listener(&pair, &keys)], ""));
        let (good, said) = output(quadrille("check").arg(file.path()));
        assert!(!good && said.contains("upgrades[0]"), "{protocol}: {said}");
    }
}
