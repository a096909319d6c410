//! Forwarding headers are accepted only from proxies in the listener's `trusted_proxies`.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, curl, document, echo_server, eventually, listener,
};
use socket2::{Domain, Socket, Type};
use std::{
    fs,
    io::Write,
    net::{SocketAddr, TcpStream},
    path::PathBuf,
};

const TRUSTED: &str = "127.0.1.5";
const OTHER: &str = "127.0.2.5";

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    file: Configuration,
}

impl Site {
    /// Starts a gateway with these listener keys in front of an upstream that echoes requests.
    fn new(keys: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let web = format!("web: {{servers: [\"{}\"]}}", echo_server());
        let keys = format!(
            "routes: [{{path: /logged, respond: hi}}, {{upstream: web}}], {keys}, \
             trusted_proxies: [127.0.1.0/24, \"2001:db8::/32\"]"
        );
        let file = Configuration::new("");
        let log = file.path().with_file_name("access.log");
        let text = document(&[listener(&pair, &keys)], &web);
        file.replace(&format!("{text}access_log: {}\n", log.display()));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, file }
    }

    fn log(&self) -> PathBuf {
        self.file.path().with_file_name("access.log")
    }

    /// Returns the request that the server receives for these headers from this address.
    fn seen(&self, client: &str, from: &str, headers: &[&str]) -> String {
        let mut arguments = vec![client, "--interface", from];
        arguments.extend(headers.iter().flat_map(|header| ["-H", header]));
        curl(&self.gateway, &self.certificates, &arguments, "/").to_ascii_lowercase()
    }
}

/// Returns the values of a header in a received request.
fn values<'a>(seen: &'a str, name: &str) -> Vec<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(": ");
    seen.lines().filter_map(value).collect()
}

const CLAIMS: [&str; 6] = [
    "X-Forwarded-For: 192.0.2.1, 198.51.100.1",
    "X-Forwarded-Proto: http",
    "X-Forwarded-Host: claimed.example",
    "X-Forwarded-Port: 80",
    "X-Real-IP: 192.0.2.1",
    "Forwarded: for=192.0.2.1",
];

#[test]
fn headers_of_untrusted_clients_are_replaced() {
    let site = Site::new("paths: {}");
    for client in ["--http1.1", "--http2"] {
        let seen = site.seen(client, OTHER, &CLAIMS);
        assert_eq!(values(&seen, "x-forwarded-for"), [OTHER], "{seen}");
        assert_eq!(values(&seen, "x-forwarded-proto"), ["https"], "{seen}");
        assert!(
            !["192.0.2", "198.51", "claimed", "\nforwarded:"].iter().any(|claim| seen.contains(claim)),
            "{seen}"
        );
    }
}

#[test]
fn what_a_trusted_proxy_says_goes_on_and_is_appended_to() {
    let site = Site::new("paths: {}");
    for client in ["--http1.1", "--http2"] {
        let seen = site.seen(client, TRUSTED, &CLAIMS);
        assert_eq!(values(&seen, "x-forwarded-for"), ["192.0.2.1, 198.51.100.1, 127.0.1.5"], "{seen}");
        assert_eq!(values(&seen, "x-forwarded-proto"), ["http"], "{seen}");
        assert_eq!(values(&seen, "x-forwarded-host"), ["claimed.example"], "{seen}");
        assert_eq!(values(&seen, "x-forwarded-port"), ["80"], "{seen}");
        assert_eq!(values(&seen, "x-real-ip"), ["192.0.2.1"], "{seen}");
        let host = format!("localhost:{}", site.gateway.port());
        let hop = format!("for=127.0.1.5;host=\"{host}\";proto=https");
        assert_eq!(values(&seen, "forwarded"), ["for=192.0.2.1", &hop], "{seen}");
        // Missing values are the gateway's own, and spellings that servers may convert from `_` to `-` are removed.
        let seen =
            site.seen(client, TRUSTED, &["X_Forwarded_For: 192.0.2.1", "X-Forwarded-Client-Cert: claimed"]);
        assert_eq!(values(&seen, "x-forwarded-for"), [TRUSTED], "{seen}");
        assert_eq!(values(&seen, "x-forwarded-host"), [&host], "{seen}");
        assert!(
            !seen.contains("192.0.2.1") && !seen.contains("claimed") && !seen.contains("\nforwarded:"),
            "{seen}"
        );
    }
}

