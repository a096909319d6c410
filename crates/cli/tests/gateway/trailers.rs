//! Trailers of requests and responses: no trailer takes the place of a header that the gateway decides about.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Http3Client, PATIENCE, accept, document,
    frames::{DATA, Frames},
    http3::Answer,
    listener, ports,
};
use std::{
    io::{BufRead, BufReader, Cursor, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc,
    thread,
};

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    _file: Configuration,
}

/// Names that are not forwarded as trailers, because the gateway decides about the header of this name.
const OWNED: [&str; 16] = [
    "x-forwarded-for",
    "x_forwarded_for",
    "x-real-ip",
    "forwarded",
    "x-request-id",
    "authorization",
    "cookie",
    "host",
    "content-length",
    "content-type",
    "x-set",
    "x_set",
    "x-removed",
    "x_removed",
    "x-remote-user",
    "x_remote-user",
];

const KEYS: &str = "http3: on, upstream: web,
    basic_auth: {users: 'ada:$2y$05$DdtPXFFCcdaikKOAhelah.ig4957ecLHk7CcmHEhDzxwEVL6SC1Ci',
                 user_header: X-Remote-User},
    routes: [{path: /, basic_auth: off, upstream: web, MORE
              request_headers: [{set: X-Set, value: ours}, {remove: X-Removed}],
              response_headers: [{set: X-Set, value: ours}, {remove: X-Removed}]}]";

impl Site {
    fn new(server: SocketAddr, more: &str, protocol: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let keys = KEYS.replace("MORE", more).replace("upstream: web,\n    basic", "basic");
        let web = format!("web: {{servers: [\"{server}\"], protocol: {protocol}}}");
        let file = Configuration::new(&document(&[listener(&pair, &keys)], &web));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, _file: file }
    }

    /// Sends a request with trailers over each HTTP version. Returns what the server received.
    fn received(&self, trailers: &[(&str, &str)]) -> [String; 3] {
        [self.http1(trailers), self.http2(trailers), self.http3(trailers).text()]
    }

    fn http1(&self, trailers: &[(&str, &str)]) -> String {
        let mut client =
            Connector::new(&self.certificates).http(self.gateway.address(0)).expect("a connection");
        let lines: String = trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = "POST / HTTP/1.1\r\nHost: localhost\r\nTE: trailers\r\nTrailer: x-sum\r\n\
                    Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n";
        client.send(format!("{head}{lines}\r\n").as_bytes()).expect("sending");
        client.response().expect("a response").text()
    }

    fn http2(&self, trailers: &[(&str, &str)]) -> String {
        let mut frames =
            Frames::connect(&Connector::new(&self.certificates), self.gateway.address(0), 65_535);
        frames.post(1, "/");
        frames.send(DATA, 0, 1, b"abc");
        frames.trailers(1, trailers);
        let mut received = String::new();
        while !received.ends_with(END) {
            received += &String::from_utf8_lossy(&frames.expect(DATA).payload);
        }
        received
    }

    fn http3(&self, trailers: &[(&str, &str)]) -> Answer {
        let mut client = Http3Client::new(&self.certificates).connect(self.gateway.address(0));
        let id = client.start("POST", "/", &[("te", "trailers")], false);
        assert_eq!(client.write(id, b"abc", false), 3);
        client.write_trailers(id, trailers);
        client.finish(id)
    }
}

/// The last bytes of a server's response.
const END: &str = "END";

/// Starts a server that responds to each request in chunks with the received bytes and `END`, and with trailers.
fn http1_server(trailers: &'static str) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut reader = BufReader::new(tcp);
                while echo(&mut reader, trailers).is_some() {}
            });
        }
    });
    address
}

fn echo(reader: &mut BufReader<TcpStream>, trailers: &str) -> Option<()> {
    let body = request(reader)? + END;
    let head = "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n";
    let response = format!("{head}{:x}\r\n{body}\r\n0\r\n{trailers}\r\n", body.len());
    reader.get_mut().write_all(response.as_bytes()).ok()
}

/// Reads a request with its body and trailers.
fn request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut received = section(reader)?;
    if received.contains("transfer-encoding: chunked") {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let size = usize::from_str_radix(line.trim(), 16).ok()?;
            if size == 0 {
                break;
            }
            let mut data = vec![0; size + 2];
            reader.read_exact(&mut data).ok()?;
            received += &String::from_utf8_lossy(&data);
        }
        received += &section(reader)?;
    }
    Some(received)
}

/// Reads lines up to an empty one, in lower case.
fn section(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut lines = String::new();
    while !lines.ends_with("\r\n\r\n") && lines != "\r\n" {
        if reader.read_line(&mut lines).ok()? == 0 {
            return None;
        }
    }
    Some(lines.to_ascii_lowercase())
}

/// Starts an HTTP/2 server that responds to each request with its trailers.
fn http2_server() -> SocketAddr {
    accept(|stream| async move {
        let mut connection = h2::server::Builder::new().handshake(stream).await.ok()?;
        while let Some(Ok((request, respond))) = connection.accept().await {
            tokio::spawn(tell_trailers(request, respond));
        }
        Some(())
    })
}

async fn tell_trailers(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Cursor<Vec<u8>>>,
) -> Option<()> {
    let text = trailers_of(request).await? + END;
    let mut stream = respond.send_response(http::Response::new(()), false).ok()?;
    stream.send_data(Cursor::new(text.into_bytes()), true).ok()
}

