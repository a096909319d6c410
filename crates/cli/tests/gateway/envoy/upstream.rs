//! An upstream that reports the requests that it received.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Serves until the process ends: `/headers`, `/tokens`, `/asked` and `/named` return some headers, `/told` returns
/// the headers that Envoy adds, `/flaky` fails two of three times, `/slow` never responds, and all others return path
/// and host.
pub(super) fn start() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let failures = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let failures = Arc::clone(&failures);
            thread::spawn(move || answer(&stream, &failures));
        }
    });
    address
}

fn answer(stream: &TcpStream, failures: &AtomicUsize) -> Option<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let of = |name: &str| {
        let mut values: Vec<_> = headers.iter().filter_map(|line| line.split_once(':')).collect();
        values.retain(|(key, _)| key.eq_ignore_ascii_case(name));
        values.iter().map(|(_, value)| value.trim()).collect::<Vec<_>>().join(",")
    };
    let mut status = "200 OK";
    let body = match path.as_str() {
        _ if path.starts_with("/flaky") && failures.fetch_add(1, Ordering::Relaxed) % 3 < 2 => {
            status = "500 Internal Server Error";
            String::new()
        }
        _ if path.starts_with("/headers") => {
            ["x-added", "x-set", "x-absent", "x-gone"].map(|name| format!("{name}={}", of(name))).join("|")
        }
        _ if path.starts_with("/tokens") => {
            let names = [
                "authorization",
                "x-token",
                "cookie",
                "x-payload",
                "x-role",
                "x-number",
                "x-fraction",
                "x-yes",
                "x-list",
                "x-inner",
            ];
            let told: Vec<_> = names.iter().map(|name| format!("{name}={}", of(name))).collect();
            format!("{path} {}", told.join("|"))
        }
        _ if path.starts_with("/asked") => {
            let names = ["authorization", "x-ext-authz", "x-user", "x-more", "x-secret", "x-told-one"];
            let told: Vec<_> = names.iter().map(|name| format!("{name}={}", of(name))).collect();
            format!("{path} {}", told.join("|"))
        }
        _ if path.starts_with("/told") || path.starts_with("/flaky/told") => {
            let reported = |line: &&String| {
                let line = line.to_ascii_lowercase();
                ["x-envoy-", "x-forwarded-client-cert", "x-mine"].iter().any(|name| line.starts_with(name))
            };
            let mut told: Vec<&str> = headers.iter().filter(reported).map(String::as_str).collect();
            told.sort();
            format!("{path} {}", told.join("|"))
        }
        _ if path.starts_with("/named") => {
            let names = ["x-request-id", "x-user", "authorization"];
            names.map(|name| format!("{name}={}", of(name))).join("|")
        }
        _ => format!("{path} {} {}", of("host"), of("x-told-server")).trim_end().to_owned(),
    };
    let mut stream = stream;
    if path.starts_with("/slow") {
        return io::copy(&mut stream, &mut io::sink()).ok().map(|_| ());
    }
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nx-upstream: u\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .ok()
}
