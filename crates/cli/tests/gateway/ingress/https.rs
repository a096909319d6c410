//! HTTPS: certificates of Secrets, client certificates, suites, and connections that are not decrypted.

use super::{Cluster, Served, ingress, ingress_with, map};
use crate::support::{Certificates, Nginx, Pair, comparison::outcome, ports};
use boring::ssl::{SslConnector, SslFiletype, SslMethod, SslVersion};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

fn text(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}

fn secret(name: &str, pair: &Pair) -> String {
    map("Secret", name, &[("tls.crt", &text(&pair.chain)), ("tls.key", &text(&pair.key))])
}

fn tls(host: &str, secret: &str) -> String {
    format!("  tls: [{{ hosts: [{host}], secretName: {secret} }}]\n")
}

/// Returns the status of a request for a host on a connection for another name, or the handshake's error.
fn status(
    certificates: &Certificates,
    own: Option<&Pair>,
    address: SocketAddr,
    (name, host): (&str, &str),
    suites: Option<&str>,
) -> Result<u16, String> {
    let mut builder = SslConnector::builder(SslMethod::tls()).expect("a client");
    builder.set_ca_file(certificates.ca()).expect("the CA");
    if let Some(own) = own {
        builder.set_certificate_chain_file(&own.chain).expect("a certificate");
        builder.set_private_key_file(&own.key, SslFiletype::PEM).expect("a key");
    }
    if let Some(suites) = suites {
        builder.set_max_proto_version(Some(SslVersion::TLS1_2)).expect("a version");
        builder.set_cipher_list(suites).expect("suites");
    }
    let tcp = TcpStream::connect(address).expect("a connection");
    tcp.set_read_timeout(Some(crate::support::PATIENCE)).expect("a timeout");
    let mut stream = builder.build().connect(name, tcp).map_err(|error| error.to_string())?;
    let request = format!("GET /x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    let mut response = Vec::new();
    let read = stream.read_to_end(&mut response);
    let response = String::from_utf8_lossy(&response).into_owned();
    response.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(|| format!("{read:?}"))
}

fn served(objects: &str) -> (Served, SocketAddr) {
    let https = SocketAddr::from(([127, 0, 0, 1], ports::free()));
    let flags = ["--http", "127.0.0.1:0", "--https", &https.to_string()];
    (Served::with_listeners(objects, &flags, 2), https)
}

#[test]
fn certificates_of_secrets() {
    let certificates = Certificates::new();
    let (a, b) = (certificates.ecdsa("P-256", &["a.example"]), certificates.rsa(2048, &["*.wild.example"]));
    let objects = [
        Cluster::new().objects(),
        ingress_with("a", "", "a.example", &[("/", "Prefix", "a")], &tls("a.example", "a")),
        ingress_with("b", "", "x.wild.example", &[("/", "Prefix", "a")], &tls("\"*.wild.example\"", "b")),
        secret("a", &a),
        secret("b", &b),
        map("Secret", "mixed", &[("tls.crt", &text(&a.chain)), ("tls.key", &text(&b.key))]),
        ingress_with("mixed", "", "mixed.example", &[("/", "Prefix", "a")], &tls("mixed.example", "mixed")),
    ];
    let (served, https) = served(&objects.concat());
    for host in ["a.example", "x.wild.example"] {
        assert_eq!(status(&certificates, None, https, (host, host), None), Ok(200), "{}", served.yaml);
    }
    assert!(served.report.contains("`tls.key` does not belong to the certificate"), "{}", served.report);
    let redirected = outcome(served.http(), &("GET", "a.example", "/x", ""));
    assert_eq!((redirected.status, redirected.location.as_deref()), (308, Some("https://a.example/x")));
    assert!(served.yaml.contains("max-age=31536000; includeSubDomains"), "{}", served.yaml);
}

#[test]
fn client_certificates() {
    let certificates = Certificates::new();
    let others = Certificates::new();
    let server = certificates.ecdsa("P-256", &["a.example", "b.example", "open.example", "*.wild.example"]);
    let client = certificates.ecdsa("P-384", &["client.example"]);
    let stranger = others.ecdsa("P-256", &["stranger.example"]);
    let with = |name: &str, annotations: &str| {
        let host = format!("{name}.example");
        ingress_with(name, annotations, &host, &[("/", "Prefix", "a")], &tls(&host, "server"))
    };
    let objects = [
        Cluster::new().objects(),
        with("a", "auth-tls-secret: shop/ca\nauth-tls-verify-client: \"on\""),
        with("b", "auth-tls-secret: shop/ca\nauth-tls-match-cn: \"CN=other.example\""),
        with("open", ""),
        ingress_with(
            "wild",
            "auth-tls-secret: shop/ca",
            "*.wild.example",
            &[("/", "Prefix", "a")],
            &tls("\"*.wild.example\"", "server"),
        ),
        ingress_with("x", "", "x.wild.example", &[("/", "Prefix", "a")], &tls("x.wild.example", "server")),
        secret("server", &server),
        map("Secret", "ca", &[("ca.crt", &text(&certificates.ca()))]),
    ];
    let (served, https) = served(&objects.concat());
    let ask = |own: Option<&Pair>, names: (&str, &str)| status(&certificates, own, https, names, None);
    // nginx with the same settings: a valid certificate or none.
    let nginx = Nginx::listening(
        "ssl",
        &format!(
            "ssl_certificate {}; ssl_certificate_key {}; ssl_client_certificate {}; ssl_verify_client on; ssl_verify_depth 1; location / {{ return 200; }}",
            server.chain.display(),
            server.key.display(),
            certificates.ca().display()
        ),
    );
    for (own, allowed) in [(Some(&client), true), (None, false), (Some(&stranger), false)] {
        let expected = status(&certificates, own, nginx.address(), ("a.example", "a.example"), None);
        let found = ask(own, ("a.example", "a.example"));
        assert_eq!(
            (expected == Ok(200), found == Ok(200)),
            (allowed, allowed),
            "{expected:?} {found:?}\n{}",
            served.yaml
        );
    }
    assert_eq!(ask(Some(&client), ("b.example", "b.example")), Ok(403), "{}", served.yaml);
    assert_eq!(ask(None, ("open.example", "open.example")), Ok(200), "{}", served.yaml);
    // A wildcard with a listener of its own takes no other host's connections.
    assert_eq!(ask(None, ("x.wild.example", "x.wild.example")), Ok(200), "{}", served.yaml);
    assert!(ask(None, ("y.wild.example", "y.wild.example")).is_err(), "{}", served.yaml);
    assert_eq!(ask(Some(&client), ("y.wild.example", "y.wild.example")), Ok(200), "{}", served.yaml);
    // A connection for another host does not reach the protected one.
    assert_eq!(ask(None, ("open.example", "a.example")), Ok(421), "{}", served.yaml);
    assert_eq!(ask(Some(&client), ("a.example", "open.example")), Ok(421), "{}", served.yaml);
}

#[test]
fn tls_of_hosts() {
    let certificates = Certificates::new();
    let server = certificates.ecdsa("P-256", &["a.example", "b.example"]);
    let with = |name: &str, annotations: &str| {
        let host = format!("{name}.example");
        ingress_with(name, annotations, &host, &[("/", "Prefix", "a")], &tls(&host, "server"))
    };
    let objects = [
        Cluster::new().objects(),
        with("a", "ssl-ciphers: ECDHE-ECDSA-AES256-GCM-SHA384"),
        with("b", ""),
        secret("server", &server),
    ];
    let (served, https) = served(&objects.concat());
    let ask = |host: &str, suites: &str| status(&certificates, None, https, (host, host), Some(suites));
    assert_eq!(ask("a.example", "ECDHE-ECDSA-AES256-GCM-SHA384"), Ok(200), "{}", served.yaml);
    assert!(ask("a.example", "ECDHE-ECDSA-AES128-GCM-SHA256").is_err(), "{}", served.yaml);
    assert_eq!(ask("b.example", "ECDHE-ECDSA-AES128-GCM-SHA256"), Ok(200), "{}", served.yaml);
}

#[test]
fn passthrough() {
    let certificates = Certificates::new();
    let (pair, other) =
        (certificates.ecdsa("P-256", &["pass.example"]), certificates.ecdsa("P-384", &["a.example"]));
    let backend = Nginx::listening(
        "ssl",
        &format!(
            "ssl_certificate {}; ssl_certificate_key {}; location / {{ return 203; }}",
            pair.chain.display(),
            pair.key.display()
        ),
    );
    let objects = [
        Cluster::new().with("secure", backend.address()).objects(),
        ingress("pass", "ssl-passthrough: \"true\"", "pass.example", &[("/", "Prefix", "secure")]),
        ingress_with("a", "", "a.example", &[("/", "Prefix", "a")], &tls("a.example", "a")),
        secret("a", &other),
    ];
    let (served, https) = served(&objects.concat());
    let ask = |host: &str| status(&certificates, None, https, (host, host), None);
    assert_eq!(ask("pass.example"), Ok(203), "{}", served.yaml);
    assert_eq!(ask("a.example"), Ok(200), "{}", served.yaml);
}
