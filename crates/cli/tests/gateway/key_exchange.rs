//! Key exchange by the engine: the handshakes that use it, and no other changes.

use crate::support::{Certificates, EarlyClient, Gateway, client_hello, eventually, s_client, tls_client};
use boring::ssl::{Ssl, SslContext, SslContextBuilder, SslSession, SslStream, SslVersion};
use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{Arc, Mutex},
};

/// Starts a gateway with these keys under `engine`, and these under `tls`.
fn gateway(certificates: &Certificates, engine: &str, tls: &str) -> Gateway {
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let (chain, key) = (pair.chain.display(), pair.key.display());
    let file = certificates.path("quadrille.yaml");
    let content = format!(
        "admin: 127.0.0.1:0\nengine: {{{engine}}}\nresumption: {{early_data: on}}\nlisteners:\n  - address: 127.0.0.1:0\n    \
         certificates: [{{chain: {chain}, key: {key}}}]\n    tls: {{{tls}}}\n    respond: ok\n"
    );
    std::fs::write(&file, content).expect("a configuration");
    Gateway::with_config(&file, 1)
}

/// Connects, requests a page, and returns the group.
fn visit(gateway: &Gateway, context: &SslContext, session: Option<&SslSession>) -> u16 {
    let tcp = TcpStream::connect(gateway.address(0)).expect("a connection");
    let mut ssl = Ssl::new(context).expect("a session");
    ssl.set_hostname("localhost").expect("a name");
    if let Some(session) = session {
        // SAFETY: the session came from a connection of this context.
        unsafe { ssl.set_session(session) }.expect("the session");
    }
    let mut stream: SslStream<_> = ssl.connect(tcp).expect("a handshake");
    assert_eq!(stream.ssl().session_reused(), session.is_some());
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("a request");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    stream.ssl().curve().expect("a group")
}

fn with_groups(groups: &str) -> SslContext {
    tls_client(|builder| builder.set_curves_list(groups).expect("groups"))
}

fn exchanged(gateway: &Gateway, group: &str, by: &str) -> f64 {
    let labels = [format!("group=\"{group}\""), format!("by=\"{by}\"")];
    let labels = labels.each_ref().map(String::as_str);
    gateway.metric("quadrille_handshake_key_exchanges_total", &labels)
}

fn operations(gateway: &Gateway, operation: &str, result: &str) -> f64 {
    let labels = [format!("operation=\"{operation}\""), format!("\"{result}\"")];
    let labels = labels.each_ref().map(String::as_str);
    gateway.metric("quadrille_key_exchange_operations_total", &labels)
}

const X25519: u16 = 0x001d;
const HYBRID: u16 = 0x11ec;
const P256: u16 = 23;

#[test]
fn the_engine_exchanges_keys_with_every_client_that_has_sent_a_share_of_the_chosen_group() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, "", "");
    for (groups, expected) in [
        ("X25519", X25519),
        ("X25519:P-256", X25519),
        ("X25519MLKEM768", HYBRID),
        // Two shares.
        ("X25519MLKEM768:X25519", HYBRID),
        ("X25519:X25519MLKEM768", HYBRID),
    ] {
        assert_eq!(visit(&gateway, &with_groups(groups), None), expected, "{groups}");
    }
    assert_eq!(exchanged(&gateway, "x25519", "engine"), 2.0, "{}", gateway.metrics());
    assert_eq!(exchanged(&gateway, "x25519mlkem768", "engine"), 3.0, "{}", gateway.metrics());
    assert_eq!(gateway.metric("quadrille_handshake_key_exchanges_total", &["boringssl"]), 0.0);
    assert_eq!((operations(&gateway, "x25519", "ok"), operations(&gateway, "ml-kem-768", "ok")), (5.0, 3.0));
}

#[test]
fn other_groups_and_versions_are_boringssls() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, "", "");
    assert_eq!(visit(&gateway, &with_groups("P-256"), None), P256);
    let tls12 = tls_client(|builder| {
        builder.set_max_proto_version(Some(SslVersion::TLS1_2)).expect("a version");
        // In TLS 1.2, the groups also determine which certificates the client can verify.
        builder.set_curves_list("X25519:P-256").expect("groups");
    });
    assert_eq!(visit(&gateway, &tls12, None), X25519);
    s_client(gateway.address(0), &certificates.ca(), &["-tls1_2", "-groups", "P-256"])
        .expect("TLS 1.2, P-256");
    assert_eq!(exchanged(&gateway, "p256", "boringssl"), 2.0, "{}", gateway.metrics());
    assert_eq!(exchanged(&gateway, "x25519", "boringssl"), 1.0, "{}", gateway.metrics());
    assert_eq!(gateway.metric("quadrille_key_exchange_operations_total", &[]), 0.0, "{}", gateway.metrics());
}

