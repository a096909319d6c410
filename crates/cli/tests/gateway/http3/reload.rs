//! Reloads and drains under load: connections receive GOAWAY and no request fails.

use super::Served;
use crate::support::{
    Connector, Http3Client, Nginx, PATIENCE, configuration::listener_at, document, eventually, http3::Http3,
    ports,
};
use std::{
    net::UdpSocket,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

/// A reload that changes routes and keeps certificates: connections stay open, and use the new routes.
#[test]
fn a_connection_goes_on_over_a_reload() {
    let mut served = Served::new("respond: before", "");
    let mut client = served.connect();
    assert_eq!(client.get("/").text(), "before");
    let text = std::fs::read_to_string(served.file.path()).expect("the file");
    served.file.replace(&text.replace("before", "after"));
    served.gateway.signal("HUP");
    eventually("the reload does nothing", || client.get("/").text() == "after");
    assert_eq!(served.gateway.metric("quadrille_quic_handshakes_total", &[]), 1.0);
}

const RELOADS: usize = 100;

/// Ends the other threads when one of them panics.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Every reload changes the requirements for clients, so that all must reconnect.
#[test]
fn reloads_under_load_fail_no_request() {
    let nginx = Nginx::new("return 200 right;");
    let upstreams = format!("web: {{servers: [\"{}\"]}}", nginx.address());
    let mut served = Served::new("upstream: web, timeouts: {handshake_deadline: off}", &upstreams);
    let address = served.gateway.address(0);
    let text = std::fs::read_to_string(served.file.path()).expect("the file");
    let ca = served.certificates.ca();
    let asks = format!("http3: on, tls: {{client_auth: {{mode: optional, ca: {}}}}},", ca.display());
    let (over, answered, moved) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let _clients_end = SetWhenDropped(&over);
        for _ in 0..4 {
            scope.spawn(|| {
                let _others_end = SetWhenDropped(&over);
                let mut client = Http3Client::new(&served.certificates);
                let mut connection = client.connect(address);
                moved.fetch_add(1, Ordering::Relaxed);
                while !over.load(Ordering::Relaxed) {
                    let answer = connection.get("/");
                    // A connection without a certificate request is no longer accepted (RFC 9110 section 15.5.20).
                    let elsewhere = answer.status == 421;
                    assert!(elsewhere || answer.text() == "right", "{answer:?}");
                    answered.fetch_add(1, Ordering::Relaxed);
                    if elsewhere || connection.told_to_go {
                        connection = client.connect(address);
                        // Only now: the next reload must find the connection in this state.
                        moved.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        // A client that connected after the first reload would receive no GOAWAY from it.
        eventually("a client does not connect", || {
            moved.load(Ordering::Relaxed) >= 4 || over.load(Ordering::Relaxed)
        });
        for number in 0..RELOADS {
            assert!(!over.load(Ordering::Relaxed), "a client has failed");
            let before = moved.load(Ordering::Relaxed);
            served.file.replace(&if number % 2 == 0 {
                text.replace("http3: on,", &asks)
            } else {
                text.clone()
            });
            served.gateway.signal("HUP");
            eventually("no connection receives GOAWAY", || {
                moved.load(Ordering::Relaxed) >= before + 4 || over.load(Ordering::Relaxed)
            });
        }
    });
    assert!(answered.into_inner() > 100, "there was load");
    assert_eq!(served.gateway.metric("quadrille_requests_total", &["5xx"]), 0.0);
    assert_eq!(served.connect().get("/").text(), "right");
}

/// HTTP/3 is disabled and enabled without effect on TCP connections.
#[test]
fn http3_is_switched_on_and_off_by_reloads() {
    let mut served = Served::new("respond: hi", "");
    let address = served.gateway.address(0);
    let connector = Connector::new(&served.certificates);
    let mut tcp = connector.http(address).expect("TLS");
    let mut client = served.connect();
    // A connection whose handshake ends after the reload receives GOAWAY with its first response only.
    assert_eq!(client.get("/").text(), "hi");
    let text = std::fs::read_to_string(served.file.path()).expect("the file");
    served.file.replace(&text.replace("http3: on", "http3: off"));
    served.gateway.signal("HUP");
    client.run_until("it receives no GOAWAY", |client| client.told_to_go);
    let is_free = || UdpSocket::bind(address).is_ok();
    while !client.quic().is_closed() && !is_free() {
        client.turn();
    }
    eventually("the port is still taken", is_free);
    assert_eq!(tcp.get("/").expect("a response").header("alt-svc"), None);
    served.file.replace(&text);
    served.gateway.signal("HUP");
    eventually("the port stays free", || !is_free());
    assert_eq!(served.connect().get("/").text(), "hi");
    assert!(tcp.get("/").expect("a response").header("alt-svc").is_some());
}

#[test]
fn a_port_in_use_fails_the_reload() {
    let mut served = Served::new("respond: hi", "");
    // Not an ephemeral port: its TCP port may belong to any client at the time.
    let taken = UdpSocket::bind(("127.0.0.1", ports::free())).expect("a port");
    let pair = served.certificates.ecdsa("P-256", &["localhost"]);
    let listener = listener_at(taken.local_addr().expect("an address"), &pair, "http3: on, respond: other");
    served.file.replace(&document(&[listener], ""));
    served.gateway.signal("HUP");
    served.gateway.wait_for_log("over UDP: Address already in use");
    assert_eq!(served.connect().get("/").text(), "hi", "the old configuration serves");
}

#[test]
fn a_drain_completes_what_is_under_way() {
    let nginx = Nginx::new("location /slow { limit_rate 100k; }");
    std::fs::write(nginx.file("slow"), "s".repeat(300 * 1024)).expect("a file");
    let mut served = Served::new("upstream: web", &format!("web: {{servers: [\"{}\"]}}", nginx.address()));
    let mut client = served.connect();
    let id = client.start("GET", "/slow", &[], true);
    client.run_until("no response", |client| !client.answer(id).body.is_empty());
    served.gateway.signal("TERM");
    client.run_until("it receives no GOAWAY", |client| client.told_to_go);
    let answer = client.finish(id);
    assert_eq!((answer.body.len(), answer.ended), (300 * 1024, Some(Ok(()))));
    until_over(&mut client);
    let status = served.gateway.wait(PATIENCE).expect("the process ends");
    assert!(status.success(), "{status}");
}

fn until_over(client: &mut Http3) {
    while !client.quic().is_draining() && !client.quic().is_closed() {
        client.turn();
    }
    assert_eq!(client.quic().peer_error().map(|error| error.error_code), Some(0x100), "H3_NO_ERROR");
}
