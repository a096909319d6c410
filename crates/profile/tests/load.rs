//! The load client against real servers in this process: good, silent and misbehaving ones.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it should")]

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use boring::{
    pkey::PKey,
    ssl::{SslAcceptor, SslMethod},
    x509::X509,
};
use quadrille_profile::load::{
    Live, Load, Offer, Pace, Stage, TlsVersion,
    preflight::{Refusal, Trust, preflight},
};

/// Long enough for a loaded machine.
const LIMIT: Duration = Duration::from_secs(180);
/// A duration that no test waits for.
const HOURS: Duration = Duration::from_secs(10_000);

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
        // This server, unlike those of the comparison, issues tickets: they are counted.
        assert!(seen.tickets >= 40, "{} tickets", seen.tickets);
    }
}

#[test]
fn held_connections_stay_open_until_the_server_closes_them() {
    let server = https_server();
    let (seen, mut held) = load(server, TlsVersion::V1_3, 10).hold().unwrap();
    assert_eq!((seen.ok, held.still_open()), (10, 10));

    // This server closes after three requests.
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
    assert!(seen.failures.keys().all(|failure| failure.stage == Stage::Handshake), "{:?}", seen.failures);
}

#[test]
fn a_silent_server_does_not_stop_the_load_from_ending() {
    let server = each_connection(|mut stream| drop(io::copy(&mut stream, &mut io::sink())));
    let patient = load(server, TlsVersion::V1_3, 6);
    let seen = Load { connection_timeout: Duration::from_millis(200), ..patient.clone() }.run().unwrap();
    assert_eq!((seen.ok, seen.failed()), (0, 6));
    assert!(seen.failure().unwrap().contains("timed out"));

    let time_limit = Duration::from_millis(300);
    let endless = Load { time_limit, connection_timeout: HOURS, ..patient };
    let seen = soon(move || endless.run().unwrap());
    assert_eq!(
        (seen.ok, seen.failed()),
        (0, 0),
        "connections in flight at the end neither succeeded nor failed"
    );
}

#[test]
fn ends_in_time_or_when_told() {
    let endless = load(https_server(), TlsVersion::V1_3, u64::MAX);
    // A machine that is too slow for one handshake in this time gets a longer time next.
    let mut time_limit = Duration::from_millis(300);
    loop {
        let limited = Load { time_limit, ..endless.clone() };
        if soon(move || limited.run().unwrap()).ok > 0 {
            break;
        }
        time_limit *= 2;
        assert!(time_limit < LIMIT, "no handshake");
    }

    let endless = Load { time_limit: HOURS, ..endless };
    let seen = soon(move || {
        let (live, stop) = (Live::default(), AtomicBool::new(false));
        thread::scope(|scope| {
            let running = scope.spawn(|| endless.on_threads(NonZeroUsize::new(2).unwrap(), &live, &stop));
            while live.ok.load(Ordering::Relaxed) < 20 {
                thread::sleep(Duration::from_millis(1));
            }
            stop.store(true, Ordering::Relaxed);
            running.join().unwrap().unwrap()
        })
    });
    assert!(seen.ok >= 20 && seen.failed() == 0, "{:?}", seen.failures);
}

#[test]
fn sessions_are_offered_as_often_as_asked() {
    let server = https_server();
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let half = Load { resumed: 0.5, connections: 1, ..load(server, version, 100) };
        let seen = half.run().unwrap();
        assert_eq!((seen.ok, seen.failed()), (100, 0), "{:?}", seen.failures);
        assert_eq!(seen.resumed, seen.offered, "this server accepts every session");
        assert!((49..=50).contains(&seen.resumed), "{version}: {} of 100", seen.resumed);
        assert_eq!(seen.full() + seen.resumed, seen.ok);
    }
}

#[test]
fn sessions_of_one_name_are_not_offered_to_another() {
    let names = (0..10).map(|number| format!("site{number}.example")).collect();
    let load = Load { resumed: 1.0, connections: 1, names, ..load(https_server(), TlsVersion::V1_3, 30) };
    let seen = load.run().unwrap();
    assert_eq!((seen.ok, seen.offered), (30, 20), "the first of each name has no session");
}

#[test]
fn a_client_reconnects_with_its_sessions() {
    let server = https_server();
    for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
        let load = Load { resumed: 1.0, connections: 1, ..load(server, version, 20) };
        let client = load.client().unwrap();
        let first = load.run_as(&client).unwrap();
        assert_eq!((first.ok, first.full()), (20, 1), "{version}: only the first has no session");
        let second = load.run_as(&client).unwrap();
        assert_eq!((second.ok, second.full()), (20, 0), "{version}: all have a session of the previous load");
        assert!(second.tickets <= 40, "{version}: {} tickets, counted for this load alone", second.tickets);
    }
}

