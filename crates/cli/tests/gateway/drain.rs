//! Drain: after SIGTERM, pending requests complete, and clients are notified to close their connections.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Load, PATIENCE as LIMIT, document, eventually, listener,
    output, ports,
};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

/// A drain timeout that no drain here reaches: a test that waits for it fails by [`LIMIT`].
const NEVER: &str = "600s";

/// Size of a slow response in bytes.
pub(super) const SLOW: usize = 300 * 1024;

/// A server that responds to `/quick` with "right" at once, and to `/slow` with one half at once and the other once
/// it is released.
pub(super) struct SlowServer {
    pub(super) address: SocketAddr,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    releases: Mutex<usize>,
    released: Condvar,
    waiting: AtomicUsize,
}

impl SlowServer {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
        let (address, gate) = (listener.local_addr().expect("an address"), Arc::new(Gate::default()));
        let shared = Arc::clone(&gate);
        thread::spawn(move || {
            for tcp in listener.incoming().map_while(Result::ok) {
                let gate = Arc::clone(&shared);
                thread::spawn(move || answer_all(&tcp, &gate));
            }
        });
        Self { address, gate }
    }

    /// Sends the other half of all slow responses that have begun.
    pub(super) fn release(&self) {
        *self.gate.releases.lock().expect("no panic") += 1;
        self.gate.released.notify_all();
    }

    /// Waits until this many slow responses have begun and are not complete.
    pub(super) fn wait_for(&self, count: usize) {
        eventually("the slow responses do not begin", || self.gate.waiting.load(Ordering::SeqCst) == count);
    }
}

fn answer_all(mut tcp: &TcpStream, gate: &Gate) -> Option<()> {
    let mut lines = BufReader::new(tcp).lines().map_while(Result::ok);
    loop {
        let request = lines.next()?;
        lines.by_ref().find(String::is_empty)?;
        if !request.starts_with("GET /slow ") {
            tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright").ok()?;
            continue;
        }
        let begun = *gate.releases.lock().expect("no panic");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SLOW}\r\n\r\n");
        tcp.write_all(&[head.as_bytes(), &[b's'; SLOW / 2]].concat()).ok()?;
        gate.waiting.fetch_add(1, Ordering::SeqCst);
        let releases = gate.releases.lock().expect("no panic");
        drop(gate.released.wait_while(releases, |releases| *releases == begun).expect("no panic"));
        gate.waiting.fetch_sub(1, Ordering::SeqCst);
        tcp.write_all(&[b's'; SLOW - SLOW / 2]).ok()?;
    }
}

fn before(server: SocketAddr, drain_timeout: &str) -> (Certificates, Gateway) {
    let certificates = Certificates::new();
    let gateway = Gateway::with_flags(
        &certificates.ecdsa("P-256", &["localhost"]),
        &["--upstream", &server.to_string(), "--drain-timeout", drain_timeout],
    );
    (certificates, gateway)
}

