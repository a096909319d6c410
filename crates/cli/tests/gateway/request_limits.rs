//! Size limits of requests, in every HTTP version.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Http3Client, Nginx, curl, curl_status, document,
    http3::Sending, listener, output, ports, quadrille, recording_server,
};
use std::{
    io::{ErrorKind, Read, Write},
    net::TcpListener,
    thread,
};

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    _file: Configuration,
}

impl Site {
    fn new(keys: &str, upstreams: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let keys = format!("http3: on, {keys}");
        let file = Configuration::new(&document(&[listener(&pair, &keys)], upstreams));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, _file: file }
    }

    fn status(&self, arguments: &[&str], path: &str) -> String {
        curl_status(&self.gateway, &self.certificates, arguments, path)
    }

    /// Returns the statuses over HTTP/1.1, HTTP/2 and HTTP/3.
    fn statuses(&self, path: &str, headers: &[(&str, &str)]) -> [String; 3] {
        let written: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let headed: Vec<&str> = written.iter().flat_map(|line| ["-H", line]).collect();
        let over = |version| self.status(&[&[version], &headed[..]].concat(), path);
        let mut http3 = Http3Client::new(&self.certificates).connect(self.gateway.address(0));
        let answer = http3.exchange(&Sending { method: "GET", path, headers, body: b"" });
        [over("--http1.1"), over("--http2"), answer.status.to_string()]
    }
}

#[test]
fn long_urls_are_answered_with_414() {
    let site = Site::new("respond: ok, limits: {url: 1KiB}", "");
    for (length, status) in [(1024, "200"), (1025, "414")] {
        let path = format!("/{}?{}", "a".repeat(500), "b".repeat(length - 502));
        assert_eq!(site.statuses(&path, &[]), [status; 3], "{length}");
    }
}

#[test]
fn many_fields_are_answered_with_431() {
    let site = Site::new("respond: ok, limits: {headers: 20}", "");
    let names: Vec<String> = (0..30).map(|number| format!("x-{number}")).collect();
    let headers: Vec<_> = names.iter().map(|name| (name.as_str(), "a")).collect();
    assert_eq!(site.statuses("/", &headers[..10]), ["200"; 3]);
    assert_eq!(site.statuses("/", &headers), ["431"; 3]);
    // Cookies count as one field, as in HTTP/1.1.
    let mut http3 = Http3Client::new(&site.certificates).connect(site.gateway.address(0));
    let crumbs = [("cookie", "a=b"); 30];
    let answer = http3.exchange(&Sending { method: "GET", path: "/", headers: &crumbs, body: b"" });
    assert_eq!(answer.status, 200);
}

const BODIES: &str = "routes: [{path: /large, upstream: web, limits: {body: 100KiB}},
                               {path: /any, upstream: web, limits: {body: off}},
                               {path: /fixed, respond: ok},
                               {upstream: web}],
                      limits: {body: 10KiB}";

#[test]
fn a_body_that_says_that_it_is_too_large_goes_nowhere() {
    let (server, recorded) = recording_server();
    let site = Site::new(BODIES, &format!("web: {{servers: [\"{server}\"]}}"));
    for (path, size, status) in [
        ("/", 10 * 1024, 500),
        ("/", 10 * 1024 + 1, 413),
        ("/large", 100 * 1024, 500),
        ("/large", 100 * 1024 + 1, 413),
        ("/any", 300 * 1024, 500),
        ("/fixed", 10 * 1024, 200),
        ("/fixed", 10 * 1024 + 1, 413),
    ] {
        let file = site.certificates.path("body");
        std::fs::write(&file, vec![b'a'; size]).expect("a file");
        let data = format!("@{}", file.display());
        // The client does not wait for a 100, so that the body is being sent when the response arrives.
        for arguments in [["--http1.1", "-H", "Expect:"], ["--http2", "-H", "x: y"]] {
            let arguments = [&arguments[..], &["--data-binary", &data]].concat();
            assert_eq!(site.status(&arguments, path), status.to_string(), "{path} {size} {arguments:?}");
        }
        let mut http3 = Http3Client::new(&site.certificates).connect(site.gateway.address(0));
        let (length, body) = (size.to_string(), vec![b'a'; size]);
        let headers = [("content-length", length.as_str())];
        let answer = http3.exchange(&Sending { method: "POST", path, headers: &headers, body: &body });
        assert_eq!(answer.status, status, "{path} {size}");
        let seen = recorded.try_iter().count();
        assert_eq!(seen, if status == 500 { 3 } else { 0 }, "{path} {size}");
    }
}

