//! QUIC handshakes: the engine's queue, sessions, early data, certificates, address validation, versions.

use super::Served;
use crate::support::{Certificates, Connector, Http3Client, PATIENCE, eventually, http3::Http3};
use std::{
    net::{SocketAddr, UdpSocket},
    thread,
};

/// Signatures and key exchanges of QUIC and TCP are batched together.
#[test]
fn both_protocols_share_one_queue() {
    let served = Served::new("respond: hi, tls: {groups: [X25519]}, timeouts: {handshake_deadline: off}", "");
    let address = served.gateway.address(0);
    let each = 12;
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = Http3Client::new(&served.certificates);
                for _ in 0..each {
                    assert_eq!(client.connect(address).get("/").text(), "hi");
                }
            });
            scope.spawn(|| {
                let connector = Connector::new(&served.certificates);
                for _ in 0..each {
                    assert_eq!(
                        connector.http(address).expect("TLS").get("/").expect("a response").text(),
                        "hi"
                    );
                }
            });
        }
    });
    let metric = |name: &str, labels: &[&str]| served.gateway.metric(name, labels);
    assert_eq!(metric("quadrille_quic_handshakes_total", &[]), f64::from(8 * each));
    assert_eq!(metric("quadrille_handshakes_total", &["full", "rsa2048"]), f64::from(16 * each));
    assert_eq!(metric("quadrille_key_operations_total", &["rsa2048", "ok"]), f64::from(16 * each));
    let by_engine = metric("quadrille_handshake_key_exchanges_total", &["x25519", "engine"]);
    let all = metric("quadrille_handshake_key_exchanges_total", &["x25519"]);
    assert_eq!(all, f64::from(16 * each));
    assert!(by_engine == 0.0 || by_engine == all, "{by_engine} of {all}");
}

#[test]
fn a_session_is_resumed_by_its_own_protocol() {
    let mut served = Served::new("respond: hi", "");
    let mut first = served.connect();
    let session = first.session();
    assert!(!first.quic().is_resumed());
    let address = served.gateway.address(0);
    let mut second = served.client.begin(address, Some(&session));
    second.run_until("no handshake", Http3::is_established);
    assert!(second.quic().is_resumed());
    assert_eq!(second.get("/").text(), "hi");
    assert_eq!(served.gateway.metric("quadrille_handshakes_total", &["resumed"]), 1.0);
    assert_eq!(served.gateway.metric("quadrille_key_operations_total", &["rsa2048"]), 1.0);
}

#[test]
fn an_early_request_is_safe_or_waits_and_counts_once() {
    let mut served = Served::new("respond: hi", "");
    let text = std::fs::read_to_string(served.file.path()).expect("the file");
    served.file.replace(&format!("{text}resumption: {{early_data: on}}\n"));
    served.gateway.signal("HUP");
    served.gateway.wait_for_log("configuration reloaded");
    let address = served.gateway.address(0);
    // The handshake completes when the client reads; until then, its requests are early data.
    let ask = |served: &mut Served, session: &[u8], method: &str, early: bool| {
        let requests = |served: &Served| served.gateway.metric("quadrille_requests_total", &[]);
        let before = requests(served);
        let mut client = served.client.begin(address, Some(session));
        assert!(client.quic().is_in_early_data());
        let id = client.start(method, "/", &[], true);
        if early {
            eventually("the early request receives no response", || requests(served) > before);
        }
        (client.finish(id), client)
    };
    let session = served.connect().session();
    let (answer, mut client) = ask(&mut served, &session, "GET", true);
    assert_eq!(answer.text(), "hi");
    assert_eq!(served.gateway.metric("quadrille_early_data_total", &["accepted"]), 1.0);
    let session = client.session();
    let (answer, _client) = ask(&mut served, &session, "POST", true);
    assert_eq!(answer.status, 425, "a copy of the flight could repeat the request");
    // The same ticket again: the request is served after the handshake.
    let (answer, _client) = ask(&mut served, &session, "POST", false);
    assert_eq!(answer.text(), "hi");
    assert_eq!(served.gateway.metric("quadrille_early_data_total", &["accepted"]), 2.0);
    assert_eq!(served.gateway.metric("quadrille_early_data_total", &["refused"]), 1.0);
}

#[test]
fn a_client_without_a_trusted_certificate_is_rejected() {
    let clients = Certificates::new();
    let ca = clients.ca();
    let mut served = Served::new(
        &format!("respond: hi, tls: {{client_auth: {{mode: required, ca: {}}}}}", ca.display()),
        "",
    );
    let address = served.gateway.address(0);
    let mut stranger = served.client.begin(address, None);
    while stranger.quic().peer_error().is_none() {
        stranger.turn();
    }
    assert_eq!(stranger.quic().peer_error().map(|error| error.error_code), Some(0x100 + 116));
    let pair = clients.ecdsa("P-256", &["client.example"]);
    let config = served.client.config();
    config.load_cert_chain_from_pem_file(pair.chain.to_str().expect("text")).expect("a chain");
    config.load_priv_key_from_pem_file(pair.key.to_str().expect("text")).expect("a key");
    assert_eq!(served.connect().get("/").text(), "hi");
    served.gateway.wait_for_metric("quadrille_handshake_failures_total", &["tls"], |count| count == 1.0);
}

