//! Connections: clients that migrate, that are silent, and that do not read.

use super::Served;
use crate::support::{Nginx, eventually, http3::Sending, ports, resident};
use quiche::h3::Header;
use std::{net::TcpListener, thread};

/// Maximum number of migrations: quiche keeps a few paths of a connection, and the server cannot retire them.
const MOVES: usize = 4;

#[test]
fn a_client_that_moves_keeps_its_connection() {
    let nginx = Nginx::new("return 200 $http_x_forwarded_for;");
    let mut served = Served::new("upstream: web", &format!("web: {{servers: [\"{}\"]}}", nginx.address()));
    // The kernel chooses the event loop by the port: eventually it is the other one.
    for connections in 1..40 {
        let mut client = served.connect();
        assert_eq!(client.get("/").status, 200);
        for _ in 0..MOVES {
            client.move_to_another_port();
            assert_eq!(client.get("/").text(), "127.0.0.1");
        }
        let handshakes = served.gateway.metric("quadrille_quic_handshakes_total", &[]);
        assert_eq!(handshakes, f64::from(connections), "no handshake for a migration");
        if served.gateway.metric("quadrille_quic_datagrams_handed_over_total", &[]) > 0.0 {
            return;
        }
    }
    panic!("never on the other event loop");
}

#[test]
fn an_idle_client_receives_goaway() {
    let mut served = Served::new("respond: hi, timeouts: {idle: 1s}", "");
    let mut client = served.connect();
    assert_eq!(client.get("/").text(), "hi");
    eventually("it stays open", || {
        client.turn();
        client.quic().is_closed() || client.quic().is_draining()
    });
    assert!(client.told_to_go || client.quic().is_timed_out());
    served.gateway.wait_for_metric("quadrille_connections", &[], |open| open == 0.0);
}

/// Responses wait at their server for a client that does not read.
#[test]
fn a_client_that_takes_nothing_is_waited_for_and_given_up() {
    let nginx = Nginx::new("");
    std::fs::write(nginx.file("large"), vec![b'x'; 50_000_000]).expect("a file");
    let mut served = Served::new(
        "upstream: web, timeouts: {idle: 2s}",
        &format!("web: {{servers: [\"{}\"]}}", nginx.address()),
    );
    served.client.config().set_initial_max_stream_data_bidi_local(1000);
    served.client.config().set_max_stream_window(1000);
    let mut client = served.connect();
    let before = resident(served.gateway.pid());
    let id = client.start("GET", "/large", &[], true);
    client.run_until("no header", |client| client.answer(id).status == 200);
    let grown = resident(served.gateway.pid()).saturating_sub(before);
    assert!(grown < 20_000, "{grown} KiB for a body that is not read");
    // The socket is not read from here on.
    served.gateway.wait_for_metric("quadrille_connections", &[], |open| open == 0.0);
}

#[test]
fn a_large_body_is_taken_as_fast_as_its_server_takes_it() {
    let nginx = Nginx::new("client_max_body_size 0; location / { return 413; }");
    let mut served = Served::new("upstream: web", &format!("web: {{servers: [\"{}\"]}}", nginx.address()));
    let mut client = served.connect();
    let body = vec![b'x'; 3_000_000];
    let answer = client.exchange(&Sending { method: "POST", path: "/", headers: &[], body: &body });
    assert_eq!(answer.status, 413, "it may arrive before the whole body is sent");
    assert_eq!(client.get("/").status, 413, "further requests are served");
}

/// RFC 9220: a WebSocket on a stream of HTTP/3.
#[test]
fn a_websocket_passes_messages_in_both_directions() {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let (tcp, _) = listener.accept().expect("a connection");
        let mut socket = tungstenite::accept(tcp).expect("a WebSocket handshake");
        while let Ok(message) = socket.read() {
            if message.is_text() {
                socket.send(message).expect("echoing");
            }
        }
    });
    let mut served = Served::new("upstream: s", &format!("s: {{servers: [\"{address}\"]}}"));
    let mut client = served.connect();
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", "/chat"),
        ("sec-websocket-version", "13"),
    ];
    let fields: Vec<_> =
        fields.iter().map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes())).collect();
    let id = client.start_with(&fields, false);
    client.run_until("the tunnel does not open", |client| client.answer(id).status == 200);
    for text in ["hello", "again"] {
        let before = client.answer(id).body.len();
        // A text of five bytes, masked with zeros (RFC 6455 section 5.2).
        let frame = [&[0x81, 0x85, 0, 0, 0, 0], text.as_bytes()].concat();
        assert_eq!(client.write(id, &frame, false), frame.len());
        client.run_until("no echo", |client| client.answer(id).body.len() >= before + 7);
        assert_eq!(client.answer(id).body[before..], [&[0x81, 5], text.as_bytes()].concat());
    }
    client.write(id, &[0x88, 0x80, 0, 0, 0, 0], true);
    assert_eq!(client.finish(id).ended, Some(Ok(())), "closed by both");
}
