//! The load client against real servers in this process: good, silent, and rude ones.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it should")]

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use boring::ssl::{SslAcceptor, SslFiletype, SslMethod};
use quadrille_bench_handshakes::{
    certificate::CertificateFiles,
    load::{Load, Stage},
    scenario::{KeyKind, Resumed, Scenario, TlsVersion},
};

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn counts_what_the_server_did() {
    let server = https_server();
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let seen = load(server, version, 40).run().unwrap();
        assert_eq!((seen.ok, seen.failed(), seen.resumed), (40, 0, 0), "{:?}", seen.failures);
        let (negotiated, count) = seen.negotiated.first_key_value().unwrap();
        assert_eq!((negotiated.version, *count), (protocol_name(version), 40));
        assert_eq!(negotiated.group, "X25519");
        assert_eq!(seen.handshake_us.len(), 40);
        assert!(seen.exchange_us.max() >= seen.handshake_us.min());
        // This server, unlike those of the comparison, hands out tickets: they are noticed.
        assert!(seen.tickets >= 40, "{} tickets", seen.tickets);
    }
}

#[test]
fn clients_come_back_when_asked_to() {
    let server = https_server();
    for (version, resumed) in [
        (TlsVersion::V1_3, Resumed::Ticket),
        (TlsVersion::V1_2, Resumed::Ticket),
        (TlsVersion::V1_2, Resumed::Id),
    ] {
        let returning = Load { resumed: Some(resumed), ..load(server, version, 40) };
        let seen = returning.run().unwrap();
        assert_eq!((seen.ok, seen.failed()), (40, 0), "{:?}", seen.failures);
        assert!(seen.resumed >= 30, "{version:?} {resumed}: {} resumed", seen.resumed);
    }
}

#[test]
fn held_connections_stay_open_until_the_server_closes_them() {
    let server = https_server();
    let (seen, mut held) = load(server, TlsVersion::V1_3, 10).hold().unwrap();
    assert_eq!((seen.ok, held.still_open()), (10, 10));

    // After three requests this server closes.
    let requests = Load { requests: 3, ..load(server, TlsVersion::V1_3, 5) };
    let (seen, mut held) = requests.hold().unwrap();
    assert_eq!(seen.ok, 5);
    let deadline = Instant::now() + LIMIT;
    while held.still_open() > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(held.still_open(), 0);
}

#[test]
fn a_server_that_is_rude_is_a_failed_handshake() {
    let server = each_connection(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let seen = load(server, TlsVersion::V1_3, 7).run().unwrap();
    assert_eq!((seen.ok, seen.failed()), (0, 7));
    assert!(seen.failures.contains_key(&Stage::Handshake), "{:?}", seen.failures);
}

#[test]
fn a_silent_server_does_not_stop_the_load_from_ending() {
    let server = each_connection(|stream| {
        thread::sleep(LIMIT);
        drop(stream);
    });
    let patient = load(server, TlsVersion::V1_3, 6);
    let seen = Load { connection_timeout: Duration::from_millis(200), ..patient.clone() }.run().unwrap();
    assert_eq!((seen.ok, seen.failed()), (0, 6));
    assert!(seen.failure().unwrap().contains("timed out"));

    let begun = Instant::now();
    let seen = Load { time_limit: Duration::from_millis(300), ..patient }.run().unwrap();
    assert!(begun.elapsed() < LIMIT / 2);
    assert_eq!(
        (seen.ok, seen.failed()),
        (0, 0),
        "what was under way at the end neither succeeded nor failed"
    );
}

#[test]
fn ends_in_time_and_goes_nowhere_but_loopback() {
    let endless =
        Load { time_limit: Duration::from_millis(300), ..load(https_server(), TlsVersion::V1_3, u64::MAX) };
    let begun = Instant::now();
    assert!(endless.run().unwrap().ok > 0);
    assert!(begun.elapsed() < LIMIT / 2);

    let elsewhere = load("192.0.2.1:443".parse().unwrap(), TlsVersion::V1_3, 1);
    assert!(elsewhere.run().unwrap_err().to_string().contains("loopback"));
}

fn load(target: SocketAddr, version: TlsVersion, count: u64) -> Load {
    let scenario = Scenario {
        version,
        key: KeyKind::P256,
        groups: "X25519".into(),
        clients: 4,
        requests: 2,
        resumed: None,
    };
    Load::new(&scenario, target, count, LIMIT)
}

fn protocol_name(version: TlsVersion) -> &'static str {
    match version {
        TlsVersion::V1_2 => "TLSv1.2",
        TlsVersion::V1_3 => "TLSv1.3",
    }
}

/// Answers up to three requests on each connection, in two pieces.
fn https_server() -> SocketAddr {
    let directory = tempfile::tempdir().unwrap();
    let files = CertificateFiles::make(KeyKind::P256, directory.path()).unwrap();
    let mut acceptor = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls()).unwrap();
    acceptor.set_max_proto_version(None).unwrap();
    acceptor.set_private_key_file(&files.key, SslFiletype::PEM).unwrap();
    acceptor.set_certificate_chain_file(&files.chain).unwrap();
    let acceptor = acceptor.build();
    each_connection(move |stream| {
        let Ok(stream) = acceptor.accept(stream) else { return };
        let mut stream = BufReader::new(stream);
        for _ in 0..3 {
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                if stream.read_line(&mut line).unwrap_or_default() == 0 {
                    return;
                }
            }
            for piece in ["HTTP/1.1 200 OK\r\nContent-Len", "gth: 2\r\n\r\nok"] {
                if stream.get_mut().write_all(piece.as_bytes()).is_err() {
                    return;
                }
            }
        }
        let _ = stream.get_mut().shutdown();
    })
}

/// Runs `serve` on a thread of its own for each connection, as long as the test process lives.
fn each_connection(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    address
}
