//! `Content-Length` of responses without a body (RFC 9110 section 8.6), from both kinds of servers to all clients.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Http3Client, accept, document, http3::Sending, listener,
    output,
};
use std::{io::Cursor, net::SocketAddr, process::Command};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Lines of `Content-Length`, and whether a server may send them (`None`: only an HTTP/1.1 server may).
const LENGTHS: [(&[&str], Option<bool>); 7] = [
    (&["12"], Some(true)),
    (&["12", "12"], Some(true)),
    (&["12, 12"], None),
    (&["12", "13"], Some(false)),
    (&["12, 13"], Some(false)),
    (&["+12"], Some(false)),
    (&["x"], Some(false)),
];

const STATUSES: [u16; 3] = [200, 204, 304];

/// Returns the status and lines that the path `/STATUS/INDEX` requests.
fn wanted(path: &str) -> (u16, &'static [&'static str]) {
    let (status, index) = path[1..].split_once('/').expect("a status");
    (status.parse().expect("a status"), LENGTHS[index.parse::<usize>().expect("an index")].0)
}

fn http1_server() -> SocketAddr {
    accept(|stream| async move {
        let mut stream = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if stream.read_line(&mut head).await.ok()? == 0 {
                    return None;
                }
            }
            let (status, lines) = wanted(head.split(' ').nth(1)?);
            let lines: String = lines.iter().map(|line| format!("Content-Length: {line}\r\n")).collect();
            let response = format!("HTTP/1.1 {status} X\r\n{lines}\r\n");
            stream.get_mut().write_all(response.as_bytes()).await.ok()?;
        }
        #[expect(unreachable_code, reason = "the type of the result")]
        Some(())
    })
}

fn http2_server() -> SocketAddr {
    accept(|stream| async move {
        let builder = h2::server::Builder::new();
        let mut connection = builder.handshake::<_, Cursor<Vec<u8>>>(stream).await.ok()?;
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            let (status, lines) = wanted(request.uri().path());
            let mut response = http::Response::new(());
            *response.status_mut() = http::StatusCode::from_u16(status).ok()?;
            for line in lines {
                response.headers_mut().append("content-length", line.parse().ok()?);
            }
            let _ = respond.send_response(response, true);
        }
        Some(())
    })
}

/// Returns the expected status, of which an error has another length.
fn expected(status: u16, index: usize, http2: bool) -> u16 {
    let valid = LENGTHS[index].1.unwrap_or(!http2);
    // An HTTP/1.1 response of this status has no length at all, and the field is ignored.
    if valid || status == 204 && !http2 { status } else { 502 }
}

fn check(case: &str, status: u16, lengths: &[&str], expected: u16) {
    assert_eq!(status, expected, "{case}");
    match expected {
        200 => assert_eq!(lengths, ["12"], "{case}"),
        204 => assert!(lengths.is_empty(), "{case}: {lengths:?}"),
        304 => assert!(matches!(lengths, [] | ["12"]), "{case}: {lengths:?}"),
        _ => assert!(lengths.len() <= 1, "{case}: {lengths:?}"),
    }
}

#[test]
fn a_response_without_a_body_has_one_valid_length_or_none() {
    for http2 in [false, true] {
        let (server, protocol) = if http2 { (http2_server(), "http2") } else { (http1_server(), "http1") };
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let upstreams = format!("web: {{servers: ['{server}'], protocol: {protocol}}}");
        let file = Configuration::new(&document(&[listener(&pair, "http3: on, upstream: web")], &upstreams));
        let gateway = Gateway::with_config(&file.path(), 1);
        let mut http3 = Http3Client::new(&certificates).connect(gateway.address(0));
        for (status, index) in
            STATUSES.iter().flat_map(|status| (0..LENGTHS.len()).map(move |at| (*status, at)))
        {
            let (path, expected) = (format!("/{status}/{index}"), expected(status, index, http2));
            let case = |client: &str| format!("{client} {protocol} {status} {:?}", LENGTHS[index].0);
            // The second request must not be lost.
            let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
            let head = format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            client.send(head.repeat(2).as_bytes()).expect("sending");
            for _ in 0..2 {
                let response = client.head().expect("a response");
                check(&case("HTTP/1.1"), response.status, &lengths(&response.headers), expected);
            }
            let (seen, headers) = over_http2(&gateway, &certificates, &path);
            check(&case("HTTP/2"), seen, &lengths(&headers), expected);
            let response = http3.exchange(&Sending { method: "HEAD", path: &path, headers: &[], body: b"" });
            check(&case("HTTP/3"), response.status, &lengths(&response.headers), expected);
        }
    }
}

fn lengths(headers: &[(String, String)]) -> Vec<&str> {
    headers.iter().filter(|(name, _)| name == "content-length").map(|(_, value)| &**value).collect()
}

/// Returns the status and the headers that curl receives.
fn over_http2(gateway: &Gateway, certificates: &Certificates, path: &str) -> (u16, Vec<(String, String)>) {
    let port = gateway.port();
    let mut curl = Command::new("curl");
    curl.args(["--http2", "--silent", "--show-error", "--head", "--max-time", "180", "--cacert"]);
    curl.arg(certificates.ca()).args(["--resolve", &format!("localhost:{port}:127.0.0.1")]);
    let (ok, said) = output(curl.arg(format!("https://localhost:{port}{path}")));
    assert!(ok, "{path}: {said}");
    let status = said.split(' ').nth(1).and_then(|status| status.trim().parse().ok()).expect("a status");
    let fields = said.lines().filter_map(|line| line.split_once(':'));
    (status, fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect())
}