/// Returns a long header with these contents (RFC 8999 section 5.1), padded to the minimum size of a first datagram.
fn long_header(version: u32, size: usize) -> Vec<u8> {
    let mut datagram = vec![0xc0];
    datagram.extend(version.to_be_bytes());
    datagram.extend([8, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 7, 6, 5, 4, 3, 2, 1]);
    datagram.resize(size, 0);
    datagram
}

/// Returns the first datagram received after these datagrams.
fn ask(address: SocketAddr, datagrams: &[&[u8]]) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    for datagram in datagrams {
        socket.send_to(datagram, address).expect("sending");
    }
    let mut answer = [0; 2048];
    let length = socket.recv(&mut answer).expect("a response");
    answer[..length].to_vec()
}

/// Returns whether a datagram has no response: the response to the following datagram arrives first.
fn is_ignored(address: SocketAddr, datagram: &[u8]) -> bool {
    const MARK: u8 = 0x77;
    let mut behind = long_header(0x1a2a_3a4a, 1200);
    behind[6] = MARK;
    let answer = ask(address, &[datagram, &behind]);
    // The connection ids of both sides are returned in exchanged positions (RFC 9000 section 17.2.1).
    answer[1..5] == [0; 4] && answer[15] == MARK
}

#[test]
fn other_versions_receive_version_negotiation() {
    let served = Served::new("respond: hi", "");
    let address = served.gateway.address(0);
    let answer = ask(address, &[&long_header(0x1a2a_3a4a, 1200)]);
    assert_eq!(answer[1..5], [0; 4], "no version");
    assert_eq!(answer[5..14], [8, 8, 7, 6, 5, 4, 3, 2, 1], "the client's id is returned first");
    assert!(answer.windows(4).any(|version| version == [0, 0, 0, 1]), "{answer:?}");
    let small = long_header(0x1a2a_3a4a, 1199);
    assert!(is_ignored(address, &small), "a response would be larger than the datagram");
    let (negotiated, dropped) =
        ("quadrille_quic_version_negotiations_total", "quadrille_quic_datagrams_dropped_total");
    served.gateway.wait_for_metric(negotiated, &[], |count| count == 2.0);
    served.gateway.wait_for_metric(dropped, &["small"], |count| count == 1.0);
    for garbage in [&[0; 3][..], &[0xff; 40], &[0x40; 42], b"GET / HTTP/1.1\r\n\r\n"] {
        assert!(is_ignored(address, garbage), "{garbage:x?}");
    }
    // A packet of an unknown connection.
    let reset = ask(address, &[&[0x40; 1200]]);
    assert_eq!((reset[0] >> 6, reset.len()), (1, 42), "a stateless reset, shorter than the packet");
}

/// Incomplete handshakes: above a limit, new clients must validate their addresses, and are served.
#[test]
fn a_flood_of_first_datagrams_costs_tokens_only() {
    let mut served = Served::new("respond: hi, timeouts: {handshake_deadline: off}", "");
    let address = served.gateway.address(0);
    let flood: Vec<_> = (0..400).map(|_| served.client.begin(address, None)).collect();
    served.gateway.wait_for_metric("quadrille_quic_retries_total", &[], |count| count >= 250.0);
    let before = served.gateway.metric("quadrille_key_operations_total", &[]);
    assert!(before <= 2.0 * 65.0, "no more than may be unproven on two event loops: {before}");
    let mut client = served.connect();
    assert_eq!(client.get("/").text(), "hi");
    drop(flood);
    eventually("the flood's connections are not removed", || {
        served.gateway.metric("quadrille_connections", &[]) <= 2.0
    });
}

/// CPU time by message covers both; the transport of the messages is included.
#[test]
fn handshakes_are_measured_message_by_message() {
    let mut served = Served::new("respond: hi", "");
    let text = std::fs::read_to_string(served.file.path()).expect("the file");
    served.file.replace(&format!("{text}sampling: {{one_in: 1}}\n"));
    served.gateway.signal("HUP");
    served.gateway.wait_for_log("configuration reloaded");
    let address = served.gateway.address(0);
    let session = served.connect().session();
    let mut second = served.client.begin(address, Some(&session));
    second.run_until("no handshake", Http3::is_established);
    assert_eq!(second.get("/").text(), "hi");
    for (session, stages) in [
        ("full", &["ClientHello", "ServerHello", "Certificate", "CertificateVerify", "PrivateKey"][..]),
        ("resumed", &["ClientHello", "ServerHello"]),
    ] {
        let labels = [&format!("session=\"{session}\"")[..], "TLSv1.3", "localhost"];
        assert_eq!(served.gateway.metric("quadrille_handshake_samples_total", &labels), 1.0, "{session}");
        let time = |stage: &str| {
            let stage = format!("stage=\"{stage}\"");
            let labels = [&labels[..], &[stage.as_str()]].concat();
            served.gateway.metric("quadrille_handshake_cpu_nanoseconds_total", &labels)
        };
        for stage in stages.iter().chain(&["EncryptedExtensions", "Finished", "ClientFinished"]) {
            assert!(time(stage) > 0.0, "{session}: nothing for {stage}; {}", served.gateway.metrics());
        }
        let all = served.gateway.metric("quadrille_handshake_cpu_nanoseconds_total", &labels);
        // A quarter on a quiet machine; other load on the machine also affects the caches here.
        assert!(time("Other") < all / 2.0, "{} of {all}", time("Other"));
    }
}