#[test]
fn what_has_begun_in_time_is_finished() {
    let server = slow_server(Duration::from_millis(400));
    let endless = Load {
        requests: 0,
        connections: 4,
        time_limit: HOURS,
        connection_timeout: HOURS,
        begin_within: Some(Duration::from_secs(1)),
        ..load(server, TlsVersion::V1_3, u64::MAX)
    };
    let seen = soon(move || endless.run().unwrap());
    // Four start at once, and are served one after another, the last of them after the time.
    assert!(seen.ok >= 4 && seen.failed() == 0, "{} and {:?}", seen.ok, seen.failures);
    assert!(seen.elapsed >= Duration::from_millis(1600), "{:?}", seen.elapsed);
}

/// A server that needs 20 ms for each connection, one after another, cannot serve a hundred a second: the wait of
/// connections that are due counts, although they could not start.
#[test]
fn an_open_loop_counts_from_when_a_connection_was_due() {
    let server = slow_server(Duration::from_millis(20));
    let closed = Load { connections: 1, requests: 0, ..load(server, TlsVersion::V1_3, 40) };
    let open = Load { pace: Pace::Open { per_second: 100.0 }, ..closed.clone() };
    let (closed, open) = (closed.run().unwrap(), open.run().unwrap());
    assert_eq!((closed.ok, open.ok), (40, 40), "{:?} {:?}", closed.failures, open.failures);
    let last = open.handshake_us.max();
    assert!(last >= 300_000, "the last was due at 0.4 s and served after 0.8 s, not {last} us later");
    assert!(closed.handshake_us.value_at_percentile(50.0) < last / 2, "a closed loop does not see it");
}

#[test]
fn an_open_loop_keeps_its_rate_when_the_server_is_fast() {
    let load = Load {
        pace: Pace::Open { per_second: 200.0 },
        connections: 64,
        ..load(https_server(), TlsVersion::V1_3, 100)
    };
    let seen = load.run().unwrap();
    assert_eq!(seen.ok, 100);
    assert!(seen.elapsed >= Duration::from_millis(450), "{:?}", seen.elapsed);
}

#[test]
fn preflight_says_what_is_wrong() {
    let server = load(https_server(), TlsVersion::V1_3, 1);
    assert_eq!(preflight(&server, &Trust::Any).unwrap().version, "TLSv1.3");
    assert!(matches!(preflight(&server, &Trust::System), Err(Refusal::Untrusted(_))));
    let missing = Trust::File("no such file".into());
    assert!(matches!(preflight(&server, &missing), Err(Refusal::Authorities { .. })));
    let absent = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let absent = load(absent, TlsVersion::V1_3, 1);
    assert!(matches!(preflight(&absent, &Trust::Any), Err(Refusal::Connect(_))));
    let plain = each_connection(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let refused = preflight(&load(plain, TlsVersion::V1_3, 1), &Trust::Any);
    assert!(matches!(refused, Err(Refusal::Handshake(_))), "{refused:?}");
    let unknown = Load { offer: Offer { groups: Some("P-1".into()), ..Offer::default() }, ..server };
    assert!(preflight(&unknown, &Trust::Any).unwrap_err().to_string().contains("`P-1`"));
}

fn load(target: SocketAddr, version: TlsVersion, count: u64) -> Load {
    Load {
        offer: Offer::new(version, "X25519"),
        connections: 4,
        requests: 2,
        count,
        time_limit: LIMIT,
        ..Load::new(target, "localhost")
    }
}

/// Runs it on a thread of its own, and fails if it does not end.
fn soon<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    thread::spawn(move || done.send(what()));
    wait.recv_timeout(LIMIT).expect("it hangs or panicked")
}

fn protocol_name(version: TlsVersion) -> &'static str {
    match version {
        TlsVersion::V1_2 => "TLSv1.2",
        TlsVersion::V1_3 => "TLSv1.3",
    }
}

/// Responds to up to three requests on each connection, in two pieces.
fn https_server() -> SocketAddr {
    let acceptor = acceptor();
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

/// Performs handshakes one after another, each after a pause.
fn slow_server(pause: Duration) -> SocketAddr {
    let acceptor = acceptor();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::sleep(pause);
            let _ = acceptor.accept(stream);
        }
    });
    address
}

fn acceptor() -> Arc<SslAcceptor> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let mut acceptor = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls()).unwrap();
    acceptor.set_max_proto_version(None).unwrap();
    let key = PKey::private_key_from_pem(made.signing_key.serialize_pem().as_bytes()).unwrap();
    acceptor.set_private_key(&key).unwrap();
    acceptor.set_certificate(&X509::from_pem(made.cert.pem().as_bytes()).unwrap()).unwrap();
    acceptor.set_session_id_context(b"test").unwrap();
    Arc::new(acceptor.build())
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
