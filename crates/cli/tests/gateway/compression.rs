//! Response compression. curl decodes the responses, and prints the size of the transfer.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Http3Client, PATIENCE, Response, curl, document,
    eventually, http3::Sending, listener, ports,
};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, mpsc},
    thread,
};

/// Returns a compressible text.
fn text() -> String {
    (0..500).map(|line| format!("Line {line} of a text that repeats itself again and again.\n")).collect()
}

/// Starts a server that responds to each request with `answer` of its path.
fn server(answer: impl Fn(&str, &mut TcpStream) -> Option<()> + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            thread::spawn(move || -> Option<()> {
                let mut writer = tcp.try_clone().ok()?;
                let mut reader = BufReader::new(tcp);
                loop {
                    let mut first = String::new();
                    reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
                    let mut line = String::new();
                    while reader.read_line(&mut line).ok().filter(|read| *read > 0)? > 2 {
                        line.clear();
                    }
                    answer(first.split(' ').nth(1)?, &mut writer)?;
                }
            });
        }
    });
    address
}

/// Starts a server whose response headers are given by the path: `/Name=value&Name=value`, with `_` for spaces.
fn described(path: &str, writer: &mut TcpStream) -> Option<()> {
    let (mut status, mut headers, mut body) = ("200", String::new(), text());
    for (name, value) in path.trim_start_matches('/').split('&').filter_map(|pair| pair.split_once('=')) {
        match name {
            "status" => status = value,
            "length" => body.truncate(value.parse().ok()?),
            _ => headers += &format!("{name}: {}\r\n", value.replace('_', " ")),
        }
    }
    if !headers.contains("Content-Type") {
        headers += "Content-Type: text/plain; charset=utf-8\r\n";
    }
    if status == "204" || status == "304" {
        body.clear();
    } else {
        headers += &format!("Content-Length: {}\r\n", body.len());
    }
    writer.write_all(format!("HTTP/1.1 {status} Ok\r\n{headers}\r\n{body}").as_bytes()).ok()
}

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    _file: Configuration,
}

impl Site {
    fn new(server: SocketAddr, keys: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let keys = format!("http3: on, upstream: web, {keys}");
        let file = Configuration::new(&document(
            &[listener(&pair, &keys)],
            &format!("web: {{servers: [\"{server}\"]}}"),
        ));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, _file: file }
    }

    fn ask(&self, method: &str, path: &str, headers: &str) -> Response {
        let connector = Connector::new(&self.certificates);
        let mut client = connector.http(self.gateway.address(0)).expect("a connection");
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
        client.send(request.as_bytes()).expect("a request");
        if method == "HEAD" { client.head() } else { client.response() }.expect("a response")
    }

    /// Returns the content coding of a response to a client that accepts all codings.
    fn coding(&self, path: &str, headers: &str) -> Option<String> {
        let all = format!("Accept-Encoding: gzip, br, zstd\r\n{headers}");
        self.ask("GET", path, &all).header("content-encoding").map(str::to_owned)
    }
}

/// curl decodes the server's original content, in every HTTP version.
#[test]
fn clients_read_what_the_server_has_sent() {
    let site = Site::new(server(described), "compression: on");
    for version in ["--http1.1", "--http2"] {
        for coding in ["gzip", "br", "zstd"] {
            let accept = format!("Accept-Encoding: {coding}");
            let arguments = [version, "--compressed", "--header", &accept];
            let answer = curl(&site.gateway, &site.certificates, &arguments, "/");
            assert_eq!(answer, text(), "{version} {coding}");
        }
    }
    let mut http3 = Http3Client::new(&site.certificates).connect(site.gateway.address(0));
    let headers = [("accept-encoding", "gzip")];
    let answer = http3.exchange(&Sending { method: "GET", path: "/", headers: &headers, body: b"" });
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    let mut decoded = String::new();
    flate2::read::GzDecoder::new(&answer.body[..]).read_to_string(&mut decoded).expect("gzip");
    assert_eq!(decoded, text());
    let before = site.gateway.metric("quadrille_compression_bytes_total", &["side=\"before\""]);
    assert_eq!(before, 7.0 * text().len() as f64);
    let after = site.gateway.metric("quadrille_compression_bytes_total", &["side=\"after\""]);
    assert!(after > 0.0 && after < before / 5.0, "{after} of {before}");
}

