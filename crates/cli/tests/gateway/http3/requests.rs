//! All kinds of requests, as over HTTP/2.

use super::Served;
use crate::support::{
    Nginx, PATIENCE, curl, echo_server, eventually,
    http3::{Answer, Sending},
    output, ports,
};
use quiche::h3::Header;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener},
    process::Command,
    thread,
};

/// Returns bytes without repetitions.
fn content(length: usize) -> Vec<u8> {
    (0..length as u32).flat_map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()).take(length).collect()
}

#[test]
fn a_request_is_routed_answered_counted_and_logged() {
    let nginx = Nginx::new(
        "return 200 \"$http_x_forwarded_for $http_x_forwarded_proto $http_host $http_x_protocol\";",
    );
    let log = tempfile::tempdir().expect("a directory");
    let log = log.path().join("access.log");
    let mut served = Served::new(
        "routes: [{path: /here, respond: here}, {host: other.example, respond: other}], upstream: web, \
         request_headers: [{set: X-Protocol, value: \"{protocol} {tls_version}\"}]",
        &format!("web: {{servers: [\"{}\"]}}", nginx.address()),
    );
    let text = std::fs::read_to_string(served.file.path()).expect("the file");
    served.file.replace(&format!("{text}access_log: {}\n", log.display()));
    served.gateway.signal("HUP");
    served.gateway.wait_for_log("configuration reloaded");
    let mut client = served.connect();
    assert_eq!(client.get("/here").text(), "here");
    let forwarded = client.get("/there?a=b");
    assert_eq!((forwarded.status, &*forwarded.text()), (200, "127.0.0.1 https localhost HTTP/3 TLSv1.3"));
    assert_eq!(forwarded.header("alt-svc"), None, "it knows");
    let other = client.exchange(&Sending { method: "HEAD", path: "/here", headers: &[], body: b"" });
    assert_eq!((other.status, other.body.len(), other.header("content-length")), (200, 0, Some("4")));
    assert_eq!(served.gateway.metric("quadrille_requests_total", &["2xx"]), 3.0);
    assert_eq!(served.gateway.metric("quadrille_quic_handshakes_total", &[]), 1.0);
    assert_eq!(served.gateway.metric("quadrille_handshakes_total", &["rsa2048", "TLSv1.3"]), 1.0);
    let lines = || std::fs::read_to_string(&log).unwrap_or_default();
    eventually("the requests are not in the log", || lines().lines().count() == 3);
    assert!(lines().lines().all(|line| line.contains("protocol=\"HTTP/3\"")), "{}", lines());
    assert!(lines().contains("path=\"/there\"") && lines().contains("upstream=\"web\""), "{}", lines());
}

#[test]
fn bodies_pass_in_both_directions_whole() {
    let echo = echo_server();
    let mut served = Served::new("upstream: echo", &format!("echo: {{servers: [\"{echo}\"]}}"));
    let mut client = served.connect();
    for length in [1, 1000, 300_000, 5_000_000] {
        let body = content(length);
        let length = length.to_string();
        let request = Sending {
            method: "POST",
            path: "/",
            headers: &[("content-length", &length), ("content-type", "x/y")],
            body: &body,
        };
        let answer = client.exchange(&request);
        assert_eq!((answer.status, answer.ended), (200, Some(Ok(()))));
        let at = answer.body.windows(4).position(|window| window == b"\r\n\r\n").expect("a header") + 4;
        assert!(answer.body[at..] == body[..], "{length}: {} bytes returned", answer.body.len() - at);
        assert!(answer.text().contains("content-type: x/y"), "{length}");
    }
}

#[test]
fn many_requests_share_a_connection() {
    let nginx = Nginx::new("location / { return 200 $uri; }");
    let mut served = Served::new("upstream: web", &format!("web: {{servers: [\"{}\"]}}", nginx.address()));
    let mut client = served.connect();
    let ids: Vec<_> =
        (0..500).map(|number| (number, client.start("GET", &format!("/{number}"), &[], true))).collect();
    for (number, id) in ids {
        let answer = client.finish(id);
        assert_eq!((answer.status, answer.text()), (200, format!("/{number}")));
    }
    assert_eq!(served.gateway.metric("quadrille_quic_handshakes_total", &[]), 1.0);
}

/// Starts a server that responds to every request with these bytes after the header, and then reads the rest.
fn server(answer: &'static [u8]) -> (SocketAddr, std::sync::mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    let (told, heard) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            let told = told.clone();
            thread::spawn(move || {
                let (mut reader, mut writer) = (BufReader::new(tcp.try_clone().expect("a copy")), tcp);
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                    line.clear();
                }
                let _ = writer.write_all(answer);
                let mut rest = Vec::new();
                let _ = reader.read_to_end(&mut rest);
                let _ = told.send(rest);
            });
        }
    });
    (address, heard)
}