/// Many clients connect at once, so that iterations of the single event loop process several, until lanes have
/// computed some.
#[test]
fn clients_with_p256_that_come_together_are_answered_in_lanes() {
    const CLIENTS: usize = 24;
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, "", "");
    let client = with_groups("P-256");
    if quadrille_engine::tier(quadrille_engine::Ceiling::default()).0 != "ifma" {
        let _ = writeln!(std::io::stderr(), "SKIPPED: P-256 in lanes: this CPU has none for it");
        assert_eq!(visit(&gateway, &client, None), P256);
        assert_eq!(exchanged(&gateway, "p256", "engine"), 0.0, "{}", gateway.metrics());
        return;
    }
    let mut visits = 0;
    eventually("no iteration has several clients", || {
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| assert_eq!(visit(&gateway, &client, None), P256));
            }
        });
        visits += CLIENTS;
        exchanged(&gateway, "p256", "engine") > 0.0
    });
    let (engine, alone) = (exchanged(&gateway, "p256", "engine"), exchanged(&gateway, "p256", "boringssl"));
    assert_eq!(engine + alone, visits as f64, "{}", gateway.metrics());
    assert_eq!(operations(&gateway, "p256", "ok"), engine, "each result was used: {}", gateway.metrics());
    assert_eq!(operations(&gateway, "p256-key-pair", "ok") % 16.0, 0.0, "{}", gateway.metrics());
    assert_eq!(operations(&gateway, "p256", "failed"), 0.0, "{}", gateway.metrics());
}

#[test]
fn a_client_that_is_asked_for_another_share_is_boringssls() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, "", "groups: [X25519]");
    assert_eq!(visit(&gateway, &with_groups("P-384:X25519"), None), X25519);
    assert_eq!(exchanged(&gateway, "x25519", "boringssl"), 1.0, "{}", gateway.metrics());
    assert_eq!(visit(&gateway, &with_groups("X25519:P-384"), None), X25519);
    assert_eq!(exchanged(&gateway, "x25519", "engine"), 1.0, "{}", gateway.metrics());
}

#[test]
fn the_server_chooses_by_its_own_order() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, "", "groups: [P-256, X25519, X25519MLKEM768]");
    assert_eq!(visit(&gateway, &with_groups("X25519MLKEM768:X25519"), None), X25519);
    assert_eq!(exchanged(&gateway, "x25519", "engine"), 1.0, "{}", gateway.metrics());
    // Its share is present but not of the selected group: a HelloRetryRequest for P-256.
    assert_eq!(visit(&gateway, &with_groups("X25519:P-256"), None), P256);
    assert_eq!(exchanged(&gateway, "p256", "boringssl"), 1.0, "{}", gateway.metrics());
    assert_eq!(operations(&gateway, "x25519", "ok"), 1.0, "no unused computation");
}

#[test]
fn returning_clients_and_their_early_data_too() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, "", "");
    let sessions: Arc<Mutex<Vec<SslSession>>> = Arc::default();
    let keep = Arc::clone(&sessions);
    let client = tls_client(move |builder: &mut SslContextBuilder| {
        builder.set_curves_list("X25519").expect("groups");
        builder.set_session_cache_mode(boring::ssl::SslSessionCacheMode::CLIENT);
        builder.set_new_session_callback(move |_, session| keep.lock().expect("sessions").push(session));
    });
    visit(&gateway, &client, None);
    let session = sessions.lock().expect("sessions").pop().expect("a session");
    visit(&gateway, &client, Some(&session));
    assert_eq!(exchanged(&gateway, "x25519", "engine"), 2.0, "{}", gateway.metrics());

    let session = sessions.lock().expect("sessions").pop().expect("a session");
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let early =
        EarlyClient::new(&certificates).send(gateway.address(0), &session, request).expect("a response");
    assert!(early.accepted && early.answer.starts_with("HTTP/1.1 200"), "{}", early.answer);
    let by_engine = gateway.metric("quadrille_handshake_key_exchanges_total", &["by=\"engine\""]);
    assert_eq!(by_engine, 3.0, "{}", gateway.metrics());
}

#[test]
fn switched_off_it_is_as_it_was() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, "key_exchange: off", "");
    assert_eq!(visit(&gateway, &with_groups("X25519"), None), X25519);
    assert_eq!(visit(&gateway, &with_groups("X25519MLKEM768:X25519"), None), HYBRID);
    assert_eq!(exchanged(&gateway, "x25519", "boringssl"), 1.0, "{}", gateway.metrics());
    assert_eq!(exchanged(&gateway, "x25519mlkem768", "boringssl"), 1.0, "{}", gateway.metrics());
    assert_eq!(gateway.metric("quadrille_key_exchange_operations_total", &[]), 0.0, "{}", gateway.metrics());
}

