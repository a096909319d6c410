//! The kinds of misbehaving clients.

use std::{
    io::{self, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::{self, Scope},
    time::Duration,
};

use boring::ssl::SslStream;

use super::{
    http2::{
        CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS,
        WINDOW_UPDATE, frame, header_block, preface, request,
    },
    tls::{TICK, receive, send, tcp, tls},
};

/// A kind of misbehaviour: connections that all do the same.
#[derive(Clone, Copy, Debug)]
pub struct Misbehaviour {
    /// Description of what the clients do, for the table.
    pub name: &'static str,
    /// Number of connections.
    connections: usize,
    /// Runs a connection until the server closes it or the experiment ends.
    run: fn(&Client<'_>) -> io::Result<()>,
}

/// A misbehaving client.
struct Client<'a> {
    address: SocketAddr,
    stop: &'a AtomicBool,
}

/// The running clients of one misbehaviour.
pub(super) struct Attack<'scope> {
    clients: Vec<thread::ScopedJoinHandle<'scope, ()>>,
    ended: &'scope AtomicU64,
}

/// Address of all misbehaving clients, in a network of its own.
const SOURCE: Ipv4Addr = Ipv4Addr::new(127, 66, 0, 1);
const STACK: usize = 128 << 10;
/// Pause before a closed connection is opened again.
const PAUSE: Duration = Duration::from_millis(100);
/// Number of streams of a connection, as many as servers commonly allow.
const STREAMS: u32 = 100;
/// Length of a path and of a header line in floods.
const LONG: usize = 4_000;

impl Misbehaviour {
    /// All kinds.
    pub const ALL: &[Self] = &[
        Self { name: "TCP, silent", connections: 400, run: silent },
        Self { name: "TLS, half a ClientHello", connections: 400, run: half_client_hello },
        Self { name: "TLS, silent after the handshake", connections: 400, run: idle },
        Self { name: "TLS, handshake and reset", connections: 16, run: handshakes },
        Self { name: "HTTP/1.1, half a header", connections: 400, run: half_header },
        Self { name: "HTTP/1.1, a header byte at a time", connections: 200, run: slow_header },
        Self { name: "HTTP/1.1, half a body", connections: 200, run: half_body },
        Self { name: "HTTP/1.1, 1,000 large uploads", connections: 1000, run: slow_upload },
        Self { name: "HTTP/1.1, chunks of one byte", connections: 32, run: tiny_chunks },
        Self { name: "HTTP/1.1, 20 slow downloads", connections: 20, run: slow_download },
        Self { name: "HTTP/1.1, downloads that are not read", connections: 200, run: unread_download },
        Self { name: "HTTP/1.1, pipelined requests, responses not read", connections: 64, run: pipelined },
        Self { name: "HTTP/1.1, large headers", connections: 32, run: header_flood },
        Self { name: "HTTP/2, 100 streams with window 0", connections: 16, run: stalled_streams },
        Self { name: "HTTP/2, 100 slow downloads", connections: 4, run: slow_streams },
        Self { name: "HTTP/2, 100 slow uploads", connections: 4, run: slow_upload_streams },
        Self { name: "HTTP/2, reset after each request", connections: 16, run: rapid_reset },
        Self { name: "HTTP/2, PING flood", connections: 16, run: ping_flood },
        Self { name: "HTTP/2, SETTINGS flood", connections: 16, run: settings_flood },
        Self { name: "HTTP/2, empty DATA frames", connections: 16, run: empty_data },
        Self { name: "HTTP/2, DATA frames of one byte", connections: 16, run: tiny_data },
        Self { name: "HTTP/2, WINDOW_UPDATE flood", connections: 16, run: window_flood },
        Self { name: "HTTP/2, PRIORITY flood", connections: 16, run: priority_flood },
        Self { name: "HTTP/2, endless CONTINUATION", connections: 16, run: continuation_flood },
        Self { name: "HTTP/2, half a header block", connections: 200, run: half_header_block },
    ];
}

