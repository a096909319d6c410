//! Requests whose outcomes are compared: those of nginx and of the gateway.

use super::PATIENCE;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

/// A request: method, host, path and further header lines.
pub type Request<'r> = (&'r str, &'r str, &'r str, &'r str);

/// Outcome of a request, for the client and the server.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub status: u16,
    pub location: Option<String>,
    /// The request line without its version, `Host`, and the headers that begin with `X-`, as the server received them.
    pub received: Option<Vec<String>>,
}

/// Name `alice`, password `secret`.
pub const USERS: &str = "alice:$6$quadrille$1rdruUGPLbXa/6U45M7vYsexbrmy7eVIcYC2DneT0RbiOQ1DhWh34U.xswWu/sPsvTM9D8HPzm1ViWG7CoYKK.\n";

/// Sends a request, and returns its outcome.
pub fn outcome(address: SocketAddr, request: &Request<'_>) -> Outcome {
    let response = exchange(address, request);
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect(&response);
    let location = header(head, "location").map(|value| value.replace(&format!(":{}", address.port()), ""));
    Outcome { status, location, received: received(body) }
}

/// Returns the value of a header of a response.
pub fn header(head: &str, name: &str) -> Option<String> {
    head.lines().find_map(|line| {
        let (known, value) = line.split_once(": ")?;
        known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    })
}

/// Sends a request, and returns the whole response.
pub fn exchange(address: SocketAddr, (method, host, path, headers): &Request<'_>) -> String {
    let mut tcp = TcpStream::connect(address).expect("a connection");
    tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
    tcp.write_all(request.as_bytes()).expect("a request");
    let mut response = Vec::new();
    // A response to a request without its body may be followed by a reset.
    let _ = tcp.read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}

/// Returns what an echoed request shows.
fn received(body: &str) -> Option<Vec<String>> {
    let mut lines = body.lines();
    let line = lines.next().filter(|line| line.contains(" HTTP/1."))?;
    let mut seen = vec![line.rsplit_once(' ')?.0.to_owned()];
    // The gateway always sends these, nginx where they are configured.
    let always =
        ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-request-id"];
    let mut headers: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .filter(|(name, _)| name == "host" || name.starts_with("x-") && !always.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    headers.sort();
    seen.extend(headers);
    Some(seen)
}

/// Returns a GET of each path on a host.
pub fn gets<'r>(host: &'r str, paths: &[&'r str]) -> Vec<Request<'r>> {
    paths.iter().map(|path| ("GET", host, *path, "")).collect()
}