/// Each line of the log belongs to the request at the same position: the last address that is not a trusted proxy's.
#[test]
fn the_log_contains_the_client_reported_by_trusted_proxies() {
    let site = Site::new("paths: {}");
    let requests: [(&str, &[&str], &str); 7] = [
        (TRUSTED, &["X-Forwarded-For: 192.0.2.1, 198.51.100.1"], "198.51.100.1:0"),
        (TRUSTED, &["X-Forwarded-For: 192.0.2.1, 198.51.100.1:5, 127.0.1.9, 2001:db8::9"], "198.51.100.1:5"),
        (TRUSTED, &["X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 127.0.1.9"], "192.0.2.1:0"),
        (TRUSTED, &["X-Forwarded-For: 192.0.2.1, garbage, 127.0.1.9"], "127.0.1.9:0"),
        (TRUSTED, &["X-Forwarded-For: 192.0.2.1, ' OR 1=1"], "127.0.1.5:"),
        (TRUSTED, &[], "127.0.1.5:"),
        (OTHER, &["X-Forwarded-For: 192.0.2.1"], "127.0.2.5:"),
    ];
    let mut expected = Vec::new();
    for (from, headers, client) in requests {
        for version in ["--http1.1", "--http2"] {
            let mut arguments = vec![version, "--interface", from];
            arguments.extend(headers.iter().flat_map(|header| ["-H", header]));
            assert_eq!(curl(&site.gateway, &site.certificates, &arguments, "/logged"), "hi");
            expected.push(client);
            let lines = || fs::read_to_string(site.log()).unwrap_or_default();
            eventually("the request is not logged", || lines().lines().count() == expected.len());
            let lines = lines();
            let line = lines.lines().last().expect("a line");
            assert!(line.contains(&format!("client={client}")), "{from} {headers:?}: {line}");
        }
    }
}

/// Any peer may send PROXY headers without the list, as tested by `clients_without_a_proxy_header_are_rejected`.
#[test]
fn only_trusted_proxies_announce_clients() {
    let site = Site::new("proxy_protocol: required");
    let connector = Connector::new(&site.certificates);
    let request = |from: &str, announced: &str, claim: &str| {
        let address = site.gateway.address(0);
        let mut tcp = bound(from, address);
        let preamble = format!("PROXY TCP4 {announced} 127.0.0.1 4711 443\r\n");
        tcp.write_all(preamble.as_bytes())?;
        let mut client = connector.http_over(tcp)?;
        client.send(
            format!("GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {claim}\r\n\r\n").as_bytes(),
        )?;
        client.response().map(|response| response.text().to_ascii_lowercase())
    };
    assert!(request(OTHER, "192.0.2.7", "198.51.100.1").is_err());
    let refused = || site.gateway.metric("quadrille_handshake_failures_total", &["reason=\"proxy_header\""]);
    eventually("the refusal is not counted", || refused() >= 1.0);
    // The headers are those of the client in the PROXY header.
    let seen = request(TRUSTED, "192.0.2.7", "198.51.100.1").expect("a response");
    assert_eq!(values(&seen, "x-forwarded-for"), ["192.0.2.7"], "{seen}");
    let seen = request(TRUSTED, "127.0.1.8", "198.51.100.1").expect("a response");
    assert_eq!(values(&seen, "x-forwarded-for"), ["198.51.100.1, 127.0.1.8"], "{seen}");
}

/// Connects from an address of this machine.
fn bound(from: &str, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let from: SocketAddr = format!("{from}:0").parse().expect("an address");
    socket.bind(&from.into()).expect("binding");
    socket.connect(&to.into()).expect("connecting");
    socket.into()
}
