//! Upstreams on Unix sockets.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Nginx, curl, curl_status, document, eventually,
    listener, refused_file,
};
use std::{
    io::{Read, Write},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    thread,
};
use tempfile::TempDir;

/// A gateway in front of servers with sockets in a directory.
struct Site {
    certificates: Certificates,
    directory: TempDir,
}

impl Site {
    fn new() -> Self {
        Self { certificates: Certificates::new(), directory: tempfile::tempdir().expect("a directory") }
    }

    fn socket(&self, name: &str) -> String {
        format!("unix:{}", self.directory.path().join(name).display())
    }

    /// Starts nginx on this socket too, with options as after `listen`.
    fn nginx(&self, name: &str, options: &str, directives: &str) -> Nginx {
        Nginx::new(&format!("listen {} {options}; {directives}", self.socket(name)))
    }

    fn gateway(&self, keys: &str, upstream: &str) -> (Gateway, Configuration) {
        let pair = self.certificates.ecdsa("P-256", &["localhost"]);
        let text = document(&[listener(&pair, keys)], &format!("web: {{{upstream}}}"));
        let file = Configuration::new(&text);
        (Gateway::with_config(&file.path(), 1), file)
    }
}

#[test]
fn requests_go_there_and_back() {
    let site = Site::new();
    let nginx = site.nginx(
        "a.sock",
        "",
        "location = / { return 200 \"$server_addr $host $http_x_forwarded_for\"; }
         location / { dav_methods PUT; }",
    );
    let upstream = format!(
        "servers: [\"{}\"], health: {{interval: 100ms, timeout: 300s, path: /}}",
        site.socket("a.sock")
    );
    let (mut gateway, _file) = site.gateway("upstream: web", &upstream);
    let body: String = (0..60_000).map(|line| format!("{line}\n")).collect();
    let file = site.directory.path().join("body");
    std::fs::write(&file, &body).expect("a body");
    let file = file.display().to_string();
    for version in ["--http1.1", "--http2"] {
        for _ in 0..3 {
            let said = curl(&gateway, &site.certificates, &[version], "/");
            assert!(said.starts_with(&site.socket("a.sock")), "{said}");
            assert!(said.ends_with(" localhost 127.0.0.1"), "{said}");
        }
        let path = format!("/stored{version}");
        curl(&gateway, &site.certificates, &[version, "-T", &file], &path);
        assert!(curl(&gateway, &site.certificates, &[version], &path) == body);
    }
    let labels = [("server", site.socket("a.sock"))].map(|(name, value)| format!("{name}=\"{value}\""));
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    assert!((gateway.metric("quadrille_upstream_server_up", &labels) - 1.0).abs() < f64::EPSILON);
    drop(nginx);
    gateway.wait_for_metric("quadrille_upstream_server_up", &labels, |up| up == 0.0);
    gateway.wait_for_log(&format!("server={}", site.socket("a.sock")));
}

#[test]
fn tls_and_http2_are_spoken_there_too() {
    let site = Site::new();
    let pair = site.certificates.rsa(2048, &["localhost"]);
    let directives = format!(
        "ssl_certificate {}; ssl_certificate_key {}; return 200 \"$server_protocol $ssl_server_name\";",
        pair.chain.display(),
        pair.key.display()
    );
    let _nginx = site.nginx("tls.sock", "ssl http2", &directives);
    let ca = site.certificates.ca();
    for (protocol, name, expected) in [
        ("http1", "", "HTTP/1.1 localhost"),
        ("http2", "", "HTTP/2.0 localhost"),
        ("http2", "server_name: other.example,", ""),
    ] {
        let upstream = format!(
            "servers: [{{address: \"{}\"}}], protocol: {protocol}, tls: {{{name} ca: {}}}",
            site.socket("tls.sock"),
            ca.display()
        );
        let (gateway, _file) = site.gateway("upstream: web", &upstream);
        if expected.is_empty() {
            assert_eq!(curl_status(&gateway, &site.certificates, &[], "/"), "502");
        } else {
            assert_eq!(curl(&gateway, &site.certificates, &[], "/"), expected);
        }
    }
}

#[test]
fn a_socket_that_is_not_there_is_a_server_that_is_not_there() {
    let site = Site::new();
    let nginx = site.nginx("there.sock", "", "return 200 there;");
    let servers = format!(
        "servers: [\"{}\", \"{}\", \"{}\"]",
        site.socket("absent.sock"),
        site.socket("there.sock"),
        nginx.address()
    );
    let (gateway, file) = site.gateway("upstream: web", &servers);
    for _ in 0..6 {
        assert_eq!(curl(&gateway, &site.certificates, &[], "/"), "there");
    }
    let pair = site.certificates.ecdsa("P-256", &["localhost"]);
    let absent = format!("web: {{servers: [\"{}\"]}}", site.socket("absent.sock"));
    file.replace(&document(&[listener(&pair, "upstream: web")], &absent));
    eventually("responses are not 502", || curl_status(&gateway, &site.certificates, &[], "/") == "502");
}

#[test]
fn bytes_go_to_an_abstract_socket() {
    let name = format!("quadrille-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let listening = UnixListener::bind_addr(&address).expect("a socket");
    thread::spawn(move || {
        for mut stream in listening.incoming().flatten() {
            let mut all = Vec::new();
            stream.read_to_end(&mut all).expect("bytes");
            all.reverse();
            stream.write_all(&all).expect("bytes");
        }
    });
    let site = Site::new();
    let (gateway, _file) = site.gateway("mode: tcp, upstream: web", &format!("servers: [\"unix:@{name}\"]"));
    let mut tls = Connector::new(&site.certificates).tls(gateway.address(0)).expect("a connection");
    tls.write_all(b"abc").expect("bytes");
    tls.shutdown().expect("an end");
    let mut said = Vec::new();
    tls.read_to_end(&mut said).expect("a response");
    assert_eq!(said, b"cba");
}

#[test]
fn invalid_socket_paths_are_rejected() {
    let site = Site::new();
    let pair = site.certificates.ecdsa("P-256", &["localhost"]);
    let file = site.directory.path().join("refused.yaml");
    for (address, expected) in [
        ("unix:", "write `unix:/run/app.sock`, or `unix:@name` for an abstract one"),
        ("unix:app.sock", "is not the path of a Unix socket"),
        ("unix:@", "is not the path of a Unix socket"),
        (&format!("unix:/{}", "a".repeat(120)), "paths of Unix sockets have at most 107 bytes"),
    ] {
        let text =
            document(&[listener(&pair, "upstream: web")], &format!("web: {{servers: [\"{address}\"]}}"));
        let said = refused_file(&file, &text);
        assert!(said.contains(expected), "{address}: {said}");
    }
}