#[test]
fn trailers_and_informational_responses_pass() {
    let (address, _heard) = server(
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\
          Trailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n",
    );
    let mut served = Served::new("upstream: s", &format!("s: {{servers: [\"{address}\"]}}"));
    let mut client = served.connect();
    let answer = client.get("/");
    assert_eq!((answer.status, &answer.informational[..], &*answer.text()), (200, &[103][..], "abc"));
    assert_eq!(answer.trailers, [("x-sum".to_owned(), "6".to_owned())]);
    assert_eq!(answer.ended, Some(Ok(())));
}

#[test]
fn a_clients_trailers_reach_the_server() {
    let (address, heard) = server(b"");
    let mut served = Served::new(
        "routes: [{upstream: s, request_trailers: on}]",
        &format!("s: {{servers: [\"{address}\"], timeouts: {{read: 1s}}}}"),
    );
    let mut client = served.connect();
    let id = client.start("POST", "/", &[("te", "trailers")], false);
    assert_eq!(client.write(id, b"abc", false), 3);
    client.write_trailers(id, &[("x-sum", "6")]);
    assert_eq!(client.finish(id).status, 504, "the server does not respond");
    let body = heard.recv_timeout(PATIENCE).expect("a body");
    assert_eq!(String::from_utf8_lossy(&body), "3\r\nabc\r\n0\r\nx-sum: 6\r\n\r\n");
}

/// A server must never receive a body whose length differs from the header: the rest would be another request.
#[test]
fn a_body_is_as_long_as_its_header_says() {
    let (address, heard) = server(b"");
    let mut served = Served::new("upstream: s", &format!("s: {{servers: [\"{address}\"]}}"));
    let mut client = served.connect();
    let id = client.start("POST", "/", &[("content-length", "3")], false);
    client.write(id, b"abcGET /smuggled HTTP/1.1\r\n\r\n", true);
    assert_eq!(client.finish(id).status, 400);
    let id = client.start("POST", "/", &[("content-length", "30")], false);
    client.write(id, b"abc", true);
    assert_eq!(client.finish(id).status, 400);
    for body in heard.iter().take(2) {
        assert!(body.len() <= 3, "{}", String::from_utf8_lossy(&body));
    }
    let id = client.start("POST", "/", &[("content-length", "3")], true);
    assert_eq!(client.finish(id).ended, Some(Err(MESSAGE_ERROR)));
}

const MESSAGE_ERROR: u64 = 0x10e;

#[test]
fn a_malformed_request_ends_only_its_stream() {
    let mut served = Served::new("respond: hi", "");
    let mut client = served.connect();
    for (name, value) in [("connection", "close"), ("transfer-encoding", "chunked"), (":path", "/again")] {
        let id = client.start("GET", "/", &[(name, value)], true);
        let Answer { ended, status, .. } = client.finish(id);
        assert_eq!((status, ended), (0, Some(Err(MESSAGE_ERROR))), "{name}");
    }
    let hosts =
        [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/"), ("host", "b")];
    let fields: Vec<_> =
        hosts.iter().map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes())).collect();
    let id = client.start_with(&fields, true);
    assert_eq!(client.finish(id).status, 400);
    let id = client.start_with(&fields[..2], true);
    assert_eq!(client.finish(id).ended, Some(Err(MESSAGE_ERROR)));
    assert_eq!(client.get("/").text(), "hi");
}

#[test]
fn a_header_may_be_large_but_not_that_large() {
    let mut served = Served::new("respond: hi", "");
    for (length, status) in [(12_000, 200), (80_000, 431)] {
        let mut client = served.connect();
        let value = "x".repeat(length);
        let id = client.start("GET", "/", &[("x-large", &value)], true);
        assert_eq!(client.finish(id).status, status, "{length}");
    }
    let mut client = served.connect();
    let value = "x".repeat(200_000);
    client.start("GET", "/", &[("x-large", &value)], true);
    while client.quic().peer_error().is_none() {
        client.turn();
    }
    assert_eq!(client.quic().peer_error().map(|error| error.error_code), Some(0x107), "H3_EXCESSIVE_LOAD");
}