#[test]
fn the_header_is_that_of_what_is_sent() {
    let site = Site::new(server(described), "compression: on");
    let answer = site.ask("GET", "/ETag=\"a\"&Accept-Ranges=bytes&Vary=Origin", "Accept-Encoding: gzip\r\n");
    assert_eq!(answer.header("etag"), Some("W/\"a\""));
    assert_eq!(answer.header("content-length"), None);
    assert_eq!(answer.header("accept-ranges"), None);
    let vary: Vec<_> =
        answer.headers.iter().filter(|(name, _)| name == "vary").map(|(_, value)| &**value).collect();
    assert_eq!(vary, ["Origin", "Accept-Encoding"]);
    let plain = site.ask("GET", "/ETag=\"a\"", "");
    assert_eq!((plain.header("etag"), plain.header("content-encoding")), (Some("\"a\""), None));
    assert_eq!(plain.header("vary"), Some("Accept-Encoding"), "caches must store both variants");
    let head = site.ask("HEAD", "/", "Accept-Encoding: gzip\r\n");
    assert_eq!((head.header("vary"), head.header("content-encoding")), (Some("Accept-Encoding"), None));
}

#[test]
fn what_stays_as_it_is() {
    let site = Site::new(server(described), "compression: on");
    assert_eq!(site.coding("/", "").as_deref(), Some("zstd"));
    for path in [
        "/Content-Encoding=br",
        "/Content-Type=image/png",
        "/Cache-Control=no-transform",
        "/Cache-Control=public,_No-Transform",
        "/status=206&Content-Range=bytes_0-9/10",
        "/status=204",
        "/length=1023",
    ] {
        let coding = site.coding(path, "");
        assert!(coding.is_none() || path.contains("Encoding"), "{path}: {coding:?}");
    }
    let all = Site::new(server(described), "compression: {types: [application/*], minimum: 1}");
    for (kind, expected) in
        [("grpc", None), ("grpc+proto", None), ("grpc-web-text", None), ("x-other", Some("zstd"))]
    {
        let coding = all.coding(&format!("/Content-Type=application/{kind}"), "");
        assert_eq!(coding.as_deref(), expected, "{kind}");
    }
    assert_eq!(site.coding("/length=1024", "").as_deref(), Some("zstd"));
    assert_eq!(site.coding("/status=500", "").as_deref(), Some("zstd"));
    let old = "GET / HTTP/1.0\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n";
    let mut client = Connector::new(&site.certificates).http(site.gateway.address(0)).expect("a connection");
    client.send(old.as_bytes()).expect("a request");
    assert_eq!(client.response().expect("a response").header("content-encoding"), None);
}

/// The length of a compressed personal response could reveal a secret in it.
#[test]
fn what_may_hold_a_secret_is_compressed_if_that_is_said() {
    let off = Site::new(
        server(described),
        "compression: on, routes: [{path: /open, upstream: web, compression: {personal: on}}]",
    );
    for headers in ["Cookie: session=1\r\n", "Authorization: Bearer x\r\n"] {
        assert_eq!(off.coding("/", headers), None, "{headers}");
        assert_eq!(off.coding("/Content-Type=text/css", headers).as_deref(), Some("zstd"), "{headers}");
        assert_eq!(off.coding("/Cache-Control=public", headers).as_deref(), Some("zstd"), "{headers}");
        assert_eq!(off.coding("/open", headers).as_deref(), Some("zstd"), "{headers}");
    }
}

/// Cookies that identify no user do not prevent compression where the others are listed.
#[test]
fn named_cookies_are_personal() {
    let keys = "compression: {cookies: [session, 'login_*']}, request_headers: [{remove: Cookie}]";
    let site = Site::new(server(described), keys);
    for (headers, coding) in [
        ("Cookie: theme=dark; _ga=1\r\n", Some("zstd")),
        ("Cookie: theme=dark; session=1\r\n", None),
        ("Cookie: theme=dark\r\nCookie: login_4f=1\r\n", None),
        ("Authorization: Bearer x\r\n", None),
    ] {
        assert_eq!(site.coding("/", headers).as_deref(), coding, "{headers}");
    }
}