/// Reads a request to its end, and returns its trailers as lines.
async fn trailers_of(request: http::Request<h2::RecvStream>) -> Option<String> {
    let mut body = request.into_body();
    while let Some(data) = body.data().await {
        body.flow_control().release_capacity(data.ok()?.len()).ok()?;
    }
    let trailers = body.trailers().await.ok()?.unwrap_or_default();
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        format!("{name}: {}\n", value.to_str().unwrap_or_default())
    };
    Some(trailers.iter().map(line).collect())
}

#[test]
fn trailers_are_not_forwarded_over_http1() {
    let site = Site::new(http1_server(""), "", "http1");
    for received in site.received(&[("x-sum", "6"), ("x-forwarded-for", "10.0.0.1")]) {
        assert!(received.contains("abc\r\n\r\nEND"), "{received}");
        assert!(!received.contains("x-sum") && !received.contains("10.0.0.1"), "{received}");
    }
}

#[test]
fn no_trailer_replaces_a_header_that_the_gateway_decides_about() {
    let trailers: Vec<_> = OWNED.map(|name| (name, "forged")).into_iter().chain([("x-sum", "6")]).collect();
    for (server, more, protocol) in
        [(http1_server(""), "request_trailers: on,", "http1"), (http2_server(), "", "http2")]
    {
        let site = Site::new(server, more, protocol);
        for received in site.received(&trailers) {
            assert!(received.contains("x-sum: 6") && received.ends_with(END), "{protocol}: {received}");
            assert!(!received.contains("forged"), "{protocol}: {received}");
        }
    }
    // Over HTTP/2 and HTTP/3 these are malformed.
    let site = Site::new(http1_server(""), "request_trailers: on,", "http1");
    let received = site.http1(&[
        ("Connection", "forged"),
        ("Upgrade", "forged"),
        ("Keep_Alive", "forged"),
        ("TE", "forged"),
        ("Transfer-Encoding", "forged"),
        ("X-Sum", "6"),
    ]);
    assert!(received.contains("x-sum: 6") && !received.contains("forged"), "{received}");
}

/// Mirrors receive the trailers that the upstream receives.
#[test]
fn trailers_to_mirrors_follow_the_same_rules() {
    let trailers: Vec<_> = OWNED.map(|name| (name, "forged")).into_iter().chain([("x-sum", "6")]).collect();
    let (one, first) = mirror(http1_recorder);
    let (two, second) = mirror(http2_recorder);
    for (address, received, more, protocol, passes) in [
        (one, &first, "", "http1", false),
        (one, &first, "request_trailers: on,", "http1", true),
        (two, &second, "", "http2", true),
    ] {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let keys = KEYS.replace("MORE", &format!("{more} mirror: [shadow],"));
        let keys = keys.replace("upstream: web,\n    basic", "basic");
        let upstreams = format!(
            "web: {{servers: [\"{}\"]}}, shadow: {{servers: [\"{address}\"], protocol: {protocol}}}",
            http1_server("")
        );
        let file = Configuration::new(&document(&[listener(&pair, &keys)], &upstreams));
        let gateway = Gateway::with_config(&file.path(), 1);
        let site = Site { certificates, gateway, _file: file };
        for answer in site.received(&trailers) {
            assert!(answer.contains("abc") && !answer.contains("forged"), "{answer}");
            let copy = received.recv_timeout(PATIENCE).expect("a copy");
            assert_eq!(copy.contains("x-sum: 6"), passes, "{protocol}: {copy}");
            assert!(!copy.contains("forged"), "{protocol}: {copy}");
        }
    }
}

/// Starts a server that tells what it has received.
fn mirror(start: impl FnOnce(mpsc::Sender<String>) -> SocketAddr) -> (SocketAddr, mpsc::Receiver<String>) {
    let (sender, received) = mpsc::channel();
    (start(sender), received)
}

fn http1_recorder(record: mpsc::Sender<String>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            let record = record.clone();
            thread::spawn(move || {
                let mut reader = BufReader::new(tcp);
                while let Some(received) = request(&mut reader) {
                    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                    if record.send(received).is_err() || reader.get_mut().write_all(response).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn http2_recorder(record: mpsc::Sender<String>) -> SocketAddr {
    accept(move |stream| {
        let record = record.clone();
        async move {
            let mut connection =
                h2::server::Builder::new().handshake::<_, Cursor<Vec<u8>>>(stream).await.ok()?;
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                let record = record.clone();
                tokio::spawn(async move {
                    record.send(trailers_of(request).await?).ok()?;
                    respond.send_response(http::Response::new(()), true).ok()
                });
            }
            Some(())
        }
    })
}

/// Only fields that the route does not change, and that no message has as trailers.
#[test]
fn trailers_of_responses_follow_the_same_rules() {
    let server = http1_server(
        "Set-Cookie: forged\r\nConnection: forged\r\nX-Set: forged\r\nX_Removed: forged\r\nX-Sum: 7\r\n\
         Content-Length: 9\r\nX-Forwarded-For: forged\r\n",
    );
    let site = Site::new(server, "", "http1");
    let answer = site.http3(&[("x-sum", "6")]);
    assert_eq!(answer.trailers, [("x-sum".to_owned(), "7".to_owned())]);
    assert_eq!(answer.header("x-set"), Some("ours"));
}