#[test]
fn a_request_that_is_given_up_is_given_up_at_the_server() {
    let (address, heard) = server(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nabc");
    let mut served = Served::new("upstream: s", &format!("s: {{servers: [\"{address}\"]}}"));
    let mut client = served.connect();
    let id = client.start("GET", "/", &[], true);
    client.run_until("no header", |client| client.answer(id).status == 200);
    client.cancel(id);
    eventually("the server still has its connection", || {
        client.turn();
        heard.try_recv().is_ok()
    });
}

/// Streams that are opened and reset at once count as requests.
#[test]
fn a_client_that_only_resets_streams_is_disconnected() {
    let (address, _heard) = server(b"");
    let mut served = Served::new("upstream: s", &format!("s: {{servers: [\"{address}\"]}}"));
    let mut client = served.connect();
    for _ in 0..5000 {
        let id = client.start("GET", "/", &[], true);
        client.turn();
        client.cancel(id);
        if client.quic().peer_error().is_some() {
            break;
        }
    }
    assert_eq!(client.closed_with(), 0x107, "H3_EXCESSIVE_LOAD");
}

#[test]
fn clients_of_tcp_receive_alt_svc() {
    let nginx = Nginx::new("add_header Alt-Svc 'h3=\":1\"'; return 200 ok;");
    let upstreams = format!("web: {{servers: [\"{}\"]}}", nginx.address());
    for (keys, expected) in [
        ("", Some("h3=\":PORT\"; ma=86400")),
        (", alt_svc: 'h3=\":443\"; ma=60'", Some("h3=\":443\"; ma=60")),
        (", alt_svc: off", None),
    ] {
        let served = Served::new(
            &format!("routes: [{{path: /here, respond: here}}], upstream: web{keys}"),
            &upstreams,
        );
        for path in ["/here", "/there"] {
            for version in ["--http1.1", "--http2"] {
                let head = curl(
                    &served.gateway,
                    &served.certificates,
                    &["-D", "-", "-o", "/dev/null", version],
                    path,
                );
                let said = head
                    .lines()
                    .find_map(|line| line.strip_prefix("alt-svc: ").or(line.strip_prefix("Alt-Svc: ")));
                let expected = expected.map(|text| text.replace("PORT", &served.gateway.port().to_string()));
                // If the gateway sends no `Alt-Svc`, a server's own is kept.
                let expected = expected.or((path == "/there").then(|| "h3=\":1\"".to_owned()));
                assert_eq!(said.map(str::to_owned), expected, "{keys} {path} {version}");
            }
        }
    }
}

#[test]
fn what_http3_cannot_be_with_is_said_before_anything_is_served() {
    let certificates = crate::support::Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    for (keys, said) in [
        ("mode: tcp, upstream: web", "HTTP/3 requires `mode: http` with TLS"),
        ("respond: hi, tls: {max: 1.2}", "HTTP/3 needs TLS 1.3"),
        ("respond: hi, proxy_protocol: required", "the PROXY protocol does not support HTTP/3"),
    ] {
        let listener = crate::support::listener(&pair, &format!("http3: on, {keys}"));
        let file = crate::support::Configuration::new(&crate::support::document(
            &[listener],
            "web: {servers: ['127.0.0.1:1']}",
        ));
        let mut check: Command = crate::support::quadrille("check");
        let (good, text) = output(check.arg(file.path()));
        assert!(!good && text.contains(said), "{keys}: {text}");
    }
}

/// RFC 9218: of two large responses, the more urgent one is sent first even if requested later. Without priorities,
/// the older one is.
#[test]
fn what_a_client_wants_first_comes_first() {
    let nginx = Nginx::new("");
    let size = 6_000_000;
    std::fs::write(nginx.file("large"), vec![b'x'; size]).expect("a file");
    let mut served = Served::new("upstream: web", &format!("web: {{servers: [\"{}\"]}}", nginx.address()));
    served.client.config().set_max_stream_window(1 << 24);
    served.client.config().set_initial_max_stream_data_bidi_local(1 << 24);
    served.client.config().set_max_connection_window(1 << 25);
    served.client.config().set_initial_max_data(1 << 25);
    // The part of the first that has arrived when the second is complete.
    let mut first_when_second_ends = |first: &[(&str, &str)], second: &[(&str, &str)], update: bool| {
        let mut client = served.connect();
        let early = client.start("GET", "/large", first, true);
        client.run_until("nothing comes", |client| !client.answer(early).body.is_empty());
        let late = client.start("GET", "/large", second, true);
        if update {
            client.update_priority(early, 7);
            client.update_priority(late, 0);
        }
        client.run_until("it does not end", |client| client.answer(late).ended.is_some());
        let come = client.answer(early).body.len();
        assert_eq!((client.finish(early).body.len(), client.finish(late).body.len()), (size, size));
        come
    };
    let urgent = first_when_second_ends(&[("priority", "u=7")], &[("priority", "u=0")], false);
    let later = first_when_second_ends(&[], &[], true);
    let silent = first_when_second_ends(&[], &[], false);
    let idle = first_when_second_ends(&[("priority", "u=0")], &[("priority", "u=7")], false);
    assert!(urgent < size / 2 && later < size / 2, "{urgent} and {later} of {size}");
    assert!(silent == size, "{silent} of {size}");
    assert!(idle == size, "{idle} of {size}");
}
