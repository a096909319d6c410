//! Slow and idle peers of an HTTP listener. The tests check that they are dropped, not how soon.

use crate::support::{
    Certificates, Client, Configuration, Connector, Gateway, Nginx, curl, curl_status, document, eventually,
    frames::Frames, listener,
};
use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::Duration,
};

fn with_timeouts(timeouts: &str) -> (Certificates, Gateway, Configuration) {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let keys = format!("respond: ok, timeouts: {{{timeouts}}}");
    let file = Configuration::new(&document(&[listener(&pair, &keys)], ""));
    let gateway = Gateway::with_config(&file.path(), 1);
    (certificates, gateway, file)
}

fn connect(certificates: &Certificates, gateway: &Gateway) -> Client {
    Connector::new(certificates).http(gateway.address(0)).expect("a connection")
}

#[test]
fn idle_connections_are_closed() {
    let (certificates, gateway, _file) = with_timeouts("idle: 1s");
    let mut silent = connect(&certificates, &gateway);
    // On a busy machine, a connection may be idle for too long before its request.
    let mut used = None;
    eventually("no request has a response", || {
        let mut client = connect(&certificates, &gateway);
        let answered = client.get("/").is_ok_and(|response| response.text() == "ok");
        used = answered.then_some(client);
        answered
    });
    assert!(silent.is_closed() && used.is_some_and(|mut used| used.is_closed()));
}

#[test]
fn idle_http2_connections_are_closed() {
    let (certificates, gateway, _file) = with_timeouts("idle: 1s");
    // The preface and settings, without a request.
    let mut frames = Frames::connect(&Connector::new(&certificates), gateway.address(0), 65_535);
    assert_eq!(gateway.metric("quadrille_connections_total", &[]), 1.0);
    while frames.next().is_ok() {}
    eventually("the connection stays", || gateway.metric("quadrille_connections", &[]) == 0.0);
}

#[test]
fn headers_that_never_end_are_not_waited_for() {
    let (certificates, gateway, _file) = with_timeouts("header: 500ms, idle: 600s");
    let mut stops = connect(&certificates, &gateway);
    stops.send(b"GET / HTTP/1.1\r\nHost: loc").expect("sending");
    let mut crawls = connect(&certificates, &gateway);
    let crawler = thread::spawn(move || {
        for byte in
            b"GET / HTTP/1.1\r\nHost: localhost\r\nX: 0123456789012345678901234567890123456789".iter().cycle()
        {
            if crawls.send(&[*byte]).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
    assert!(stops.is_closed());
    crawler.join().expect("the crawler is dropped");
    // Requests in time are served on connections that are older than the header timeout.
    let mut client = connect(&certificates, &gateway);
    for _ in 0..3 {
        assert_eq!(client.get("/").expect("a response").text(), "ok");
        thread::sleep(Duration::from_millis(300));
    }
}

#[test]
fn a_body_may_take_longer_than_a_header() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let nginx = Nginx::new("dav_methods PUT;");
    let upstreams = format!("web: {{servers: [\"{}\"]}}", nginx.address());
    let keys = "upstream: web, timeouts: {header: 500ms, idle: 1s, handshake: 600s}";
    let file = Configuration::new(&document(&[listener(&pair, keys)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    let upload = |number: usize| {
        let mut client = connect(&certificates, &gateway);
        let head = format!("PUT /file{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
        client.send(head.as_bytes()).ok()?;
        for byte in b"01234" {
            thread::sleep(Duration::from_millis(250));
            client.send(&[*byte]).ok()?;
        }
        client.response().ok().map(|response| response.status)
    };
    // Each one takes longer than both limits. On a busy machine, the gap between two bytes may exceed the idle limit
    // of bodies.
    let mut number = 0;
    eventually("no body is complete", || {
        number += 1;
        upload(number) == Some(201)
    });
}

#[test]
fn a_body_may_have_a_time_for_all_of_it() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let nginx = Nginx::new("dav_methods PUT;");
    let upstreams = format!("web: {{servers: [\"{}\"]}}", nginx.address());
    let keys = "upstream: web, timeouts: {request: 500ms, idle: 600s}";
    let file = Configuration::new(&document(&[listener(&pair, keys)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut tls = Connector::new(&certificates).tls(gateway.address(0)).expect("a connection");
    tls.get_ref().set_read_timeout(Some(Duration::from_millis(20))).expect("a limit");
    tls.write_all(b"PUT /file HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n").expect("sending");
    // The body makes progress until the response arrives.
    let mut answer = [0; 12];
    eventually("a body with progress has no time limit", || {
        let _ = tls.write_all(b"0");
        tls.read(&mut answer).is_ok_and(|length| length == answer.len())
    });
    assert_eq!(&answer, b"HTTP/1.1 408", "{}", gateway.log());
}

#[test]
fn servers_that_do_not_answer_are_given_up() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let silent = TcpListener::bind(("127.0.0.1", crate::support::ports::free())).expect("a port");
    let upstreams = format!(
        "web: {{servers: [\"{}\"], retries: 0, timeouts: {{read: 300ms}}}}",
        silent.local_addr().expect("an address")
    );
    let file = Configuration::new(&document(&[listener(&pair, "upstream: web")], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    for client in ["--http1.1", "--http2"] {
        assert_eq!(curl_status(&gateway, &certificates, &[client], "/"), "504", "{}", gateway.log());
    }
}

#[test]
fn a_client_that_asks_for_it_is_closed_at_once() {
    let (certificates, gateway, _file) = with_timeouts("idle: 600s");
    let mut client = connect(&certificates, &gateway);
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sending");
    let response = client.response().expect("a response");
    assert_eq!((response.text().as_str(), response.header("connection")), ("ok", Some("close")));
    assert!(client.is_closed());
    assert_eq!(curl(&gateway, &certificates, &["--http1.0", "--no-alpn"], "/"), "ok");
}
