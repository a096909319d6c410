//! Broken, slow or lost clients: the gateway handles each and keeps serving.

use crate::support::{Certificates, Gateway, PATIENCE, client_hello, eventually, s_client, tls_client};
use boring::ssl::{Ssl, SslContext, SslStream};
use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    thread,
};

/// Starts a gateway whose listener has these settings (a line of YAML).
fn gateway(certificates: &Certificates, settings: &str) -> Gateway {
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let file: PathBuf = certificates.path("quadrille.yaml");
    let content = format!(
        "admin: 127.0.0.1:0\nlisteners:\n  - address: 127.0.0.1:0\n    certificates: [{{chain: {}, key: {}}}]\n    respond: ok\n    {settings}\n",
        pair.chain.display(),
        pair.key.display()
    );
    std::fs::write(&file, content).expect("a configuration");
    Gateway::with_config(&file, 1)
}

fn connect(gateway: &Gateway) -> TcpStream {
    let tcp = TcpStream::connect(gateway.address(0)).expect("a connection");
    tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    tcp.set_nodelay(true).expect("no delay");
    tcp
}

/// Reads until the gateway closes the connection; a reset counts as closed, a timeout does not.
#[track_caller]
fn read_to_close(stream: &mut impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    match stream.read_to_end(&mut all) {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            panic!("the gateway did not close the connection: {error}")
        }
        _ => all,
    }
}

/// Waits until this many handshakes have failed for this reason.
#[track_caller]
fn expect_failures(gateway: &Gateway, reason: &str, expected: f64) {
    let label = format!("reason=\"{reason}\"");
    gateway.wait_for_metric("quadrille_handshake_failures_total", &[&label], |count| count == expected);
}

#[test]
fn plain_http_is_redirected_to_https() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, "timeouts: {}");
    for request in
        ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "POST /form HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"]
    {
        let mut client = connect(&gateway);
        client.write_all(request.as_bytes()).expect("a request");
        client.shutdown(Shutdown::Write).expect("the end of the request");
        let answer = String::from_utf8(read_to_close(&mut client)).expect("text");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("https://"), "{answer}");
    }
    expect_failures(&gateway, "plain_http", 2.0);
}

#[test]
fn garbage_ends_the_connection_and_nothing_else() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, "timeouts: {}");
    let hello = client_hello(&tls_client(|_| ()));
    let mut flipped = hello.clone();
    flipped[5] = 0xee; // No such handshake message.
    let mut long = hello.clone();
    long[3..5].copy_from_slice(&[0xff, 0xff]); // A longer record than there can be.
    let mut lying = hello.clone();
    lying[6] = 0xff; // A handshake message of sixteen megabytes.
    let garbage: [(&[u8], &str); 6] = [
        (b"\x00\x01\x02\x03", "not_tls"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff", "not_tls"),
        (b"\x16\x03\x01\x00\x05hello", "tls"),
        (&flipped, "tls"),
        (&long, "tls"),
        (&lying, "tls"),
    ];
    let mut expected = std::collections::BTreeMap::new();
    for (bytes, reason) in garbage {
        let mut client = connect(&gateway);
        client.write_all(bytes).expect("garbage");
        read_to_close(&mut client);
        *expected.entry(reason).or_insert(0.0) += 1.0;
    }
    drop(connect(&gateway));
    let mut half = connect(&gateway);
    half.write_all(&hello[..hello.len() / 2]).expect("half a hello");
    half.shutdown(Shutdown::Write).expect("and no more");
    read_to_close(&mut half);
    expected.insert("closed", 2.0);
    for (reason, count) in expected {
        expect_failures(&gateway, reason, count);
    }
    s_client(gateway.address(0), &certificates.ca(), &[]).expect("a good client");
}

#[test]
fn silent_clients_are_dropped_at_the_handshake_timeout() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, "timeouts: {handshake: 300ms, handshake_deadline: off}");
    let hello = client_hello(&tls_client(|_| ()));
    // Nothing, one byte, half a ClientHello, and a complete one without the messages that must follow.
    let mut clients: Vec<_> = [0, 1, hello.len() / 2, hello.len()]
        .map(|length| {
            let mut client = connect(&gateway);
            client.write_all(&hello[..length]).expect("a part of a hello");
            client
        })
        .into();
    for client in &mut clients {
        read_to_close(client);
    }
    expect_failures(&gateway, "timeout", 4.0);
    gateway.wait_for_metric("quadrille_connections", &[], |open| open == 0.0);
}

