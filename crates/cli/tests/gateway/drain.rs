//! Drain: SIGTERM lets what is under way finish, and tells clients to go elsewhere.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Load, Nginx, document, eventually, listener, output,
};
use std::{
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

/// Longer than any drain here takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(90);

/// nginx that sends `/slow` over about three seconds.
fn slow_server() -> Nginx {
    let nginx = Nginx::new("location /slow { limit_rate 100k; } location /quick { return 200 right; }");
    std::fs::write(nginx.file("slow"), "s".repeat(300 * 1024)).expect("a file");
    nginx
}

fn before(nginx: &Nginx, drain_timeout: &str) -> (Certificates, Gateway) {
    let certificates = Certificates::new();
    let gateway = Gateway::with_flags(
        &certificates.ecdsa("P-256", &["localhost"]),
        &["--upstream", &nginx.address().to_string(), "--drain-timeout", drain_timeout],
    );
    (certificates, gateway)
}

/// curl for the slow file, once its first bytes have come.
fn begin_slow(gateway: &Gateway, certificates: &Certificates, client: &str) -> (Child, std::path::PathBuf) {
    let file = certificates.path(&format!("slow{client}"));
    let child = Command::new("curl")
        .args([client, "-sS", "--fail", "--no-buffer", "--max-time", "90", "-D", "-", "--cacert"])
        .arg(certificates.ca())
        .args(["--resolve", &format!("localhost:{}:127.0.0.1", gateway.port()), "--output"])
        .arg(&file)
        .arg(format!("https://localhost:{}/slow", gateway.port()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("curl");
    eventually("the slow answer does not begin", || {
        std::fs::metadata(&file).is_ok_and(|metadata| metadata.len() > 0)
    });
    (child, file)
}

#[test]
fn answers_under_way_are_completed() {
    let nginx = slow_server();
    let (certificates, mut gateway) = before(&nginx, "80s");
    let running = ["--http1.1", "--http2"].map(|client| begin_slow(&gateway, &certificates, client));
    let mut idle = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    assert_eq!(idle.get("/quick").expect("an answer").status, 200);
    gateway.signal("TERM");
    gateway.wait_for_log("draining");
    let ready = gateway.admin("/ready");
    let (_, said) = output(Command::new("curl").args(["-s", "-w", " %{http_code}", &ready]));
    assert_eq!(said, "draining\n 503");
    eventually("new connections are still taken", || {
        Connector::new(&certificates).http(gateway.address(0)).is_err()
    });
    for (child, file) in running {
        let output = child.wait_with_output().expect("curl");
        assert!(output.status.success(), "{file:?}: {}", output.status);
        assert_eq!(std::fs::metadata(&file).expect("the answer").len(), 300 * 1024, "{file:?}");
    }
    assert!(idle.is_closed());
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
    assert!(gateway.log().contains("drained"), "{}", gateway.log());
}

#[test]
fn no_request_is_lost_under_load() {
    for _ in 0..3 {
        let nginx = slow_server();
        let (certificates, mut gateway) = before(&nginx, "80s");
        let load = Load::start(&certificates, gateway.address(0), "/quick", |body| body.starts_with("right"));
        eventually("no load", || load.answered() > 50);
        load.expect_the_end();
        gateway.signal("TERM");
        assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
        load.finish();
    }
}

/// Accepted before the drain, but slow: the handshake begins when idle connections have been closed already.
#[test]
fn a_connection_whose_handshake_ends_in_the_drain_has_its_request_answered() {
    let nginx = slow_server();
    let (certificates, mut gateway) = before(&nginx, "80s");
    let connector = Connector::new(&certificates);
    let mut idle = connector.http(gateway.address(0)).expect("a connection");
    let connections =
        [(), ()].map(|()| std::net::TcpStream::connect(gateway.address(0)).expect("a connection"));
    eventually("no connections", || gateway.metric("quadrille_connections", &[]) >= 3.0);
    gateway.signal("TERM");
    gateway.wait_for_log("draining");
    assert!(idle.is_closed());
    let [mut speaks, mut is_silent] = connections.map(|tcp| connector.http_over(tcp).expect("a handshake"));
    thread::sleep(Duration::from_millis(300));
    let response = speaks.get("/quick").expect("an answer");
    assert_eq!((response.text().as_str(), response.header("connection")), ("right", Some("close")));
    // Nor does one that says nothing hold up the drain.
    assert!(is_silent.is_closed());
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
    assert!(gateway.log().contains("drained"), "{}", gateway.log());
}

#[test]
fn clients_on_kept_connections_are_told_to_close() {
    let nginx = slow_server();
    let (certificates, mut gateway) = before(&nginx, "80s");
    let connector = Connector::new(&certificates);
    let mut waiting = connector.http(gateway.address(0)).expect("a connection");
    waiting.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").expect("sending");
    // Two requests in a row, the first of which is still being answered when the drain begins.
    let (child, _) = begin_slow(&gateway, &certificates, "--http1.1");
    gateway.signal("TERM");
    gateway.wait_for_log("draining");
    let response = waiting.response().expect("an answer");
    assert_eq!((response.status, response.body.len()), (200, 300 * 1024));
    assert!(waiting.is_closed());
    assert!(child.wait_with_output().expect("curl").status.success());
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
}

#[test]
fn an_answer_that_begins_after_the_signal_says_that_the_connection_closes() {
    let certificates = Certificates::new();
    // A server that answers only when it is told to.
    let server = std::net::TcpListener::bind(("127.0.0.1", crate::support::ports::free())).expect("a port");
    let address = server.local_addr().expect("an address").to_string();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let mut gateway = Gateway::with_flags(&pair, &["--upstream", &address, "--drain-timeout", "80s"]);
    let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sending");
    let (mut upstream, _) = server.accept().expect("the gateway's connection");
    gateway.signal("TERM");
    gateway.wait_for_log("draining");
    std::io::Write::write_all(&mut upstream, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        .expect("answering");
    let response = client.response().expect("an answer");
    assert_eq!(response.text(), "ok");
    assert_eq!(response.header("connection"), Some("close"), "{:?}", response.headers);
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
}

#[test]
fn an_upload_under_way_is_completed() {
    let nginx = Nginx::new("dav_methods PUT;");
    let (certificates, mut gateway) = before(&nginx, "80s");
    let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    client.send(b"PUT /file HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234").expect("sending");
    eventually("the request does not arrive", || gateway.metric("quadrille_connections", &[]) >= 1.0);
    thread::sleep(Duration::from_millis(300));
    let mut idle = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    gateway.signal("TERM");
    gateway.wait_for_log("draining");
    assert!(idle.is_closed());
    client.send(b"56789").expect("sending the rest");
    assert_eq!(client.response().expect("an answer").status, 201);
    assert_eq!(std::fs::read_to_string(nginx.file("file")).expect("the file"), "0123456789");
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
}

#[test]
fn a_second_signal_or_the_time_limit_ends_it() {
    let nginx = slow_server();
    std::fs::write(nginx.file("slow"), "s".repeat(64 << 20)).expect("a file that takes ten minutes");
    let (certificates, mut gateway) = before(&nginx, "600s");
    let (mut child, _) = begin_slow(&gateway, &certificates, "--http1.1");
    gateway.signal("TERM");
    gateway.wait_for_log("draining");
    assert!(gateway.wait(Duration::from_secs(2)).is_none(), "{}", gateway.log());
    gateway.signal("TERM");
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
    assert!(!child.wait().expect("curl").success());

    let (certificates, mut gateway) = before(&nginx, "1s");
    let (mut child, _) = begin_slow(&gateway, &certificates, "--http2");
    gateway.signal("INT");
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
    assert!(!child.wait().expect("curl").success());
}

#[test]
fn tcp_connections_are_drained_too() {
    let nginx = slow_server();
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstreams = format!("web: {{servers: [\"{}\"]}}", nginx.address());
    let file = Configuration::new(&document(&[listener(&pair, "mode: tcp, upstream: web")], &upstreams));
    let mut gateway = Gateway::with_config(&file.path(), 1);
    let (child, file) = begin_slow(&gateway, &certificates, "--http1.1");
    gateway.signal("TERM");
    assert!(child.wait_with_output().expect("curl").status.success());
    assert_eq!(std::fs::metadata(&file).expect("the answer").len(), 300 * 1024);
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
}
