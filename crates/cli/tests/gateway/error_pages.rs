//! Error pages.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Http3Client, Response, curl, curl_status, document,
    eventually, http3::Sending, listener, output, ports, quadrille, recording_server,
};

use std::sync::mpsc;

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    _file: Configuration,
    /// Keeps the server of `bad` running.
    _recorded: mpsc::Receiver<Vec<u8>>,
}

impl Site {
    /// Starts a site where `bad` responds 500 with "bad", and `gone` is unreachable.
    fn new(keys: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        std::fs::write(certificates.path("sorry.html"), "<p>We are sorry.</p>").expect("a file");
        let keys = keys.replace("SORRY", &certificates.path("sorry.html").display().to_string());
        let (bad, recorded) = recording_server();
        let gone = ports::free();
        let upstreams = format!("bad: {{servers: [\"{bad}\"]}}, gone: {{servers: [\"127.0.0.1:{gone}\"]}}");
        let keys = format!("http3: on, {keys}");
        let file = Configuration::new(&document(&[listener(&pair, &keys)], &upstreams));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, _file: file, _recorded: recorded }
    }

    fn get(&self, path: &str, accept: &str) -> Response {
        let connector = Connector::new(&self.certificates);
        let mut client = connector.http(self.gateway.address(0)).expect("a connection");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n");
        client.send(request.as_bytes()).expect("a request");
        client.response().expect("a response")
    }
}

const ROUTES: &str =
    "routes: [{path: /gone, upstream: gone}, {path: /bad, upstream: bad}, {path: /here, respond: here}]";

#[test]
fn errors_of_the_gateway_have_the_pages_of_the_configuration() {
    let site = Site::new(&format!(
        "{ROUTES}, error_pages: [{{status: [404, 5xx], file: SORRY}}, {{status: 4xx, body: 'No.', content_type: text/plain}}]"
    ));
    for (path, status) in [("/gone", 502), ("/nowhere", 404)] {
        let answer = site.get(path, "text/html");
        assert_eq!((answer.status, answer.text()), (status, "<p>We are sorry.</p>".into()));
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(answer.header("vary"), Some("Accept"), "caches store one per form");
    }
    let here = site.get("/here", "*/*");
    assert_eq!((here.text().as_str(), here.header("vary")), ("here", None));
    assert_eq!(site.get("/bad", "*/*").text(), "bad\n", "a server's own body is forwarded");
    let malformed = site.get("/%00", "*/*");
    assert_eq!((malformed.status, malformed.text()), (400, "No.".into()));
    assert!(
        site.get("/gone", "application/json").text().starts_with('{'),
        "a program does not receive an HTML page"
    );
    assert_eq!(curl_status(&site.gateway, &site.certificates, &["--head"], "/gone"), "502");
}

#[test]
fn every_version_of_http_has_them_and_head_has_no_body() {
    let site =
        Site::new(&format!("{ROUTES}, error_pages: [{{status: [500, 502], file: SORRY, servers: on}}]"));
    for path in ["/gone", "/bad"] {
        for version in ["--http1.1", "--http2"] {
            let body = curl(&site.gateway, &site.certificates, &[version, "--no-fail"], path);
            assert_eq!(body, "<p>We are sorry.</p>", "{version} {path}");
            let head = curl(&site.gateway, &site.certificates, &[version, "--no-fail", "--head"], path)
                .to_lowercase();
            assert!(head.contains("content-length: 20\r\n"), "{version} {path}: {head}");
        }
        let mut http3 = Http3Client::new(&site.certificates).connect(site.gateway.address(0));
        let answer = http3.get(path);
        assert_eq!((answer.status / 100, answer.text()), (5, "<p>We are sorry.</p>".into()), "{path}");
        let head = http3.exchange(&Sending { method: "HEAD", path, headers: &[], body: b"" });
        assert_eq!((head.status / 100, head.text()), (5, String::new()), "{path}");
        assert_eq!(head.header("content-length"), Some("20"), "{path}");
    }
}

#[test]
fn a_file_that_is_missing_or_too_long_is_a_mistake_with_its_line() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let long = certificates.path("long.html");
    std::fs::write(&long, vec![b'a'; (1 << 20) + 1]).expect("a file");
    for (page, expected) in [
        (certificates.path("none.html"), "cannot read the page"),
        (long, "is longer than 1 MiB; write a shorter one"),
        ("/dev/zero".into(), "is longer than 1 MiB"),
    ] {
        let keys = format!("respond: ok, error_pages: [{{status: 5xx, file: {}}}]", page.display());
        let file = Configuration::new(&document(&[listener(&pair, &keys)], ""));
        let (good, said) = output(quadrille("check").arg(file.path()));
        assert!(!good && said.contains(expected), "{said}");
        assert!(said.contains(".yaml:") && said.contains("error_pages[0].file"), "{said}");
    }
}

#[test]
fn errors_of_servers_have_them_where_that_is_said() {
    let site = Site::new(&format!("{ROUTES}, error_pages: [{{status: 500, file: SORRY, servers: on}}]"));
    let answer = site.get("/bad", "*/*");
    assert_eq!((answer.status, answer.text()), (500, "<p>We are sorry.</p>".into()));
    assert_eq!((answer.header("content-length"), answer.header("vary")), (Some("20"), Some("Accept")));
    let other = site.get("/bad", "application/json");
    assert_eq!((other.text().as_str(), other.header("vary")), ("bad\n", Some("Accept")));
}

#[test]
fn a_routes_own_come_first() {
    let site = Site::new(
        "routes: [{path: /gone, upstream: gone, error_pages: [{status: 502, body: 'Of the route.'}]}],
         error_pages: [{status: 5xx, body: 'Of all.'}, {status: 502, body: '{}', content_type: application/json},
                       {status: 404, body: 'Nowhere.'}]",
    );
    assert_eq!(site.get("/gone", "text/html").text(), "Of the route.");
    assert_eq!(
        site.get("/gone", "application/json").text(),
        "{}",
        "of the pages for the status, the one that the client accepts"
    );
    assert_eq!(site.get("/nowhere", "*/*").text(), "Nowhere.");
}

/// A rejected client receives the page too, and still the challenge.
#[test]
fn refusals_have_them() {
    let site = Site::new(
        "respond: ok, rate_limits: [{rate: 1/h, by: all}], error_pages: [{status: 429, body: 'Slowly.'}]",
    );
    assert_eq!(site.get("/", "*/*").status, 200);
    let refused = site.get("/", "*/*");
    assert_eq!((refused.status, refused.text()), (429, "Slowly.".into()));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.header("vary"), Some("Accept"));
    assert_eq!(refused.header("content-length"), Some("7"));
}

#[test]
fn files_are_watched() {
    let mut site =
        Site::new("routes: [{path: /gone, upstream: gone}], error_pages: [{status: 5xx, file: SORRY}]");
    let file = site.certificates.path("sorry.html");
    std::fs::write(&file, "New.").expect("a file");
    eventually("it is not read again", || site.get("/gone", "*/*").text() == "New.");
    std::fs::remove_file(&file).expect("it is there");
    site.gateway.wait_for_log("cannot read the page");
    assert_eq!(site.get("/gone", "*/*").text(), "New.");
}
