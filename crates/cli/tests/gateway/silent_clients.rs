//! Clients that connect and do not continue: they take places from each other, and none from other clients.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Http3Client, KeyServer, PATIENCE, Site, client_hello,
    curl, document, echo_server, eventually, listener, tls_client,
};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
};

/// Timeouts that do not end a connection of these tests.
const NO_TIMEOUTS: &str = "timeouts: {handshake: 600s, handshake_deadline: off, header: 600s, idle: 600s}";

fn gateway(listener: String) -> Gateway {
    let file = Configuration::new(&document(&[listener], ""));
    Gateway::with_config(&file.path(), 1)
}

/// Connects from an address of the loopback network; 127.0.1.1 is another client network than 127.0.0.1.
fn connect_from(client: [u8; 4], address: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((client, 0)).into()).expect("an address");
    socket.connect(&address.into()).expect("a connection");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket.set_tcp_nodelay(true).expect("no delay");
    socket.into()
}

/// Reads a response with a length to its end, and returns its header.
fn read_response(client: &mut TcpStream) -> String {
    let mut header = Vec::new();
    while !header.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).expect("a header");
        header.extend(byte);
    }
    let header = String::from_utf8(header).expect("a header of text").to_lowercase();
    let length = header.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    client.read_exact(&mut vec![0; length.parse().expect("a number")]).expect("a body");
    header
}

/// Connections of one client that send these bytes, and then nothing.
fn silent(address: SocketAddr, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
    let open = |_| {
        let mut tcp = connect_from([127, 0, 0, 1], address);
        // The gateway may have closed it already.
        let _ = tcp.write_all(bytes);
        tcp
    };
    (0..count).map(open).collect()
}

fn is_closed(mut client: &TcpStream) -> bool {
    match client.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
    }
}

fn evicted(gateway: &Gateway) -> f64 {
    gateway.metric("quadrille_handshake_failures_total", &["reason=\"evicted\""])
}

#[test]
fn handshakes_that_wait_for_their_clients_yield_to_newcomers() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let gateway = gateway(listener(&pair, &format!("respond: ok, limits: {{handshakes: 4}}, {NO_TIMEOUTS}")));
    let (address, hello) = (gateway.address(0), client_hello(&tls_client(|_| ())));
    // A slow client of another network keeps its place.
    let mut slow = connect_from([127, 0, 1, 1], address);
    slow.write_all(&hello[..7]).expect("the start of a hello");
    let mut flood = Vec::new();
    // Nothing, half a ClientHello, and a whole one without the messages that must follow.
    for (bytes, settled) in [(&[][..], 9.0), (&hello[..hello.len() / 2], 21.0), (&hello, 33.0)] {
        flood.extend(silent(address, 12, bytes));
        // A newcomer that is accepted before the rest of the flood may be evicted by it.
        eventually("the flood stays", || evicted(&gateway) == settled);
        assert_eq!(curl(&gateway, &certificates, &[], "/"), "ok");
    }
    assert!(is_closed(&flood[0]), "the oldest");
    assert_eq!(gateway.metric("quadrille_handshake_failures_total", &["too_many_handshakes"]), 0.0);
    assert!(evicted(&gateway) >= (flood.len() - 4) as f64, "{}", gateway.metrics());
    slow.write_all(&hello[7..]).expect("the rest of the hello");
    assert_eq!(slow.read(&mut [0]).expect("a response"), 1, "the ServerHello");
}

#[test]
fn clients_behind_a_proxy_count_by_their_own_networks() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let keys =
        "respond: ok, proxy_protocol: required, trusted_proxies: [127.0.0.0/8], limits: {handshakes: 4}";
    let gateway = gateway(listener(&pair, &format!("{keys}, {NO_TIMEOUTS}")));
    let (address, hello) = (gateway.address(0), client_hello(&tls_client(|_| ())));
    let announced = |client: &str| format!("PROXY TCP4 {client} 10.0.0.1 1000 443\r\n").into_bytes();
    let mut slow = connect_from([127, 0, 0, 1], address);
    slow.write_all(&[&announced("192.0.2.1")[..], &hello[..7]].concat()).expect("the start of a hello");
    gateway.wait_for_metric("quadrille_connections", &[], |open| open == 1.0);
    let flood = silent(address, 40, &[&announced("198.51.100.1")[..], &hello[..7]].concat());
    eventually("the flood stays", || evicted(&gateway) >= (flood.len() - 4) as f64);
    slow.write_all(&hello[7..]).expect("the rest of the hello");
    assert_eq!(slow.read(&mut [0]).expect("a response"), 1, "the ServerHello");
}

