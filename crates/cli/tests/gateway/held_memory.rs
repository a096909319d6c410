//! Memory of received data that is kept: it depends on the data, not on the pieces in which clients send it.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, document, eventually,
    frames::{DATA, Frames, WINDOW_UPDATE},
    listener, resident,
};
use std::{
    io::Read,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Number of bytes sent one by one. The gateway keeps a body of this size for a retry.
const BYTES: usize = 65_000;

/// Bound on the growth of the process in KiB. The data itself is 64 KiB for each of its copies; with the buffers that
/// it is read into, it would be a quarter of a GiB.
const GROWTH: u64 = 16 * 1024;

/// Starts a server that reads and never responds. Returns its address and the number of bytes it has read.
fn reader() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let read = Arc::<AtomicUsize>::default();
    let total = Arc::clone(&read);
    thread::spawn(move || {
        for mut tcp in listener.incoming().map_while(Result::ok) {
            let total = Arc::clone(&total);
            thread::spawn(move || {
                let mut buffer = [0; 65_536];
                while let Ok(count @ 1..) = tcp.read(&mut buffer) {
                    total.fetch_add(count, Ordering::Relaxed);
                }
            });
        }
    });
    (address, read)
}

/// A gateway in front of such a server, and of another one that receives copies.
struct Served {
    certificates: Certificates,
    gateway: Gateway,
    read: Arc<AtomicUsize>,
    _file: Configuration,
}

impl Served {
    fn new() -> Self {
        let (web, read) = reader();
        // The connection is accepted by the kernel and never read.
        let shadow = TcpListener::bind("127.0.0.1:0").expect("a port");
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let route = "routes: [{path: /, upstream: web, mirror: [shadow]}]";
        let upstreams = format!(
            "web: {{servers: [\"{web}\"]}}, shadow: {{servers: [\"{}\"]}}",
            shadow.local_addr().expect("an address")
        );
        std::mem::forget(shadow);
        let file = Configuration::new(&document(&[listener(&pair, route)], &upstreams));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, read, _file: file }
    }

    /// Checks that the process does not grow while `send` sends an incomplete body of [`BYTES`], byte by byte, each in
    /// a TLS record of its own.
    #[track_caller]
    fn holds_little(&self, send: impl FnOnce(&Connector, SocketAddr) -> Box<dyn std::any::Any>) {
        let before = resident(self.gateway.pid());
        let open = send(&Connector::new(&self.certificates), self.gateway.address(0));
        eventually("the server does not get the body", || self.read.load(Ordering::Relaxed) >= BYTES);
        let grown = resident(self.gateway.pid()).saturating_sub(before);
        assert!(grown < GROWTH, "{grown} KiB for {BYTES} bytes");
        drop(open);
    }
}

#[test]
fn bytes_one_by_one_over_http1() {
    Served::new().holds_little(|connector, address| {
        let mut client = connector.http(address).expect("a connection");
        let head = format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", BYTES + 1);
        client.send(head.as_bytes()).expect("a header");
        (0..BYTES).for_each(|_| client.send(b"x").expect("a byte"));
        Box::new(client)
    });
}

#[test]
fn chunks_of_one_byte() {
    Served::new().holds_little(|connector, address| {
        let mut client = connector.http(address).expect("a connection");
        let head = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.send(head.as_bytes()).expect("a header");
        (0..BYTES).for_each(|_| client.send(b"1\r\nx\r\n").expect("a chunk"));
        Box::new(client)
    });
}

#[test]
fn frames_of_one_byte_over_http2() {
    Served::new().holds_little(|connector, address| {
        let mut frames = Frames::connect(connector, address, 65_535);
        frames.expect(WINDOW_UPDATE);
        frames.post(1, "/");
        (0..BYTES).for_each(|_| frames.send(DATA, 0, 1, b"x"));
        Box::new(frames)
    });
}