/// Returns a ClientHello whose share of this group has been replaced.
fn hello_with(groups: &str, group: u16, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut hello = client_hello(&with_groups(groups));
    let len: u16 = match group {
        HYBRID => 1216,
        P256 => 65,
        _ => 32,
    };
    let entry = [group.to_be_bytes(), len.to_be_bytes()].concat();
    let at = hello.windows(4).position(|window| window == entry).expect("a share") + 4;
    change(&mut hello[at..at + usize::from(len)]);
    hello
}

/// Returns the alert in response to a first flight, if any.
fn alert(gateway: &Gateway, hello: &[u8]) -> Option<[u8; 2]> {
    alerts(gateway, hello, 1)[0]
}

/// Returns the alerts for this many concurrent first flights.
fn alerts(gateway: &Gateway, hello: &[u8], clients: usize) -> Vec<Option<[u8; 2]>> {
    let connect = |_| TcpStream::connect(gateway.address(0)).expect("a connection");
    let mut clients: Vec<TcpStream> = (0..clients).map(connect).collect();
    clients.iter_mut().for_each(|tcp| tcp.write_all(hello).expect("a ClientHello"));
    let answer = |tcp: &mut TcpStream| {
        let mut record = [0; 7];
        tcp.read_exact(&mut record).expect("a response");
        (record[0] == 21).then(|| [record[5], record[6]])
    };
    clients.iter_mut().map(answer).collect()
}

#[test]
fn wrong_shares_get_the_same_alert_from_both() {
    const FATAL_ILLEGAL_PARAMETER: [u8; 2] = [2, 47];
    const FATAL_DECODE_ERROR: [u8; 2] = [2, 50];
    let certificates = Certificates::new();
    let on = gateway(&certificates, "", "");
    let off = gateway(&certificates, "key_exchange: off", "");
    let mut twice = hello_with("X25519MLKEM768:X25519", HYBRID, |_| ());
    // Both shares are of the group X25519MLKEM768 now; the second is too short, but it is not examined.
    let second = twice.windows(4).rposition(|window| window == [0, 0x1d, 0, 32]).expect("a second share");
    twice[second..second + 2].copy_from_slice(&HYBRID.to_be_bytes());
    let wrong = [
        ("low order", hello_with("X25519", X25519, |share| share.fill(0))),
        ("unreduced", hello_with("X25519MLKEM768", HYBRID, |share| share[..3].fill(0xff))),
        ("low order beside ML-KEM", hello_with("X25519MLKEM768", HYBRID, |share| share[1184..].fill(0))),
        ("two shares of one group", twice),
    ];
    for (what, hello) in wrong {
        assert_eq!(alert(&off, &hello), Some(FATAL_ILLEGAL_PARAMETER), "{what}");
        assert_eq!(alert(&on, &hello), Some(FATAL_ILLEGAL_PARAMETER), "{what}");
    }
    // One P-256 share at a time, computed by BoringSSL, and several, computed by lanes.
    for (what, change) in [
        ("off the curve", (|share: &mut [u8]| share[64] ^= 1) as fn(&mut [u8])),
        ("not below p", |share| share[1..].fill(0xff)),
        ("in the hybrid form", |share| share[0] = 6 + (share[64] & 1)),
        ("in the compressed form, and longer", |share| share[0] = 2 + (share[64] & 1)),
    ] {
        let hello = hello_with("P-256", P256, change);
        let expected = alert(&off, &hello);
        assert!(expected.is_some(), "a point {what}");
        for clients in [1, 16] {
            assert_eq!(alerts(&on, &hello, clients), vec![expected; clients], "points {what}");
        }
    }
    // An entry longer than the list.
    let mut cut = hello_with("X25519", X25519, |_| ());
    let entry = cut.windows(4).position(|window| window == [0, 0x1d, 0, 32]).expect("a share");
    cut[entry + 3] = 33;
    assert_eq!(alert(&off, &cut), Some(FATAL_DECODE_ERROR));
    assert_eq!(alert(&on, &cut), Some(FATAL_DECODE_ERROR));
    assert_eq!(operations(&on, "x25519", "failed") + operations(&on, "ml-kem-768", "failed"), 3.0);
    assert_eq!(alert(&on, &hello_with("X25519", X25519, |_| ())), None, "a ServerHello");
}

#[test]
fn clients_that_leave_leave_nothing_behind() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, "", "");
    let hello = client_hello(&with_groups("X25519"));
    for _ in 0..50 {
        let mut tcp = TcpStream::connect(gateway.address(0)).expect("a connection");
        tcp.write_all(&hello).expect("a ClientHello");
    }
    eventually("connections that stay", || gateway.metric("quadrille_connections", &[]) == 0.0);
    assert_eq!(visit(&gateway, &with_groups("X25519"), None), X25519);
}
