//! Slow and idle peers of an HTTP listener. What is tested is that they are dropped, not how soon.

use crate::support::{
    Certificates, Client, Configuration, Connector, Gateway, Nginx, curl, curl_status, document, listener,
};
use std::{net::TcpListener, process::Command, thread, time::Duration};

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
    let mut used = connect(&certificates, &gateway);
    assert_eq!(used.get("/").expect("an answer").text(), "ok");
    assert!(silent.is_closed() && used.is_closed());
}

#[test]
fn idle_http2_connections_are_closed() {
    let (certificates, gateway, _file) = with_timeouts("idle: 1s");
    // Says hello in HTTP/2, with empty settings, and nothing more.
    let script = format!(
        "(printf 'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n\\0\\0\\0\\4\\0\\0\\0\\0\\0'; sleep 60) | timeout 50 openssl s_client \
         -connect {} -alpn h2 -quiet -CAfile '{}' > /dev/null 2>&1; echo $?",
        gateway.address(0),
        certificates.ca().display()
    );
    let mut shell = Command::new("sh").args(["-c", &script]).spawn().expect("sh");
    let open = || gateway.metric("quadrille_connections", &[]);
    crate::support::eventually("no connection", || open() >= 1.0);
    crate::support::eventually("the connection stays", || open() == 0.0);
    let _ = shell.kill();
    let _ = shell.wait();
}

#[test]
fn headers_that_never_end_are_not_waited_for() {
    let (certificates, gateway, _file) = with_timeouts("header: 1s, idle: 600s");
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
            thread::sleep(Duration::from_millis(100));
        }
    });
    assert!(stops.is_closed());
    crawler.join().expect("the crawler is dropped");
    // Requests in time are answered, on connections that live longer than the limit for a header.
    let mut client = connect(&certificates, &gateway);
    for _ in 0..3 {
        assert_eq!(client.get("/").expect("an answer").text(), "ok");
        thread::sleep(Duration::from_millis(700));
    }
}

#[test]
fn a_body_may_take_longer_than_a_header() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let nginx = Nginx::new("dav_methods PUT;");
    let upstreams = format!("web: {{servers: [\"{}\"]}}", nginx.address());
    let keys = "upstream: web, timeouts: {header: 1s, idle: 1s, handshake: 20s}";
    let file = Configuration::new(&document(&[listener(&pair, keys)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut client = connect(&certificates, &gateway);
    client.send(b"PUT /file HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n").expect("sending");
    for byte in b"01234" {
        thread::sleep(Duration::from_millis(400));
        client.send(&[*byte]).expect("sending");
    }
    assert_eq!(client.response().expect("an answer").status, 201);
}

#[test]
fn a_body_may_have_a_time_for_all_of_it() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let nginx = Nginx::new("dav_methods PUT;");
    let upstreams = format!("web: {{servers: [\"{}\"]}}", nginx.address());
    let file = Configuration::new(&document(
        &[listener(&pair, "upstream: web, timeouts: {request: 1s}")],
        &upstreams,
    ));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut client = connect(&certificates, &gateway);
    client.send(b"PUT /file HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n").expect("sending");
    // It moves all the time.
    for byte in b"0123456789" {
        thread::sleep(Duration::from_millis(150));
        if client.send(&[*byte]).is_err() {
            break;
        }
    }
    assert_eq!(client.response().expect("an answer").status, 408, "{}", gateway.log());
}

#[test]
fn servers_that_do_not_answer_are_given_up() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let silent = TcpListener::bind(("127.0.0.1", crate::support::ports::free())).expect("a port");
    let upstreams = format!(
        "web: {{servers: [\"{}\"], retries: 0, timeouts: {{read: 1s}}}}",
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
    let response = client.response().expect("an answer");
    assert_eq!((response.text().as_str(), response.header("connection")), ("ok", Some("close")));
    assert!(client.is_closed());
    assert_eq!(curl(&gateway, &certificates, &["--http1.0", "--no-alpn"], "/"), "ok");
}