#[test]
fn connections_without_a_request_yield_to_newcomers() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let limits = format!("respond: ok, limits: {{connections: 4}}, {NO_TIMEOUTS}");
    let plain = format!("{{address: \"127.0.0.1:0\", tls: off, {limits}}}");
    let file = Configuration::new(&document(&[plain, listener(&pair, &limits)], ""));
    let gateway = Gateway::with_config(&file.path(), 2);
    let (plain, tls) = (gateway.address(0), gateway.address(1));
    let request = |head: &[u8]| {
        let mut client = connect_from([127, 0, 0, 1], plain);
        client.write_all(head).expect("a request");
        let mut response = [0; 15];
        client.read_exact(&mut response).expect("a response");
        assert_eq!(&response, b"HTTP/1.1 200 OK");
        client
    };
    // Nothing, half a header, half an HTTP/2 preface, and a whole request that is followed by none.
    for bytes in [&b""[..], b"GET / HTTP/1.1\r\nHo", b"PRI * HTTP/2", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let flood = silent(plain, 4, bytes);
        // A newcomer that is accepted before the rest of the flood may be evicted by it.
        gateway.wait_for_metric("quadrille_connections", &[], |open| open == 4.0);
        drop(request(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        drop(flood);
        gateway.wait_for_metric("quadrille_connections", &[], |open| open == 0.0);
    }
    // Over TLS, the flood has completed its handshakes.
    let connector = Connector::new(&certificates);
    let mut flood = Vec::new();
    for _ in 0..4 {
        let mut client = connector.http(tls).expect("a connection");
        client.send(b"GET / HTTP/1.1\r\nHo").expect("half a header");
        flood.push(client);
    }
    let mut client = connector.http(tls).expect("a connection, in place of the oldest");
    assert_eq!(client.get("/").expect("a response").status, 200);
    assert!(gateway.metric("quadrille_idle_connections_closed_total", &[]) >= 1.0);
}

/// Clients of TCP mode that send nothing after the handshake, or to a listener without TLS.
#[test]
fn forwarded_connections_without_data_yield_to_newcomers() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let keys = format!("mode: tcp, upstream: web, limits: {{connections: 4}}, {NO_TIMEOUTS}");
    let listeners = [format!("{{address: \"127.0.0.1:0\", tls: off, {keys}}}"), listener(&pair, &keys)];
    let web = format!("web: {{servers: [\"{}\"]}}", echo_server());
    let file = Configuration::new(&document(&listeners, &web));
    let gateway = Gateway::with_config(&file.path(), 2);
    let (plain, tls) = (gateway.address(0), gateway.address(1));
    let open = |count: f64| gateway.wait_for_metric("quadrille_connections", &[], |open| open == count);
    // A client of another network that has exchanged data keeps its place.
    let mut busy = connect_from([127, 0, 1, 1], plain);
    let request = |client: &mut TcpStream| {
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("a request");
        assert_eq!(read_response(client).lines().next(), Some("http/1.1 200 ok"));
    };
    request(&mut busy);
    // Two event loops accept: the first is the oldest only if the others come later.
    let mut flood = silent(plain, 1, b"");
    open(2.0);
    flood.extend(silent(plain, 2, b""));
    open(4.0);
    request(&mut connect_from([127, 0, 0, 1], plain));
    assert!(is_closed(&flood[0]), "the oldest");
    request(&mut busy);
    drop((flood, busy));
    open(0.0);
    let connector = Connector::new(&certificates);
    let flood: Vec<_> = (0..4).map(|_| connector.tls(tls).expect("a handshake")).collect();
    let mut client = connector.http(tls).expect("a connection, in place of the oldest");
    assert_eq!(client.get("/").expect("a response").status, 200);
    drop(flood);
}

