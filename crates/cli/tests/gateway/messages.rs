//! Message framing on a connection (RFC 9112 sections 2, 6, 7 and 9).

use crate::support::{
    Certificates, Client, Configuration, Connector, Gateway, document, echo_server, listener,
};

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    _file: Configuration,
}

impl Site {
    fn new() -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let web = format!("web: {{servers: [\"{}\"]}}", echo_server());
        let file = Configuration::new(&document(&[listener(&pair, "upstream: web")], &web));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, _file: file }
    }

    /// Opens a connection and sends these bytes.
    fn send(&self, bytes: &str) -> Client {
        let mut client =
            Connector::new(&self.certificates).http(self.gateway.address(0)).expect("a connection");
        client.send(bytes.as_bytes()).expect("sending");
        client
    }
}

#[test]
fn pipelined_requests_are_all_answered() {
    let site = Site::new();
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let body = "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";
    let mut client = site.send(&[&request("/a"), body, &request("/c"), &request("/d")].concat());
    for path in ["/a", "/b", "/c", "/d"] {
        let response = client.response().expect("a response");
        assert_eq!(response.text().split(' ').nth(1), Some(path));
        assert_eq!(response.header("connection"), None, "{path}");
    }
    assert_eq!(client.get("/e").expect("the connection stays").status, 200);
}

#[test]
fn an_empty_line_in_front_of_a_request_is_skipped() {
    let site = Site::new();
    let post = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody\r\n";
    let mut client = site.send(&format!("{post}GET /b HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert!(client.response().expect("a response").text().ends_with("\r\n\r\nbody"));
    assert!(client.response().expect("a response").text().starts_with("GET /b "));
    // It may arrive alone, and the request later.
    let mut client = site.send(post);
    assert!(client.response().expect("a response").text().starts_with("POST /a "));
    assert!(client.get("/c").expect("a response").text().starts_with("GET /c "));
}

#[test]
fn a_body_has_one_length() {
    let site = Site::new();
    let post = |lines: &str, body: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n{body}");
    for lines in [
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: 4, 5\r\n",
        "Content-Length: +4\r\n",
        "Content-Length: 4 4\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x4\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
    ] {
        let response = site.send(&post(lines, "body")).response().expect("a response");
        assert_eq!(response.status, 400, "{lines}");
    }
    // Repeated identical values are rejected, or forwarded once (RFC 9112 section 6.3).
    for lines in ["Content-Length: 4\r\nContent-Length: 4\r\n", "Content-Length: 4, 4\r\n"] {
        let response = site.send(&post(lines, "body")).response().expect("a response");
        let seen = response.text().to_ascii_lowercase();
        let merged = seen.matches("content-length").count() == 1 && seen.contains("content-length: 4\r\n");
        assert!(response.status == 400 || response.status == 200 && merged, "{lines}: {seen}");
    }
}

#[test]
fn chunks_are_read_strictly() {
    let site = Site::new();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in [
        "4;a\nb\r\nbody\r\n0\r\n\r\n",
        "4\nbody\r\n0\r\n\r\n",
        "4\r\nbodyX\r\n0\r\n\r\n",
        "-4\r\nbody\r\n0\r\n\r\n",
    ] {
        let status = site.send(&format!("{head}{body}")).response().map(|response| response.status);
        assert!(matches!(status, Ok(400) | Err(_)), "{body:?}: {status:?}");
    }
}
