//! Connections that carry the exchanges of many: one that stalls holds only itself.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Http2Server, Nginx, curl, document, eventually,
    frames::{DATA, Frames, HEADERS, WINDOW_UPDATE},
    listener, resident,
};
use std::thread;

/// Receive window of a stream of the gateway.
const WINDOW: usize = 256 * 1024;

/// A gateway with one event loop, and thus one pool, in front of an HTTP/2 server.
struct Served {
    certificates: Certificates,
    gateway: Gateway,
    server: Http2Server,
    _file: Configuration,
}

impl Served {
    fn new(server: Http2Server) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let upstreams = format!("web: {{servers: [\"{}\"], protocol: http2}}", server.address);
        let text = document(&[listener(&pair, "upstream: web")], &upstreams);
        let file = Configuration::new(&text.replace("threads: 2", "threads: 1"));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, server, _file: file }
    }

    /// Opens a connection with this initial window for responses.
    fn frames(&self, window: u32) -> Frames {
        Frames::connect(&Connector::new(&self.certificates), self.gateway.address(0), window)
    }

    #[track_caller]
    fn serves_others(&self) {
        assert_eq!(curl(&self.gateway, &self.certificates, &[], "/"), "ok");
    }
}

/// Stream identifiers of a client.
fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|index| 2 * index + 1)
}

#[test]
fn a_server_that_allows_few_streams_gets_further_connections() {
    let served = Served::new(Http2Server::allowing(2));
    let mut client = served.frames(65_535);
    for (stream, hanging) in streams(5).zip(1..) {
        client.get(stream, "/hang");
        eventually("the request does not reach the server", || served.server.hanging() == hanging);
    }
    assert_eq!(served.server.connections(), 3);
    served.serves_others();
    assert_eq!(served.server.connections(), 3, "the third has room");
}

#[test]
fn downloads_that_are_not_read_stall_no_other() {
    const STALLED: u32 = 40;
    let served = Served::new(Http2Server::allowing(1000));
    // Requests that arrive together while there is no connection would open one each.
    served.serves_others();
    let mut client = served.frames(0);
    streams(STALLED).for_each(|stream| client.get(stream, "/stream/16384"));
    // All of them fill their windows.
    let all = STALLED as usize * WINDOW;
    eventually("the connection is full", || served.server.streamed() >= all);
    served.serves_others();
    assert_eq!(served.server.connections(), 1);
}

#[test]
fn streams_of_small_messages_that_are_not_read_cost_no_other() {
    const STALLED: u32 = 8;
    const MESSAGE: usize = 50;
    let served = Served::new(Http2Server::allowing(1000));
    // An exchange that is in progress meanwhile.
    let mut other = served.frames(1 << 20);
    other.get(1, "/stream/1000");
    other.expect(HEADERS);
    let mut client = served.frames(0);
    streams(STALLED).for_each(|stream| client.get(stream, &format!("/stream/{MESSAGE}")));
    let all = STALLED as usize * (WINDOW - MESSAGE);
    eventually("the connection is full", || served.server.streamed() >= all);
    served.serves_others();
    assert_eq!(served.server.connections(), 1);
    let mut received = 0;
    while received < 60_000 {
        received += other.expect(DATA).payload.len();
    }
}

#[test]
fn uploads_that_are_not_read_stall_no_other() {
    const STALLED: u32 = 20;
    let served = Served::new(Http2Server::allowing(1000));
    let mut client = served.frames(65_535);
    client.expect(WINDOW_UPDATE);
    for stream in streams(STALLED) {
        client.post(stream, "/hang");
        client.data(stream, WINDOW, 16 * 1024);
    }
    client.get(2 * STALLED + 1, "/");
    assert_eq!(client.expect(DATA).payload, b"ok");
}

#[test]
fn small_messages_within_their_window_do_not_end_the_connection() {
    const STALLED: u32 = 4;
    const MESSAGE: usize = 50;
    let served = Served::new(Http2Server::allowing(1000));
    let mut client = served.frames(65_535);
    client.expect(WINDOW_UPDATE);
    for stream in streams(STALLED) {
        client.post(stream, "/hang");
        client.data(stream, WINDOW, MESSAGE);
    }
    client.get(2 * STALLED + 1, "/");
    assert_eq!(client.expect(DATA).payload, b"ok");
}

#[test]
fn tiny_frames_hold_no_more_than_their_data() {
    const STALLED: u32 = 16;
    const EACH: usize = 20_000;
    let served = Served::new(Http2Server::allowing(1000));
    let mut client = served.frames(65_535);
    client.expect(WINDOW_UPDATE);
    let before = resident(served.gateway.pid());
    for stream in streams(STALLED) {
        client.post(stream, "/hang");
        client.data(stream, EACH, 1);
    }
    client.get(2 * STALLED + 1, "/");
    assert_eq!(client.expect(DATA).payload, b"ok");
    let grown = resident(served.gateway.pid()).saturating_sub(before);
    assert!(grown < 32 * 1024, "{grown} KiB for {} bytes", STALLED as usize * EACH);
}

/// nginx sends GOAWAY after the first request of each connection, and has read up to 64 KiB of each later one.
#[test]
fn requests_beyond_goaway_go_to_other_connections() {
    const CLIENTS: usize = 12;
    let origin = Nginx::new("location / { return 200 ok; }");
    let ending = format!(
        "keepalive_requests 1; client_max_body_size 1m; location / {{ proxy_pass http://{}; }}",
        origin.address()
    );
    let server = Nginx::listening("http2", &ending);
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstreams = format!("web: {{servers: ['{}'], protocol: http2}}", server.address());
    let text = document(&[listener(&pair, "upstream: web")], &upstreams);
    let file = Configuration::new(&text.replace("threads: 2", "threads: 1"));
    let gateway = Gateway::with_config(&file.path(), 1);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("TLS");
                let body = "x".repeat(200_000);
                for round in 0..8 {
                    let length = body.len();
                    let head = "POST / HTTP/1.1\r\nHost: localhost";
                    let request = format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}");
                    client.send(request.as_bytes()).expect("sending");
                    let response = client.response().expect("a response");
                    assert_eq!(response.status, 200, "{round}: {}", gateway.log());
                }
            });
        }
    });
}