impl<'scope> Attack<'scope> {
    /// Starts all clients of a misbehaviour, which end after `stop`.
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        misbehaviour: &Misbehaviour,
        address: SocketAddr,
        stop: &'env AtomicBool,
        ended: &'env AtomicU64,
    ) -> Self {
        let run = misbehaviour.run;
        let client = move || {
            let client = Client { address, stop };
            while !client.is_over() {
                if run(&client).is_err() && !client.is_over() {
                    ended.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(PAUSE);
                }
            }
        };
        let start = |_| thread::Builder::new().stack_size(STACK).spawn_scoped(scope, client).ok();
        Self { clients: (0..misbehaviour.connections).filter_map(start).collect(), ended }
    }

    /// Returns how often the server has ended a connection, once all clients have ended.
    pub(super) fn ended(self) -> u64 {
        for client in self.clients {
            let _ = client.join();
        }
        self.ended.load(Ordering::Relaxed)
    }
}

impl Client<'_> {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn tcp(&self) -> io::Result<TcpStream> {
        tcp(SOURCE, self.address)
    }

    fn http1(&self) -> io::Result<SslStream<TcpStream>> {
        tls(self.tcp()?, "http/1.1")
    }

    /// Opens a connection with this initial window of streams.
    fn http2(&self, window: u32) -> io::Result<SslStream<TcpStream>> {
        let mut stream = tls(self.tcp()?, "h2")?;
        self.send(&mut stream, &preface(window))?;
        Ok(stream)
    }

    fn send(&self, stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        send(stream, bytes, || self.is_over())
    }

    /// Reads and discards what arrives, until the end.
    fn hold(&self, mut stream: impl io::Read) -> io::Result<()> {
        while !self.is_over() {
            receive(&mut stream, &mut [0; 4096])?;
        }
        Ok(())
    }

    /// Reads nothing, until the end.
    fn ignore(&self) {
        while !self.is_over() {
            thread::sleep(TICK);
        }
    }

    /// Sends bytes again and again, and discards what arrives.
    fn flood(&self, mut stream: SslStream<TcpStream>, mut next: impl FnMut() -> Vec<u8>) -> io::Result<()> {
        stream.get_ref().set_read_timeout(Some(Duration::from_micros(1)))?;
        while !self.is_over() {
            let bytes = next();
            self.send(&mut stream, &bytes)?;
            receive(&mut stream, &mut [0; 16 << 10])?;
        }
        Ok(())
    }

    /// Sends bytes in large intervals, and discards what arrives.
    fn trickle(&self, mut stream: SslStream<TcpStream>, bytes: &[u8]) -> io::Result<()> {
        while !self.is_over() {
            self.send(&mut stream, bytes)?;
            receive(&mut stream, &mut [0; 4096])?;
        }
        Ok(())
    }
}

fn silent(client: &Client<'_>) -> io::Result<()> {
    client.hold(client.tcp()?)
}

/// Announces a ClientHello of 512 bytes, and sends five of them.
fn half_client_hello(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.tcp()?;
    client.send(&mut stream, &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3])?;
    client.hold(stream)
}

fn idle(client: &Client<'_>) -> io::Result<()> {
    client.hold(client.http1()?)
}

fn handshakes(client: &Client<'_>) -> io::Result<()> {
    let stream = client.http1()?;
    nix::sys::socket::setsockopt(
        stream.get_ref(),
        nix::sys::socket::sockopt::Linger,
        &nix::libc::linger { l_onoff: 1, l_linger: 0 },
    )?;
    Ok(())
}

fn half_header(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, b"GET /small HTTP/1.1\r\nHost: localh")?;
    client.hold(stream)
}

fn slow_header(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, b"GET /small HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")?;
    client.trickle(stream, b"x")
}

fn half_body(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")?;
    client.send(&mut stream, &[b'x'; 16 << 10])?;
    client.hold(stream)
}

fn slow_upload(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")?;
    client.trickle(stream, &[b'x'; 1024])
}

fn tiny_chunks(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    for _ in 0..60_000 {
        if client.is_over() {
            return Ok(());
        }
        client.send(&mut stream, b"1\r\nx\r\n")?;
    }
    client.hold(stream)
}

