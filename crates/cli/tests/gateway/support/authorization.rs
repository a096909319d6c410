//! Authorization servers over HTTP and gRPC that decide by the header `x-ext-authz`.

use super::grpc_service::{Fields, field, grpc_service};
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

/// An authorization server over HTTP: `allow` is allowed, with response headers, `fail` is an error, and other values
/// are denied with 401 and the received data. Serves until the process ends.
pub fn http_authorization() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || while answer(&stream).is_some() {});
        }
    });
    address
}

fn answer(mut stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut lines = reader.by_ref().lines().map_while(Result::ok);
    let line = lines.next()?;
    let headers: BTreeMap<String, String> = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            Some(line.split_once(": ")?).map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        })
        .collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let told = told(line.strip_suffix(" HTTP/1.1")?, &headers, &String::from_utf8_lossy(&body));
    let (status, more, body) = match headers.get("x-ext-authz").map(String::as_str) {
        Some("allow") => (
            "200 OK",
            "x-user: alice\r\nx-more: more\r\nx-client: in\r\nx-envoy-auth-headers-to-remove: x-secret\r\n",
            String::new(),
        ),
        Some("fail") => ("503 Service Unavailable", "", String::new()),
        _ => ("401 Unauthorized", "x-client: out\r\nx-other: other\r\nwww-authenticate: Basic\r\n", told),
    };
    let head = format!("HTTP/1.1 {status}\r\n{more}content-length: {}\r\n\r\n", body.len());
    // A body after the response to HEAD would be read as the next response (RFC 9112, section 6.3).
    let body = if line.starts_with("HEAD ") { "" } else { &body };
    stream.write_all((head + body).as_bytes()).ok()
}

/// Returns the data that a server received, without proxy-specific parts.
fn told(line: &str, headers: &BTreeMap<String, String>, body: &str) -> String {
    let own = ["x-forwarded-", "x-envoy-", "x-request-id", "content-length", "user-agent", "accept"];
    let kept = headers.iter().filter(|(name, _)| !own.iter().any(|own| name.starts_with(own)));
    let kept: Vec<_> = kept.map(|(name, value)| format!("{name}={value}")).collect();
    let partial = headers.get("x-envoy-auth-partial-body").map_or("-", String::as_str);
    format!("{line} {} {partial} {body}", kept.join("|"))
}

/// An authorization server over gRPC with the same decisions. Serves until the process ends.
pub fn grpc_authorization() -> SocketAddr {
    grpc_service("/envoy.service.auth.v3.Authorization/Check", check)
}

fn check(message: &[u8]) -> Option<Vec<u8>> {
    let attributes = Fields::of(message).message(1);
    let http = attributes.message(4).message(2);
    let headers: BTreeMap<String, String> =
        http.all(3).map(|entry| (Fields::of(entry).text(1), Fields::of(entry).text(2))).collect();
    let line = format!(
        "{} {} {} {} {} {}",
        http.text(2),
        http.text(4),
        http.text(5),
        http.text(6),
        http.text(10),
        attributes.message(1).text(4)
    );
    let header = |name: &str, value: &str| {
        [field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat())].concat()
    };
    match headers.get("x-ext-authz").map(String::as_str) {
        Some("fail") => None,
        Some("allow") => {
            let ok = [
                field(2, &header("x-user", "alice")),
                field(2, &[header("x-more", "more"), field(2, &[8, 1])].concat()),
                field(5, b"x-secret"),
                field(6, &header("x-client", "in")),
            ];
            Some([field(1, &[]), field(3, &ok.concat())].concat())
        }
        _ => {
            // PERMISSION_DENIED, and 401.
            let denied = [
                field(1, &[8, 0x91, 3]),
                field(2, &header("x-client", "out")),
                field(3, told(&line, &headers, &(http.text(11) + &http.text(12))).as_bytes()),
            ];
            Some([field(1, &[8, 7]), field(2, &denied.concat())].concat())
        }
    }
}
