//! Clients that close their side of the connection after their request (RFC 9112 section 9.6).

use crate::support::{
    Certificates, Configuration, Connector, Gateway, accept, document, eventually, listener,
};
use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nslow";
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A server that responds when the test allows it, and counts requests and connections that are closed before that.
struct Slow {
    address: SocketAddr,
    go: Arc<Notify>,
    begun: Arc<AtomicUsize>,
    aborted: Arc<AtomicUsize>,
}

impl Slow {
    fn new() -> Self {
        let (go, begun, aborted) = (Arc::new(Notify::new()), Arc::default(), Arc::default());
        let shared: (_, Arc<AtomicUsize>, Arc<AtomicUsize>) =
            (Arc::clone(&go), Arc::clone(&begun), Arc::clone(&aborted));
        let address = accept(move |mut stream| {
            let (go, begun, aborted) = shared.clone();
            async move {
                let mut request = Vec::new();
                let is_complete = |request: &[u8]| match request.starts_with(b"POST") {
                    true => request.ends_with(b"body"),
                    false => request.ends_with(b"\r\n\r\n"),
                };
                while !is_complete(&request) {
                    if !matches!(stream.read_buf(&mut request).await, Ok(1..)) {
                        return;
                    }
                }
                begun.fetch_add(1, Ordering::SeqCst);
                let (mut end, mut stream) = stream.into_split();
                let mut ended = [0; 1];
                tokio::select! {
                    () = go.notified() => {
                        let _ = stream.write_all(RESPONSE).await;
                    }
                    _ = end.read(&mut ended) => drop(aborted.fetch_add(1, Ordering::SeqCst)),
                }
            }
        });
        Self { address, go, begun, aborted }
    }

    fn has_begun(&self, requests: usize) {
        eventually("the server has no request", || self.begun.load(Ordering::SeqCst) == requests);
    }
}

/// Starts a gateway with a listener with TLS and one without, both with these keys.
fn gateway(server: SocketAddr, certificates: &Certificates, keys: &str) -> (Gateway, Configuration) {
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let keys = format!("routes: [{{path: /fixed, respond: hello}}], upstream: web{keys}");
    let plain = format!("{{address: '127.0.0.1:0', tls: off, {keys}}}");
    let upstreams = format!("web: {{servers: ['{server}']}}");
    let file = Configuration::new(&document(&[listener(&pair, &keys), plain], &upstreams));
    (Gateway::with_config(&file.path(), 2), file)
}

/// Sends bytes and closes the sending side.
fn half_closed(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut tcp = TcpStream::connect(address).expect("a connection");
    tcp.write_all(bytes).expect("sending");
    tcp.shutdown(Shutdown::Write).expect("the end");
    tcp
}

fn rest(mut stream: impl Read) -> String {
    let mut all = Vec::new();
    // The end of a TLS connection may lack a close_notify.
    let _ = stream.read_to_end(&mut all);
    String::from_utf8_lossy(&all).into_owned()
}

const FIXED: &[u8] = b"GET /fixed HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn a_fixed_response_reaches_a_client_that_closes_with_its_request() {
    let certificates = Certificates::new();
    for keys in ["", ", abort_on_close: on"] {
        let (gateway, _file) = gateway(Slow::new().address, &certificates, keys);
        for _ in 0..10 {
            let seen = rest(half_closed(gateway.address(1), FIXED));
            assert!(seen.starts_with("HTTP/1.1 200") && seen.ends_with("hello"), "{keys}: {seen}");
        }
        let seen = rest(half_closed(gateway.address(1), &FIXED.repeat(3)));
        assert_eq!(seen.matches("hello").count(), 3, "pipelined: {seen}");
        let mut tls = Connector::new(&certificates).tls(gateway.address(0)).expect("TLS");
        tls.write_all(FIXED).expect("sending");
        tls.shutdown().expect("a close_notify");
        assert!(rest(tls).ends_with("hello"), "{keys}");
    }
}

#[test]
fn a_slow_response_reaches_a_client_that_closes_with_its_request() {
    let certificates = Certificates::new();
    let slow = Slow::new();
    let (gateway, _file) = gateway(slow.address, &certificates, "");
    let plain = half_closed(gateway.address(1), REQUEST);
    slow.has_begun(1);
    slow.go.notify_one();
    assert!(rest(plain).ends_with("slow"));
    let body = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody";
    let plain = half_closed(gateway.address(1), body);
    slow.has_begun(2);
    slow.go.notify_one();
    assert!(rest(plain).ends_with("slow"));
    let mut tls = Connector::new(&certificates).tls(gateway.address(0)).expect("TLS");
    tls.write_all(REQUEST).expect("sending");
    tls.shutdown().expect("a close_notify");
    slow.has_begun(3);
    slow.go.notify_one();
    assert!(rest(tls).ends_with("slow"));
    assert_eq!(slow.aborted.load(Ordering::SeqCst), 0);
}

#[test]
fn a_request_is_aborted_when_its_client_closes_if_configured() {
    let certificates = Certificates::new();
    let slow = Slow::new();
    let (gateway, _file) = gateway(slow.address, &certificates, ", abort_on_close: on");
    let mut plain = TcpStream::connect(gateway.address(1)).expect("a connection");
    plain.write_all(REQUEST).expect("sending");
    slow.has_begun(1);
    plain.shutdown(Shutdown::Write).expect("the end");
    eventually("the request is not aborted", || slow.aborted.load(Ordering::SeqCst) == 1);
    assert_eq!(rest(plain), "");
    let mut tls = Connector::new(&certificates).tls(gateway.address(0)).expect("TLS");
    tls.write_all(REQUEST).expect("sending");
    slow.has_begun(2);
    tls.shutdown().expect("a close_notify");
    eventually("the request is not aborted", || slow.aborted.load(Ordering::SeqCst) == 2);
}

#[test]
fn a_reset_aborts_the_request() {
    let certificates = Certificates::new();
    let slow = Slow::new();
    let (gateway, _file) = gateway(slow.address, &certificates, "");
    let mut tcp = TcpStream::connect(gateway.address(1)).expect("a connection");
    tcp.write_all(REQUEST).expect("sending");
    slow.has_begun(1);
    socket2::SockRef::from(&tcp).set_linger(Some(std::time::Duration::ZERO)).expect("a reset");
    drop(tcp);
    eventually("the request is not aborted", || slow.aborted.load(Ordering::SeqCst) == 1);
}

#[test]
fn half_a_request_gets_no_response() {
    let certificates = Certificates::new();
    let slow = Slow::new();
    let (gateway, _file) = gateway(slow.address, &certificates, "");
    assert_eq!(rest(half_closed(gateway.address(1), b"GET / HTTP/1.1\r\nHost: loc")), "");
    let half = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf";
    assert!(!rest(half_closed(gateway.address(1), half)).contains(" 200 "));
}
