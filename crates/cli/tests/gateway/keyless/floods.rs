//! Idle connections to a key server, and slow readers.

use crate::support::{KeyServer, PATIENCE, Site, eventually, output, quadrille};
use boring::ssl::{SslConnector, SslFiletype, SslMethod, SslStream};
use quadrille_keyless::wire::{Incoming, Message, Mode, Reader, Writer};
use socket2::{Domain, Socket, Type};
use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

fn ping(site: &Site, server: &KeyServer) -> bool {
    let mut command = quadrille("keyserver");
    command.args(["ping", "--server", &server.name()]);
    site.as_gateway(&mut command);
    output(&mut command).0
}

#[test]
fn idle_connections_are_evicted_for_new_ones() {
    const FLOOD: usize = 1000;
    let site = Site::new();
    let server = KeyServer::start(&site, &[]);
    let address = SocketAddr::from(([127, 0, 0, 1], server.port));
    let flood: Vec<_> = (0..FLOOD).map(|_| TcpStream::connect(address).expect("a connection")).collect();
    assert!(ping(&site, &server), "a gateway of the same machine");
    // Well before any of them times out.
    let refused = |reason: &str| {
        let labels = [&format!("reason=\"{reason}\"")[..]];
        server.process.metric("quadrille_keyserver_refused_connections_total", &labels)
    };
    eventually("the flood stays", || refused("too_many") >= (FLOOD - 300) as f64);
    let mut oldest = &flood[0];
    oldest.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    assert!(!matches!(oldest.read(&mut [0]), Ok(1..)), "it is closed");
    assert!(ping(&site, &server));
}

/// Unread data of the client fills the socket buffers, and then the server waits with further pending responses.
#[test]
fn a_slow_reader_loses_nothing() {
    const PINGS: u32 = 20_000;
    let site = Site::new();
    let server = KeyServer::start(&site, &[]);
    let mut tls = connect(&site, &server);
    let data = [7; 1000];
    let mut pings = Writer::new(Mode::Batched);
    for id in 0..PINGS {
        assert!(pings.put(&Message::Ping { id, data: &data }));
    }
    let pings = pings.unsent().to_vec();
    let mut sent = send(&mut tls, &pings, 0);
    assert!(sent < pings.len(), "no write has to wait");
    let socket = socket2::SockRef::from(tls.get_ref());
    socket.set_recv_buffer_size(1 << 20).expect("a large buffer");
    let (mut reader, mut buffer) = (Reader::new(Mode::Batched), vec![0; 64 * 1024]);
    let mut answered = 0;
    while answered < PINGS {
        let count = match tls.read(&mut buffer) {
            Ok(0) => panic!("the server has closed the connection after {answered} responses"),
            Ok(count) => count,
            Err(error) if is_slow(&error) => {
                sent = send(&mut tls, &pings, sent);
                continue;
            }
            Err(error) => panic!("after {answered} responses: {error}"),
        };
        reader.receive(&buffer[..count]);
        while let Some(incoming) = reader.next_message().expect("the protocol") {
            assert!(matches!(incoming, Incoming::Message(Message::Pong { id, .. }) if id == answered));
            answered += 1;
        }
    }
}

/// Opens a connection with a small receive buffer.
fn connect(site: &Site, server: &KeyServer) -> SslStream<TcpStream> {
    let mut builder = SslConnector::builder(SslMethod::tls()).expect("a TLS client");
    builder.set_ca_file(site.certificates.ca()).expect("the CA");
    builder.set_certificate_chain_file(&site.gateway.chain).expect("a certificate");
    builder.set_private_key_file(&site.gateway.key, SslFiletype::PEM).expect("its key");
    builder.set_alpn_protos(b"\x10quadrille-keys/1").expect("ALPN");
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    socket.connect(&SocketAddr::from(([127, 0, 0, 1], server.port)).into()).expect("a connection");
    let tcp: TcpStream = socket.into();
    let connected = builder.build().connect("localhost", tcp).expect("a handshake");
    // Writes that wait longer are waited for.
    let limit = Some(Duration::from_millis(200));
    connected.get_ref().set_read_timeout(limit).expect("a timeout");
    connected.get_ref().set_write_timeout(limit).expect("a timeout");
    connected
}

/// Sends until the server accepts no more; returns the number of bytes sent.
fn send(tls: &mut SslStream<TcpStream>, bytes: &[u8], mut sent: usize) -> usize {
    while sent < bytes.len() {
        // The same bytes again after a wait, as BoringSSL requires.
        let end = bytes.len().min((sent / 16_384 + 1) * 16_384);
        match tls.write(&bytes[sent..end]) {
            Ok(count) => sent += count,
            Err(error) if is_slow(&error) => break,
            Err(error) => panic!("after {sent} bytes: {error}"),
        }
    }
    sent
}

fn is_slow(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
