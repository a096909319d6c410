//! Connections that carry the exchanges of many: one that stalls holds only itself.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Http2Server, Nginx, PATIENCE, curl, document,
    eventually,
    frames::{DATA, END_HEADERS, Frames, HEADERS, RST_STREAM, WINDOW_UPDATE, frame},
    listener, ports, resident,
};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

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
fn requests_share_a_connection_that_is_being_opened() {
    const REQUESTS: u32 = 40;
    for (allowed, least, most) in [(1000, 1, 1), (10, 4, 8)] {
        let served = Served::new(Http2Server::allowing(allowed));
        let mut client = served.frames(65_535);
        streams(REQUESTS).for_each(|stream| client.get(stream, "/hang"));
        eventually("all requests reach the server", || served.server.hanging() == REQUESTS as usize);
        let connections = served.server.connections();
        assert!((least..=most).contains(&connections), "{connections} for {allowed} streams each");
    }
}

/// A request whose client leaves while it opens a connection takes no other with it.
#[test]
fn another_request_opens_the_connection_of_one_that_ends() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let tls =
        format!("ssl_certificate {}; ssl_certificate_key {};", pair.chain.display(), pair.key.display());
    let nginx = Nginx::listening("ssl http2", &format!("{tls} return 200 ok;"));
    let (address, arrivals) = stalling_once(nginx.address());
    let trust = format!("server_name: localhost, ca: {}", certificates.ca().display());
    let upstreams = format!(
        "web: {{servers: [\"{address}\"], protocol: http2, tls: {{{trust}}}, timeouts: {{connect: 600s}}}}"
    );
    let keys = "abort_on_close: on, routes: [{path: /here, respond: here}, {path: /, upstream: web}]";
    let text = document(&[listener(&pair, keys)], &upstreams);
    let file = Configuration::new(&text.replace("threads: 2", "threads: 1"));
    let gateway = Gateway::with_config(&file.path(), 1);
    let connect = || Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut first = connect();
    first.send(request).expect("a request");
    arrivals.recv_timeout(PATIENCE).expect("a connection to the server");
    let mut second = connect();
    second.send(request).expect("a request");
    // The event loop has seen the second request by the time it responds to a third one.
    assert_eq!(curl(&gateway, &certificates, &[], "/here"), "here");
    drop(first);
    assert_eq!(second.response().expect("a response").text(), "ok");
    assert_eq!(arrivals.try_iter().count(), 1, "a second connection, for the second request");
}

/// Starts a server that passes connections on to another one, except for the first, which stalls. Returns its address,
/// and its connections as they arrive.
fn stalling_once(to: SocketAddr) -> (SocketAddr, mpsc::Receiver<()>) {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    let (arrived, arrivals) = mpsc::channel();
    thread::spawn(move || {
        let mut stalled = None;
        for tcp in listener.incoming().map_while(Result::ok) {
            let _ = arrived.send(());
            if stalled.is_none() {
                stalled = Some(tcp);
                continue;
            }
            let server = TcpStream::connect(to).expect("a connection");
            for (mut from, mut to) in [(&tcp, &server), (&server, &tcp)].map(|(one, other)| {
                (one.try_clone().expect("a socket"), other.try_clone().expect("a socket"))
            }) {
                thread::spawn(move || io::copy(&mut from, &mut to));
            }
        }
    });
    (address, arrivals)
}

/// The server has sent more data by the time at which it receives the reset of a canceled download.
#[test]
fn canceled_downloads_do_not_end_the_connection_of_others() {
    const ROUNDS: usize = 3;
    const EACH: u32 = 90;
    let (address, seen) = late_server();
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstreams = format!("web: {{servers: [\"{address}\"], protocol: http2}}");
    let text = document(&[listener(&pair, "upstream: web")], &upstreams);
    let file = Configuration::new(&text.replace("threads: 2", "threads: 1"));
    let gateway = Gateway::with_config(&file.path(), 1);
    let connector = Connector::new(&certificates);
    let mut other = Frames::connect(&connector, gateway.address(0), 65_535);
    other.get(1, "/");
    other.expect(HEADERS);
    for round in 1..=ROUNDS {
        let mut client = Frames::connect(&connector, gateway.address(0), 65_535);
        streams(EACH).for_each(|stream| client.get(stream, "/"));
        for _ in streams(EACH) {
            client.expect(HEADERS);
        }
        drop(client);
        let all = round * EACH as usize;
        eventually("the server has received all resets", || seen.resets.load(Ordering::Relaxed) == all);
    }
    other.get(3, "/");
    assert_eq!(other.expect(HEADERS).stream, 3);
    assert_eq!(seen.connections.load(Ordering::Relaxed), 1, "{}", gateway.log());
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    resets: AtomicUsize,
}

/// Starts an HTTP/2 server whose responses have no end, and that sends data of each after its reset.
fn late_server() -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    let seen = Arc::<Seen>::default();
    let shared = Arc::clone(&seen);
    thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            shared.connections.fetch_add(1, Ordering::Relaxed);
            let shared = Arc::clone(&shared);
            thread::spawn(move || respond_without_end(tcp, &shared));
        }
    });
    (address, seen)
}

fn respond_without_end(mut tcp: TcpStream, seen: &Seen) -> io::Result<()> {
    const LATE: usize = 10;
    const SETTINGS: u8 = 4;
    const OK: &[u8] = &[0x88];
    tcp.read_exact(&mut [0; 24])?;
    tcp.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    loop {
        let mut head = [0; 9];
        tcp.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        tcp.read_exact(&mut vec![0; length as usize])?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        match (head[3], head[4]) {
            (HEADERS, _) => tcp.write_all(&frame(HEADERS, END_HEADERS, stream, OK))?,
            (RST_STREAM, _) => {
                tcp.write_all(&frame(DATA, 0, stream, b"late").repeat(LATE))?;
                seen.resets.fetch_add(1, Ordering::Relaxed);
            }
            (SETTINGS, 0) => tcp.write_all(&frame(SETTINGS, 1, 0, &[]))?,
            _ => {}
        }
    }
}

#[test]
fn downloads_that_are_not_read_stall_no_other() {
    const STALLED: u32 = 40;
    let served = Served::new(Http2Server::allowing(1000));
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