/// Browsers add cookies and client certificates automatically, even if the gateway ignores them.
#[test]
fn responses_to_cookies_and_client_certificates_are_personal() {
    let certificates = Certificates::new();
    let (pair, alice) =
        (certificates.ecdsa("P-256", &["localhost"]), certificates.ecdsa("P-256", &["alice"]));
    let keys = format!(
        "upstream: web, compression: on, request_headers: [{{remove: Cookie}}], \
         tls: {{client_auth: {{mode: optional, ca: {}}}}}",
        certificates.ca().display()
    );
    let server = format!("web: {{servers: [\"{}\"]}}", server(described));
    let file = Configuration::new(&document(&[listener(&pair, &keys)], &server));
    let gateway = Gateway::with_config(&file.path(), 1);
    let (chain, key) = (alice.chain.display().to_string(), alice.key.display().to_string());
    let coding = |more: &[&str]| {
        let arguments = ["--header", "Accept-Encoding: gzip", "--output", "/dev/null", "--dump-header", "-"];
        let head = curl(&gateway, &certificates, &[&arguments[..], more].concat(), "/");
        head.to_ascii_lowercase().contains("content-encoding: gzip")
    };
    assert!(coding(&[]), "an unidentified client");
    assert!(!coding(&["--cert", &chain, "--key", &key]), "a client with a certificate");
    assert!(!coding(&["--header", "Cookie: session=1"]), "a client whose cookie is not forwarded");
}

#[test]
fn routes_say_otherwise() {
    let site = Site::new(
        server(described),
        "compression: {algorithms: [gzip], minimum: 1, types: [text/plain]}, routes: [
            {path: /off, upstream: web, compression: off},
            {path: /br, upstream: web, compression: {algorithms: [br]}}]",
    );
    assert_eq!(site.coding("/length=1", "").as_deref(), Some("gzip"));
    assert_eq!(site.coding("/Content-Type=text/html", ""), None);
    assert_eq!(site.coding("/off", ""), None);
    assert_eq!(site.coding("/br", "").as_deref(), Some("br"));
}

/// Events reach the client when the server sends them, not when a buffer is full, and trailers follow.
#[test]
fn events_come_as_they_are_sent() {
    // The client reports each event that it has received, and then the server sends the next one.
    let (tells, told) = mpsc::channel();
    let told = Arc::new(Mutex::new(told));
    let events = move |_: &str, writer: &mut TcpStream| {
        let told = told.lock().ok()?;
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        writer.write_all(head.as_bytes()).ok()?;
        for event in 0..3 {
            let event = format!("data: {event}\n\n");
            writer.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).ok()?;
            let () = told.recv_timeout(PATIENCE).ok()?;
        }
        writer.write_all(b"0\r\nX-Trailer: here\r\n\r\n").ok()
    };
    let site = Site::new(server(events), "compression: on");
    for coding in ["gzip", "br", "zstd"] {
        let port = site.gateway.port();
        let mut curl = std::process::Command::new("curl")
            .args(["--silent", "--no-buffer", "--max-time", "600", "--http2", "--compressed", "--cacert"])
            .arg(site.certificates.ca())
            .args(["--resolve", &format!("localhost:{port}:127.0.0.1")])
            .args(["--header", &format!("Accept-Encoding: {coding}"), &format!("https://localhost:{port}/")])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("curl");
        let stdout = curl.stdout.take().expect("its output");
        let lines = BufReader::new(stdout).lines().map_while(Result::ok).filter(|line| !line.is_empty());
        let lines: Vec<_> = lines.inspect(|_| tells.send(()).expect("the server")).collect();
        assert!(curl.wait().expect("an end").success(), "{coding}: only {lines:?} arrived");
        assert_eq!(lines, ["data: 0", "data: 1", "data: 2"], "{coding}");
    }
    eventually("nothing was counted", || {
        site.gateway.metric("quadrille_compression_bytes_total", &["coding=\"br\""]) > 0.0
    });
}