fn slow_download(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    while !client.is_over() {
        receive(&mut stream, &mut [0; 2048])?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

fn unread_download(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    client.ignore();
    Ok(())
}

fn pipelined(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    let requests = b"GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    while !client.is_over() {
        client.send(&mut stream, &requests)?;
    }
    Ok(())
}

fn header_flood(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    let line = format!("X-Long: {}\r\n", "x".repeat(LONG));
    let request = format!("GET /small HTTP/1.1\r\nHost: localhost\r\n{}\r\n", line.repeat(8));
    while !client.is_over() {
        client.send(&mut stream, request.as_bytes())?;
        receive(&mut stream, &mut [0; 16 << 10])?;
    }
    Ok(())
}

fn stalled_streams(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http2(0)?;
    open_streams(client, &mut stream, "GET", "/large")?;
    client.hold(stream)
}

fn slow_streams(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http2(1 << 20)?;
    open_streams(client, &mut stream, "GET", "/large")?;
    while !client.is_over() {
        receive(&mut stream, &mut [0; 2048])?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Sends a kilobyte on each of all streams in turn.
fn slow_upload_streams(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http2(1 << 20)?;
    open_streams(client, &mut stream, "POST", "/")?;
    let mut number = 0;
    while !client.is_over() {
        number = (number + 1) % STREAMS;
        client.send(&mut stream, &frame(DATA, 0, id(number), &[b'x'; 1024]))?;
        receive(&mut stream, &mut [0; 4096])?;
    }
    Ok(())
}

fn rapid_reset(client: &Client<'_>) -> io::Result<()> {
    let stream = client.http2(1 << 20)?;
    let mut number = 0;
    client.flood(stream, || {
        number += 1;
        let id = id(number - 1);
        // The error code CANCEL.
        [request(id, "GET", "/small", END_STREAM), frame(RST_STREAM, 0, id, &[0, 0, 0, 8])].concat()
    })
}

fn ping_flood(client: &Client<'_>) -> io::Result<()> {
    client.flood(client.http2(1 << 20)?, || frame(PING, 0, 0, &[0; 8]).repeat(50))
}

fn settings_flood(client: &Client<'_>) -> io::Result<()> {
    client.flood(client.http2(1 << 20)?, || frame(SETTINGS, 0, 0, &[]).repeat(50))
}

fn empty_data(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http2(1 << 20)?;
    client.send(&mut stream, &request(1, "POST", "/", 0))?;
    client.flood(stream, || frame(DATA, 0, 1, &[]).repeat(50))
}

fn tiny_data(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http2(1 << 20)?;
    client.send(&mut stream, &request(1, "POST", "/", 0))?;
    client.flood(stream, || frame(DATA, 0, 1, b"x").repeat(50))
}

fn window_flood(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http2(0)?;
    client.send(&mut stream, &request(1, "GET", "/large", END_STREAM))?;
    client.flood(stream, || frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]).repeat(50))
}

fn priority_flood(client: &Client<'_>) -> io::Result<()> {
    client.flood(client.http2(1 << 20)?, || frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 16]).repeat(50))
}

fn continuation_flood(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http2(1 << 20)?;
    client.send(&mut stream, &frame(HEADERS, END_STREAM, 1, &header_block("GET", "/small")))?;
    // A literal field without indexing.
    let mut field = vec![0, 1, b'x', 100];
    field.extend([b'y'; 100]);
    client.flood(stream, || frame(CONTINUATION, 0, 1, &field.repeat(100)))
}

fn half_header_block(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http2(1 << 20)?;
    let whole = frame(HEADERS, END_HEADERS, 1, &header_block("GET", "/small"));
    client.send(&mut stream, &whole[..whole.len() - 4])?;
    client.hold(stream)
}

fn open_streams(
    client: &Client<'_>,
    stream: &mut SslStream<TcpStream>,
    method: &str,
    path: &str,
) -> io::Result<()> {
    let flags = if method == "GET" { END_STREAM } else { 0 };
    let all: Vec<u8> = (0..STREAMS).flat_map(|number| request(id(number), method, path, flags)).collect();
    client.send(stream, &all)
}

/// Returns the identifier of the client's stream with this number.
fn id(number: u32) -> u32 {
    2 * number + 1
}