#[test]
fn a_hello_of_16_kib_and_one_in_single_bytes_are_served() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, "timeouts: {}");
    let ca = certificates.ca();
    // Sixty-three names of 255 bytes: the largest ClientHello that fits into one record, or nearly so.
    let padding: Vec<String> = (0..63).map(|index| format!("{index:0>250}")).collect();
    let long = format!("http/1.1,{}", padding.join(","));
    let relay = relay(gateway.address(0), usize::MAX);
    for version in ["-tls1_2", "-tls1_3"] {
        let seen = s_client(gateway.address(0), &ca, &[version, "-alpn", &long]).expect("a long hello");
        assert_eq!(seen.alpn(), Some("http/1.1"));
        s_client(relay, &ca, &[version, "-alpn", &long]).expect("a long hello through the relay");
    }
    let single_bytes = self::relay(gateway.address(0), 1);
    for version in ["-tls1_2", "-tls1_3"] {
        s_client(single_bytes, &ca, &[version]).expect("single bytes");
    }
    // Larger than any client needs (BoringSSL accepts 16 KiB): rejected with an alert, not buffered.
    let excessive: Vec<String> = (0..100).map(|index| format!("{index:0>250}")).collect();
    s_client(gateway.address(0), &ca, &["-alpn", &excessive.join(",")]).expect_refusal("25 KiB");
    expect_failures(&gateway, "tls", 1.0);
}

#[test]
fn a_client_without_a_common_protocol_is_rejected() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, "timeouts: {}");
    let ca = certificates.ca();
    for version in ["-tls1_2", "-tls1_3"] {
        s_client(gateway.address(0), &ca, &[version, "-alpn", "mqtt"]).expect_refusal("no common protocol");
    }
    expect_failures(&gateway, "no_common_protocol", 2.0);
}

/// Starts a relay to `server` that writes at most `step` bytes at a time. Its threads end with their connections.
fn relay(server: SocketAddr, step: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(server).expect("the gateway");
            server.set_nodelay(true).expect("no delay");
            let back = (server.try_clone().expect("a copy"), client.try_clone().expect("a copy"));
            thread::spawn(move || copy(back.0, back.1, usize::MAX));
            thread::spawn(move || copy(client, server, step));
        }
    });
    address
}

fn copy(mut from: TcpStream, mut to: TcpStream, step: usize) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if buffer[..count].chunks(step).any(|chunk| to.write_all(chunk).is_err()) {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[test]
fn slow_requests_are_dropped_at_the_header_timeout() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, "timeouts: {header: 1s, idle: 1h}");
    let http1 = tls_client(|builder| builder.set_alpn_protos(b"\x08http/1.1").expect("ALPN"));
    let http2 = tls_client(|builder| builder.set_alpn_protos(b"\x02h2").expect("ALPN"));
    let shake = |client: &SslContext| -> SslStream<TcpStream> {
        Ssl::new(client).expect("a session").connect(connect(&gateway)).expect("a handshake")
    };
    // Half a header, then nothing, until the header timeout.
    let outlast = || {
        let mut silent = shake(&http1);
        silent.write_all(b"GET / HTTP/1.1\r\nHost: loc").expect("half a header");
        read_to_close(&mut silent);
    };
    outlast();

    // One byte at a time, without end.
    let mut slow = shake(&http1);
    slow.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").expect("the beginning of a header");
    eventually("the gateway continues reading", || slow.write_all(b"x").is_err());

    // HTTP/2 without its preface, and with half of it.
    read_to_close(&mut shake(&http2));
    let mut half = shake(&http2);
    half.write_all(b"PRI * HTTP/2.0").expect("half a preface");
    read_to_close(&mut half);

    // A preconnected client, as in browsers: preface and SETTINGS, and a PING much later, which is acknowledged.
    let mut early = shake(&http2);
    early.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").expect("a preface");
    outlast();
    early.write_all(b"\0\0\x08\x06\0\0\0\0\0quadrill").expect("a PING");
    let mut answered = Vec::new();
    while !answered.ends_with(b"quadrill") {
        let mut byte = [0];
        early.read_exact(&mut byte).expect("a PING acknowledgement");
        answered.extend(byte);
    }

    // The second request of a connection has its own timeout, and idling between the two is allowed.
    let mut patient = shake(&http1);
    for _ in 0..2 {
        patient.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("a request");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\nok") {
            let mut byte = [0];
            patient.read_exact(&mut byte).expect("a response");
            answer.extend(byte);
        }
        outlast();
    }
}
