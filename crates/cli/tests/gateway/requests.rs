//! Requests and responses at their limits: sizes, times, and conversion between HTTP versions.

use super::cpu::cpu_nanoseconds;
use crate::support::{
    Certificates, Client, Configuration, Connector, Gateway, Nginx, PATIENCE, curl, curl_status, document,
    eventually,
    frames::{DATA, Frames, GOAWAY, HEADERS, RST_STREAM, Tunnel},
    listener, output, ports,
};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

const CLIENTS: [&str; 2] = ["--http1.1", "--http2"];

/// Starts a server that runs this on each connection once it has read a request's header.
fn server(answer: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            let answer = Arc::clone(&answer);
            thread::spawn(move || {
                read_header(&tcp);
                answer(tcp);
            });
        }
    });
    address
}

fn read_header(tcp: &TcpStream) {
    let mut lines = BufReader::new(tcp).lines();
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
}

/// Starts a gateway in front of this server, with these keys for its listener and its upstream.
fn before(server: SocketAddr, listening: &str, upstream: &str) -> (Certificates, Gateway, Configuration) {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let keys = format!("upstream: web{listening}");
    let upstreams = format!("web: {{servers: [\"{server}\"]{upstream}}}");
    let file = Configuration::new(&document(&[listener(&pair, &keys)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    (certificates, gateway, file)
}

#[test]
fn a_header_may_be_large_but_not_that_large() {
    let nginx = Nginx::new("large_client_header_buffers 8 64k; return 200 $http_x_last;");
    for (limits, length, status) in
        [("", 40_000, 200), ("", 80_000, 431), (", limits: {header: 8KiB}", 9_000, 431)]
    {
        let (certificates, gateway, _file) = before(nginx.address(), limits, "");
        let connector = Connector::new(&certificates);
        let value = "x".repeat(length);
        let mut client = connector.http(gateway.address(0)).expect("a connection");
        let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX-Large: {value}\r\n\r\n");
        client.send(request.as_bytes()).expect("sending");
        assert_eq!(client.response().expect("a response").status, status, "HTTP/1.1, {length}");
        let mut frames = Frames::connect(&connector, gateway.address(0), 65_535);
        frames.get_with(1, "/", "x-large", &value);
        let answer = frames.expect(HEADERS).payload;
        // 200 is in the static table (RFC 7541 appendix A); 431 is a literal, in Huffman's code or not.
        assert_eq!(answer.first() == Some(&0x88), status == 200, "HTTP/2, {length}: {answer:?}");
    }
}

/// One-byte records cost the same at any position of a header: parsing does not restart for each of them.
#[test]
fn a_header_in_records_of_one_byte_costs_others_nothing() {
    const BYTES: usize = 300;
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    // One event loop, so that a request's response shows that the byte before it was read.
    let gateway = Gateway::with_flags(&pair, &["--respond", "ok", "--threads", "1"]);
    let connector = Connector::new(&certificates);
    let mut crumbs = connector.http(gateway.address(0)).expect("a connection");
    let mut other = connector.http(gateway.address(0)).expect("a connection");
    crumbs.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ").expect("sending");
    let mut cost_of_bytes = |crumbs: &mut Client| {
        let before = cpu_nanoseconds(&gateway);
        for _ in 0..BYTES {
            crumbs.send(b"x").expect("sending");
            assert_eq!(other.get("/").expect("a response").text(), "ok");
        }
        cpu_nanoseconds(&gateway) - before
    };
    cost_of_bytes(&mut crumbs);
    let first = cost_of_bytes(&mut crumbs);
    (0..55).for_each(|_| crumbs.send(&[b'x'; 1024]).expect("sending"));
    let last = cost_of_bytes(&mut crumbs);
    assert!(last < 2.0 * first, "{first} ns for the first bytes, {last} ns for the last");
    // A header may be up to 64 KiB.
    let _ = crumbs.send(&[b'x'; 16 * 1024]);
    assert_eq!(crumbs.response().expect("a response").status, 431);
}

/// Starts a server that sends without end, and reports when its connection is closed.
fn endless_server() -> (SocketAddr, mpsc::Receiver<()>) {
    let (gone, heard) = mpsc::channel();
    let address = server(move |mut tcp| {
        let _ = tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n");
        while tcp.write_all(&[b'x'; 65536]).is_ok() {}
        let _ = gone.send(());
    });
    (address, heard)
}

#[test]
fn an_unread_body_releases_the_server() {
    let (endless, gone) = endless_server();
    let (certificates, gateway, _file) = before(endless, ", timeouts: {idle: 1s}", "");
    let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sending");
    gone.recv_timeout(PATIENCE).expect("the server is still held");
    drop(client);
}

#[test]
fn a_stream_whose_window_stays_shut_is_reset() {
    let (endless, gone) = endless_server();
    let (certificates, gateway, _file) = before(endless, ", timeouts: {idle: 1s}", "");
    let mut frames = Frames::connect(&Connector::new(&certificates), gateway.address(0), 0);
    frames.get(1, "/");
    assert_eq!(frames.expect(HEADERS).stream, 1);
    assert_eq!(frames.expect(RST_STREAM).stream, 1);
    gone.recv_timeout(PATIENCE).expect("the server is still held");
}

/// RFC 9113 section 6.9.1. h2spec tests the same (6.9.1, test 3) in three records: there the response may be complete
/// before the second one arrives, and a window for a closed stream has no effect.
#[test]
fn a_window_that_overflows_resets_its_stream() {
    const FLOW_CONTROL_ERROR: [u8; 4] = [0, 0, 0, 3];
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let gateway = Gateway::with_flags(&pair, &["--respond", "a body"]);
    for _ in 0..20 {
        let mut frames = Frames::connect(&Connector::new(&certificates), gateway.address(0), 65_535);
        frames.overflow_window(1);
        let reset = frames.expect(RST_STREAM);
        assert_eq!((reset.stream, &reset.payload[..]), (1, &FLOW_CONTROL_ERROR[..]));
    }
}

#[test]
fn only_websocket_switches_timeouts_off() {
    let silent = server(|mut tcp| drop(tcp.read_to_end(&mut Vec::new())));
    let (certificates, gateway, _file) = before(silent, "", ", retries: 0, timeouts: {read: 300ms}");
    for upgrade in ["h2c", "foo"] {
        let upgrade = format!("Upgrade: {upgrade}");
        let arguments = ["--http1.1", "-H", "Connection: Upgrade", "-H", &upgrade];
        assert_eq!(curl_status(&gateway, &certificates, &arguments, "/"), "504", "{upgrade}");
    }
}

#[test]
fn clients_of_a_removed_chain_are_closed_gracefully() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let chain = |name: &str| {
        document(&[listener(&pair, &format!("respond: ok, match: {{server_names: [{name}]}}"))], "")
    };
    let file = Configuration::new(&chain("localhost"));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut frames = Frames::connect(&Connector::new(&certificates), gateway.address(0), 65_535);
    frames.get(1, "/");
    assert_eq!(frames.expect(DATA).payload, b"ok");
    file.replace(&chain("other.example"));
    assert_eq!(frames.expect(GOAWAY).payload[4..8], [0; 4], "no error");
}

#[test]
fn clients_with_new_requirements_are_closed_gracefully() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let asking = |tls: &str| document(&[listener(&pair, &format!("respond: ok{tls}"))], "");
    let file = Configuration::new(&asking(""));
    let gateway = Gateway::with_config(&file.path(), 1);
    let connector = Connector::new(&certificates);
    let mut open = connector.http(gateway.address(0)).expect("a connection");
    let mut frames = Frames::connect(&connector, gateway.address(0), 65_535);
    frames.get(1, "/");
    assert_eq!(frames.expect(DATA).payload, b"ok");
    assert_eq!(open.get("/").expect("a response").header("connection"), None);
    let ca = certificates.ca();
    file.replace(&asking(&format!(", tls: {{client_auth: {{mode: required, ca: {}}}}}", ca.display())));
    assert_eq!(frames.expect(GOAWAY).payload[4..8], [0; 4], "no error");
    assert!(open.is_closed());
}

/// After a tenth of a second, the buffers of an idle connection are freed; later requests, in pieces or several at
/// once, are read as before.
#[test]
fn a_dormant_connection_wakes() {
    const DORMANT: Duration = Duration::from_millis(300);
    let nginx = Nginx::new("return 200 $request_uri;");
    let (certificates, gateway, _file) =
        before(nginx.address(), ", timeouts: {header: 600s, idle: 600s}", "");
    let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    for round in 0..2 {
        assert_eq!(client.get("/a").expect("a response").text(), "/a", "{round}");
        thread::sleep(DORMANT);
        client.send(b"GET /b HTT").expect("sending");
        thread::sleep(DORMANT);
        client.send(b"P/1.1\r\nHost: a\r\n\r\nGET /c HTTP/1.1\r\nHost: a\r\n\r\nGET /d").expect("sending");
        assert_eq!(client.response().expect("a response").text(), "/b");
        assert_eq!(client.response().expect("a response").text(), "/c");
        thread::sleep(DORMANT);
        client.send(b" HTTP/1.1\r\nHost: a\r\n\r\n").expect("sending");
        assert_eq!(client.response().expect("a response").text(), "/d");
        thread::sleep(DORMANT);
    }
}

#[test]
fn informational_responses_pass() {
    let hints = server(|mut tcp| {
        let _ = tcp.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\nConnection: X-Own\r\nX-Own: 1\r\n\r\n");
        thread::sleep(Duration::from_millis(100));
        let _ = tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    let (certificates, gateway, _file) = before(hints, "", "");
    for client in CLIENTS {
        let seen = curl(&gateway, &certificates, &[client, "-i"], "/").to_ascii_lowercase();
        let (first, second) = (seen.find(" 103"), seen.find(" 200"));
        assert!(first.is_some() && first < second && seen.contains("link: </style.css>"), "{client}: {seen}");
        assert!(!seen.contains("x-own"), "{client}: a hop-by-hop header is forwarded: {seen}");
    }
    let seen = curl(&gateway, &certificates, &["--http1.0", "--no-alpn", "-i"], "/");
    assert!(!seen.contains(" 103") && seen.contains(" 200"), "HTTP/1.0 has none: {seen}");
}

#[test]
fn informational_responses_come_before_the_response_that_came_with_them() {
    let hints = server(|mut tcp| {
        let _ = tcp.write_all(
            b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </more.css>\r\n\r\n\
              HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nfour",
        );
        thread::sleep(Duration::from_millis(100));
        let _ = tcp.write_all(b"more");
    });
    let (certificates, gateway, _file) = before(hints, "", "");
    for client in CLIENTS {
        let seen = curl(&gateway, &certificates, &[client, "-i"], "/").to_ascii_lowercase();
        let places = ["</style.css>", "</more.css>", " 200", "fourmore"].map(|part| seen.find(part));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{client}: {seen}");
    }
}

#[test]
fn a_client_that_waits_for_100_gets_it() {
    let nginx = Nginx::new("dav_methods PUT;");
    let (certificates, gateway, _file) = before(nginx.address(), "", "");
    let body = certificates.path("body");
    std::fs::write(&body, "b".repeat(5000)).expect("a file");
    for client in CLIENTS {
        let file = body.to_str().expect("UTF-8");
        // Longer than curl's time limit: without a response, it would never send.
        let wait = ["--expect100-timeout", "100", "-H", "Expect: 100-continue", "-T", file];
        curl(&gateway, &certificates, &[&[client], &wait[..]].concat(), "/file");
        assert_eq!(std::fs::read(nginx.file("file")).expect("the file").len(), 5000, "{client}");
        std::fs::remove_file(nginx.file("file")).expect("removing it");
    }
}

#[test]
fn trailers_pass() {
    let trailing = server(|mut tcp| {
        let _ = tcp.write_all(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n",
        );
    });
    let (certificates, gateway, _file) = before(trailing, "", "");
    for client in CLIENTS {
        let headers = certificates.path("headers");
        let dump = headers.to_str().expect("UTF-8");
        assert_eq!(curl(&gateway, &certificates, &[client, "-H", "TE: trailers", "-D", dump], "/"), "ok");
        let seen = std::fs::read_to_string(&headers).expect("headers").to_ascii_lowercase();
        assert!(seen.contains("x-sum: 7"), "{client}: {seen}");
    }
}

#[test]
fn websocket_works_over_http2() {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            let mut socket = tungstenite::accept(tcp).expect("a WebSocket handshake");
            while let Ok(message) = socket.read() {
                if message.is_text() || message.is_binary() {
                    socket.send(message).expect("echoing");
                }
            }
        }
    });
    let (certificates, gateway, _file) = before(address, "", "");
    let mut frames = Frames::connect(&Connector::new(&certificates), gateway.address(0), 65_535);
    frames.websocket(1, "/chat");
    assert_eq!(frames.expect(HEADERS).payload.first(), Some(&0x88), ":status 200");
    let tunnel = Tunnel { frames: &mut frames, stream: 1, received: Vec::new() };
    let role = tungstenite::protocol::Role::Client;
    let mut socket = tungstenite::WebSocket::from_raw_socket(tunnel, role, None);
    for text in ["one", "two"] {
        socket.send(tungstenite::Message::text(text)).expect("sending");
        assert_eq!(socket.read().expect("an echo"), tungstenite::Message::text(text));
    }
}