#[test]
fn a_body_without_a_length_is_cut_off() {
    for (protocol, options) in [("http1", ""), ("http2", "http2")] {
        let nginx = Nginx::listening(options, "dav_methods PUT;");
        let upstreams = format!("web: {{servers: [\"{}\"], protocol: {protocol}}}", nginx.address());
        let site = Site::new(BODIES, &upstreams);
        for (path, size, good) in
            [("/a", 10 * 1024, true), ("/b", 10 * 1024 + 1, false), ("/c", 300 * 1024, false)]
        {
            let expected = if good { ["201", "204"] } else { ["413", "413"] };
            let file = site.certificates.path("body");
            std::fs::write(&file, vec![b'a'; size]).expect("a file");
            let file = file.display().to_string();
            for version in ["--http1.1", "--http2"] {
                let chunked = ["-H", "Transfer-Encoding: chunked", "-H", "Expect:", "-H", "Content-Length:"];
                let arguments = [&[version, "--upload-file", &file], &chunked[..]].concat();
                let found = site.status(&arguments, path);
                let log = site.gateway.log();
                assert!(expected.contains(&found.as_str()), "{protocol} {version} {path}: {found}\n{log}");
            }
            let mut http3 = Http3Client::new(&site.certificates).connect(site.gateway.address(0));
            let body = vec![b'a'; size];
            let answer = http3.exchange(&Sending { method: "PUT", path, headers: &[], body: &body });
            assert!(
                expected.contains(&answer.status.to_string().as_str()),
                "{protocol} {path}: {}",
                answer.status
            );
        }
    }
}

/// A response in progress is truncated, and no request follows on an HTTP/1.1 connection.
#[test]
fn an_answer_that_has_begun_ends_with_the_body() {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut tcp in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut read = [0; 64 * 1024];
                let _ = tcp.read(&mut read);
                let _ = tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun");
                while tcp.read(&mut read).is_ok_and(|length| length > 0) {}
            });
        }
    });
    let site = Site::new(BODIES, &format!("web: {{servers: [\"{address}\"]}}"));
    let mut tls = Connector::new(&site.certificates).tls(site.gateway.address(0)).expect("a connection");
    tls.write_all(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n")
        .expect("sending");
    let (mut begun, mut byte) = (Vec::new(), [0]);
    while !begun.ends_with(b"begun") {
        tls.read_exact(&mut byte).expect("a response");
        begun.extend(byte);
    }
    assert!(begun.starts_with(b"HTTP/1.1 200"));
    let chunk = [format!("{:x}\r\n", 16 * 1024).as_bytes(), &[b'a'; 16 * 1024]].concat();
    let _ = tls.write_all(&chunk);
    let mut rest = Vec::new();
    let outcome = tls.read_to_end(&mut rest);
    let waits = |error: &std::io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    assert!(rest.is_empty() && !outcome.is_err_and(|error| waits(&error)), "{}", site.gateway.log());
}

#[test]
fn what_is_refused_is_a_page_like_others() {
    let site = Site::new(
        "respond: ok, limits: {body: 1KiB, url: 300}, error_pages: [{status: [413, 414], body: 'Less, please.'}]",
        "",
    );
    let body = "a".repeat(2000);
    let page = curl(&site.gateway, &site.certificates, &["--no-fail", "-d", &body], "/");
    assert_eq!(page, "Less, please.");
    let long = format!("/{}", "a".repeat(400));
    assert_eq!(curl(&site.gateway, &site.certificates, &["--no-fail"], &long), "Less, please.");
}

/// nginx's 0 means unlimited, so it is rejected here.
#[test]
fn a_limit_of_zero_is_a_mistake() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let file = Configuration::new(&document(&[listener(&pair, "respond: ok, limits: {body: 0}")], ""));
    let (good, said) = output(quadrille("check").arg(file.path()));
    assert!(!good && said.contains("limits.body: `0` would refuse every body; write `off`"), "{said}");
}