#[test]
fn a_connection_with_a_request_does_not_yield() {
    let plain = format!(
        "{{address: \"127.0.0.1:0\", tls: off, respond: ok, limits: {{connections: 1}}, {NO_TIMEOUTS}}}"
    );
    let gateway = gateway(plain);
    let mut busy = connect_from([127, 0, 0, 1], gateway.address(0));
    let upload = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n1";
    busy.write_all(upload).expect("half an upload");
    gateway.wait_for_metric("quadrille_connections", &[], |open| open == 1.0);
    let mut waiting = connect_from([127, 0, 0, 1], gateway.address(0));
    waiting.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("a request");
    busy.write_all(b"2").expect("the rest of the upload");
    let mut response = [0; 15];
    busy.read_exact(&mut response).expect("a response");
    assert_eq!(&response, b"HTTP/1.1 200 OK");
    drop(busy);
    waiting.read_exact(&mut response).expect("a response, once there is a place");
    assert_eq!(&response, b"HTTP/1.1 200 OK");
}

#[test]
fn quic_handshakes_that_wait_for_their_clients_yield_to_newcomers() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let gateway = gateway(listener(
        &pair,
        &format!("http3: on, respond: ok, limits: {{handshakes: 4}}, {NO_TIMEOUTS}"),
    ));
    let mut client = Http3Client::new(&certificates);
    let mut flood = Vec::new();
    // A datagram may be lost, and a busy gateway may refuse a handshake.
    eventually("the flood stays", || {
        flood.push(client.begin(gateway.address(0), None));
        evicted(&gateway) >= 16.0
    });
    assert_eq!(client.connect(gateway.address(0)).get("/").text(), "ok");
    assert_eq!(gateway.metric("quadrille_handshake_failures_total", &["too_many_handshakes"]), 0.0);
    // TCP and QUIC share the limit, and clients of both are served.
    let before = evicted(&gateway);
    let also = silent(gateway.address(0), 12, b"");
    eventually("the flood stays", || evicted(&gateway) >= before + (also.len() - 1) as f64);
    assert_eq!(client.connect(gateway.address(0)).get("/").text(), "ok");
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "ok");
    drop((flood, also));
}

#[test]
fn silent_connections_to_the_admin_address_do_not_delay_health_checks() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let site = Site::new();
    let processes = [gateway(listener(&pair, "respond: ok")), KeyServer::start(&site, &[]).process];
    for process in processes {
        let url = process.admin("/healthz");
        let authority = url.trim_start_matches("http://").trim_end_matches("/healthz");
        let address: SocketAddr = authority.parse().expect("an address");
        for bytes in [&b""[..], b"GET /healthz HTTP/1.1\r\nHo"] {
            let flood = silent(address, 200, bytes);
            process.admin_page("/healthz");
            assert!(is_closed(&flood[0]), "the oldest");
            process.admin_page("/healthz");
        }
    }
}

#[test]
fn changed_limits_take_effect_on_reload() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let settings = |limits: &str| {
        document(&[listener(&pair, &format!("respond: ok, limits: {{{limits}}}, {NO_TIMEOUTS}"))], "")
    };
    let file = Configuration::new(&settings("handshakes: 100"));
    let gateway = Gateway::with_config(&file.path(), 1);
    let reload = |limits: &str, count: f64| {
        file.replace(&settings(limits));
        gateway.wait_for_metric("quadrille_reloads_total", &["ok"], |reloads| reloads == count);
    };
    let address = gateway.address(0);
    let flood = silent(address, 20, b"");
    gateway.wait_for_metric("quadrille_connections", &[], |open| open == 20.0);
    assert_eq!(evicted(&gateway), 0.0);
    reload("handshakes: 3", 1.0);
    let more = silent(address, 1, b"");
    gateway.wait_for_metric("quadrille_connections", &[], |open| open <= 3.0);
    reload("connections: 2", 2.0);
    let again = silent(address, 1, b"");
    gateway.wait_for_metric("quadrille_connections", &[], |open| open <= 2.0);
    reload("connections: 100", 3.0);
    let last = silent(address, 20, b"");
    gateway.wait_for_metric("quadrille_connections", &[], |open| open >= 20.0);
    drop((flood, more, again, last));
}