#[test]
fn a_server_without_websocket_opens_no_tunnel() {
    let nginx = Nginx::new("return 200 ok;");
    let (certificates, gateway, _file) = before(nginx.address(), "", "");
    let mut frames = Frames::connect(&Connector::new(&certificates), gateway.address(0), 65_535);
    frames.websocket(1, "/");
    assert_ne!(frames.expect(HEADERS).payload.first(), Some(&0x88), ":status 200 would open one");
}

/// Requests wait for a free connection instead of opening one each.
#[test]
fn a_burst_of_requests_shares_few_connections() {
    const STREAMS: u32 = 50;
    let opened = Arc::new(AtomicUsize::new(0));
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    let count = Arc::clone(&opened);
    thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            count.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || {
                let mut lines = BufReader::new(tcp.try_clone().expect("a clone")).lines();
                let mut tcp = tcp;
                while let Some(Ok(line)) = lines.next() {
                    if line.is_empty()
                        && tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    let (certificates, gateway, _file) = before(address, "", ", pool: 4");
    let mut frames = Frames::connect(&Connector::new(&certificates), gateway.address(0), 65_535);
    // On a busy machine, some rounds exceed the waiting time; without waiting, each request would open a connection.
    let mut next = 1;
    eventually("every burst opens many connections", || {
        let before = opened.load(Ordering::SeqCst);
        for _ in 0..STREAMS {
            frames.get(next, "/");
            next += 2;
        }
        let mut answered = 0;
        while answered < STREAMS {
            let frame = frames.next().expect("a frame");
            answered += u32::from(frame.kind == DATA);
            assert_ne!(frame.kind, RST_STREAM);
        }
        frames.open_window(0, 1000);
        opened.load(Ordering::SeqCst) - before < 15
    });
}

/// An unreachable upstream: a browser receives a page, a program its requested form, and no client internal details.
#[test]
fn an_error_of_the_gateways_own_has_the_form_that_the_client_asks_for() {
    let certificates = Certificates::new();
    let nowhere = format!("127.0.0.1:{}", ports::free());
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let gateway = Gateway::with_flags(&pair, &["--upstream", &nowhere]);
    let page = "<!doctype html>\n<html lang=\"en\">\n<title>502 Bad Gateway</title>\n<h1>502 Bad Gateway</h1>\n</html>\n";
    for (accept, content_type, body) in [
        ("*/*", "text/plain; charset=utf-8", "Bad Gateway\n"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8", page),
        ("application/json", "application/json", "{\"error\":\"Bad Gateway\",\"status\":502}\n"),
    ] {
        for client in CLIENTS {
            let mut curl = Command::new("curl");
            curl.args([client, "-sS", "--max-time", "600", "--cacert"]).arg(certificates.ca());
            curl.args(["--resolve", &format!("localhost:{}:127.0.0.1", gateway.port())]);
            curl.args(["-H", &format!("Accept: {accept}"), "-w", "%{http_code} %{content_type}"]);
            let (ok, said) = output(curl.arg(format!("https://localhost:{}/", gateway.port())));
            assert!(ok, "{said}");
            assert_eq!(said, format!("{body}502 {content_type}"), "{accept}");
        }
    }
}