/// Starts curl for the slow file; returns once the first bytes have arrived.
fn begin_slow(gateway: &Gateway, certificates: &Certificates, client: &str) -> (Child, std::path::PathBuf) {
    let file = certificates.path(&format!("slow{client}"));
    let child = Command::new("curl")
        .args([client, "-sS", "--fail", "--no-buffer", "--max-time", "600", "-D", "-", "--cacert"])
        .arg(certificates.ca())
        .args(["--resolve", &format!("localhost:{}:127.0.0.1", gateway.port()), "--output"])
        .arg(&file)
        .arg(format!("https://localhost:{}/slow", gateway.port()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("curl");
    eventually("the slow response does not begin", || {
        std::fs::metadata(&file).is_ok_and(|metadata| metadata.len() > 0)
    });
    (child, file)
}

#[test]
fn answers_under_way_are_completed() {
    let server = SlowServer::start();
    let (certificates, mut gateway) = before(server.address, NEVER);
    let running = ["--http1.1", "--http2"].map(|client| begin_slow(&gateway, &certificates, client));
    let mut idle = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    assert_eq!(idle.get("/quick").expect("a response").status, 200);
    gateway.signal("TERM");
    gateway.wait_for_log("draining");
    let ready = gateway.admin("/ready");
    let (_, said) = output(Command::new("curl").args(["-s", "-w", " %{http_code}", &ready]));
    assert_eq!(said, "draining\n 503");
    eventually("new connections are still accepted", || {
        Connector::new(&certificates).http(gateway.address(0)).is_err()
    });
    server.release();
    for (child, file) in running {
        let output = child.wait_with_output().expect("curl");
        assert!(output.status.success(), "{file:?}: {}", output.status);
        assert_eq!(std::fs::metadata(&file).expect("the response").len(), SLOW as u64, "{file:?}");
    }
    assert!(idle.is_closed());
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
    eventually("the end of the drain is not logged", || gateway.log().contains("drained"));
}

#[test]
fn no_request_is_lost_under_load() {
    for _ in 0..3 {
        let server = SlowServer::start();
        let (certificates, mut gateway) = before(server.address, NEVER);
        let load = Load::start(&certificates, gateway.address(0), "/quick", |body| body.starts_with("right"));
        eventually("no load", || load.answered() > 50);
        load.expect_the_end();
        gateway.signal("TERM");
        assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
        load.finish();
    }
}

/// A slow client, accepted before the drain: its handshake begins after idle connections have been closed.
#[test]
fn a_connection_whose_handshake_ends_in_the_drain_has_its_request_answered() {
    let server = SlowServer::start();
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let keys = "upstream: web, timeouts: {handshake: 600s, handshake_deadline: off}";
    let text = document(&[listener(&pair, keys)], &format!("web: {{servers: [\"{}\"]}}", server.address));
    let file = Configuration::new(&format!("{text}drain_timeout: {NEVER}\n"));
    let mut gateway = Gateway::with_config(&file.path(), 1);
    let connector = Connector::new(&certificates);
    let mut idle = connector.http(gateway.address(0)).expect("a connection");
    let connections = [(), ()].map(|()| TcpStream::connect(gateway.address(0)).expect("a connection"));
    eventually("no connections", || gateway.metric("quadrille_connections", &[]) >= 3.0);
    gateway.signal("TERM");
    gateway.wait_for_log("draining");
    assert!(idle.is_closed());
    let [speaks, is_silent] = connections;
    let mut speaks = connector.http_over(speaks).expect("a handshake");
    let response = speaks.get("/quick").expect("a response");
    assert_eq!((response.text().as_str(), response.header("connection")), ("right", Some("close")));
    // A silent client does not delay the drain.
    let mut is_silent = connector.http_over(is_silent).expect("a handshake");
    assert!(is_silent.is_closed());
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
    eventually("the end of the drain is not logged", || gateway.log().contains("drained"));
}

#[test]
fn clients_on_kept_connections_receive_connection_close() {
    let server = SlowServer::start();
    let (certificates, mut gateway) = before(server.address, NEVER);
    let connector = Connector::new(&certificates);
    let mut waiting = connector.http(gateway.address(0)).expect("a connection");
    waiting.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").expect("sending");
    // Two requests in a row; the response to the first is pending when the drain begins.
    let (child, _) = begin_slow(&gateway, &certificates, "--http1.1");
    server.wait_for(2);
    gateway.signal("TERM");
    gateway.wait_for_log("draining");
    server.release();
    let response = waiting.response().expect("a response");
    assert_eq!((response.status, response.body.len()), (200, SLOW));
    assert!(waiting.is_closed());
    assert!(child.wait_with_output().expect("curl").status.success());
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
}

#[test]
fn an_answer_that_begins_after_the_signal_says_that_the_connection_closes() {
    let certificates = Certificates::new();
    // A server that responds only when it is released.
    let server = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = server.local_addr().expect("an address").to_string();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let mut gateway = Gateway::with_flags(&pair, &["--upstream", &address, "--drain-timeout", NEVER]);
    let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sending");
    let (mut upstream, _) = server.accept().expect("the gateway's connection");
    gateway.signal("TERM");
    gateway.wait_for_log("draining");
    upstream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("a response");
    let response = client.response().expect("a response");
    assert_eq!(response.text(), "ok");
    assert_eq!(response.header("connection"), Some("close"), "{:?}", response.headers);
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
}

#[test]
fn an_upload_under_way_is_completed() {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let server = listener.local_addr().expect("an address");
    let (tells, received) = mpsc::channel();
    thread::spawn(move || {
        let (mut tcp, _) = listener.accept().expect("a connection");
        let mut lines = BufReader::new(tcp.try_clone().expect("a clone"));
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|length| length > 2) {
            line.clear();
        }
        for _ in 0..2 {
            let mut half = [0; 5];
            lines.read_exact(&mut half).expect("half of the body");
            tells.send(String::from_utf8_lossy(&half).into_owned()).expect("the test");
        }
        tcp.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").expect("a response");
    });
    let (certificates, mut gateway) = before(server, NEVER);
    let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    client.send(b"PUT /file HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234").expect("sending");
    assert_eq!(received.recv_timeout(LIMIT).expect("half of the body"), "01234");
    let mut idle = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    gateway.signal("TERM");
    gateway.wait_for_log("draining");
    assert!(idle.is_closed());
    client.send(b"56789").expect("sending the rest");
    assert_eq!(client.response().expect("a response").status, 201);
    assert_eq!(received.recv_timeout(LIMIT).expect("the rest"), "56789");
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
}

#[test]
fn a_second_signal_or_the_time_limit_ends_it() {
    // The response is never released.
    let server = SlowServer::start();
    let (certificates, mut gateway) = before(server.address, NEVER);
    let (mut child, _) = begin_slow(&gateway, &certificates, "--http1.1");
    gateway.signal("TERM");
    gateway.wait_for_log("draining");
    assert!(gateway.wait(Duration::from_secs(1)).is_none(), "{}", gateway.log());
    gateway.signal("TERM");
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
    assert!(!child.wait().expect("curl").success());

    let (certificates, mut gateway) = before(server.address, "100ms");
    let (mut child, _) = begin_slow(&gateway, &certificates, "--http2");
    gateway.signal("INT");
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
    assert!(!child.wait().expect("curl").success());
}

#[test]
fn tcp_connections_are_drained_too() {
    let server = SlowServer::start();
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstreams = format!("web: {{servers: [\"{}\"]}}", server.address);
    let text = document(&[listener(&pair, "mode: tcp, upstream: web")], &upstreams);
    let file = Configuration::new(&format!("{text}drain_timeout: {NEVER}\n"));
    let mut gateway = Gateway::with_config(&file.path(), 1);
    let (child, file) = begin_slow(&gateway, &certificates, "--http1.1");
    gateway.signal("TERM");
    gateway.wait_for_log("draining");
    server.release();
    assert!(child.wait_with_output().expect("curl").status.success());
    assert_eq!(std::fs::metadata(&file).expect("the response").len(), SLOW as u64);
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
}
