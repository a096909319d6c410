//! Round trips until a handshake is complete: a server sends three times what it has received until the client's address
//! is validated (RFC 9000 section 8.1), so that large certificates cost another round trip.

use crate::{
    certificate_compression,
    support::{
        Certificates, Configuration, Gateway, Http3Client, Pair, document, eventually, listener,
        ml_dsa::MlDsaAuthority,
    },
};
use boring::ssl::{SslSignatureAlgorithm as Algorithm, SslVerifyMode};
use quadrille_engine::MlDsa;
use std::{net::SocketAddr, time::Duration};

const HOST: &[&str] = &["localhost"];

const OFFERED: [Algorithm; 4] =
    [Algorithm::ECDSA_SECP256R1_SHA256, Algorithm::ML_DSA_44, Algorithm::ML_DSA_65, Algorithm::ML_DSA_87];

/// Groups with one datagram in the client's first flight, and with two.
const SMALL: &str = "X25519";
const LARGE: &str = "X25519MLKEM768:X25519";

/// Completes a handshake, which must take this number of round trips; returns the bytes received until then.
///
/// The client sends a flight only when the server has sent all that it may.
#[track_caller]
fn bytes_of(
    certificates: &Certificates,
    address: SocketAddr,
    groups: &str,
    compressed: bool,
    round_trips: usize,
) -> usize {
    let mut client = Http3Client::configured(certificates, |builder| {
        builder.set_curves_list(groups).expect("groups");
        builder.set_verify_algorithm_prefs(&OFFERED).expect("algorithms");
        builder.set_custom_verify_callback(SslVerifyMode::PEER, |_| Ok(()));
        if compressed {
            certificate_compression::offer_all(builder);
        }
    });
    let mut connection = client.begin(address, None);
    let mut received = 0;
    for _ in 1..round_trips {
        let sent = connection.sent_bytes;
        eventually("the server has not sent what it may", || {
            received += connection.listen();
            received > 2 * sent
        });
        // The server may send more. The assertion holds in any case.
        received += connection.overhear(Duration::from_millis(100));
        assert!(!connection.is_established(), "{received} bytes for {sent} are the whole flight");
        connection.send();
    }
    eventually("no handshake", || {
        received += connection.listen();
        connection.is_established()
    });
    received
}

/// A chain with a name, and the round trips with a small and with a large first flight of the client.
struct Case {
    name: &'static str,
    pair: Pair,
    round_trips: [usize; 2],
}

#[test]
fn large_certificates_cost_a_round_trip() {
    let certificates = Certificates::new();
    let below = |set| {
        let pair = certificates.ml_dsa(set, &["localhost", "below.test"]);
        MlDsaAuthority::new(set).certify(&pair, HOST);
        pair
    };
    let case = |name, pair, round_trips| Case { name, pair, round_trips };
    let cases = [
        case("P-256", certificates.ecdsa("P-256", HOST), [1, 1]),
        case("ML-DSA-44 below P-256", certificates.ml_dsa(MlDsa::MlDsa44, HOST), [2, 2]),
        case("ML-DSA-44 below ML-DSA-44", below(MlDsa::MlDsa44), [3, 2]),
        case("ML-DSA-65 below P-256", certificates.ml_dsa(MlDsa::MlDsa65, HOST), [2, 2]),
        case("ML-DSA-65 below ML-DSA-65", below(MlDsa::MlDsa65), [3, 3]),
        case("ML-DSA-87 below P-256", certificates.ml_dsa(MlDsa::MlDsa87, HOST), [3, 3]),
    ];
    let listeners: Vec<_> = cases.iter().map(|case| listener(&case.pair, "http3: on, respond: ok")).collect();
    let file = Configuration::new(&document(&listeners, ""));
    let gateway = Gateway::with_config(&file.path(), cases.len());
    for (index, Case { name, round_trips, .. }) in cases.iter().enumerate() {
        for (groups, round_trips) in [SMALL, LARGE].into_iter().zip(*round_trips) {
            for compressed in [false, true] {
                let address = gateway.address(index);
                let bytes = bytes_of(&certificates, address, groups, compressed, round_trips);
                println!(
                    "{name}, {groups}, compressed: {compressed}: {bytes} bytes, {round_trips} round trips"
                );
            }
        }
    }
}
