//! The parts of a handshake add up to the whole, and match the protocol's messages.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it should")]

use quadrille_profile::handshake::{Costs, HandshakeKind, Message, Side, Suite, measure};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// Whole and parts are taken from alternate handshakes, which other programs may disturb: the measurement is repeated
/// until it is undisturbed. Double counting or omission would show every time.
#[test]
fn parts_add_up_to_the_whole_within_ten_per_cent() {
    for (kind, side) in both_sides() {
        let adds_up = |costs: &Costs| {
            let (sum, total) = (costs.sum(), costs.total);
            println!(
                "{side:?} {kind}: {total:.0} us, parts {sum:.0} us, key operation {:.0} us",
                costs.key_operation
            );
            let other = costs.messages.iter().find(|(message, _)| *message == Message::Other);
            (0.9..=1.1).contains(&(sum / total)) && other.is_none_or(|(_, other)| *other < total / 10.0)
        };
        let end = Instant::now() + PATIENCE;
        while !adds_up(&measure(kind, side, 60).unwrap()) {
            assert!(Instant::now() < end, "{side:?} {kind}");
        }
    }
}

#[test]
fn each_kind_has_its_messages() {
    let messages = |kind| -> Vec<Message> {
        measure(kind, Side::Server, 3).unwrap().messages.into_iter().map(|(message, _)| message).collect()
    };
    let kind = HandshakeKind { suite: Suite::EcdheRsa, tls13: true, resumed: false };
    let seen = messages(kind);
    for expected in
        [Message::ServerHello, Message::Certificate, Message::CertificateVerify, Message::Finished]
    {
        assert!(seen.contains(&expected), "{kind}: {seen:?}");
    }
    let resumed = HandshakeKind { resumed: true, ..kind };
    let seen = messages(resumed);
    assert!(
        !seen.contains(&Message::Certificate) && seen.contains(&Message::Finished),
        "{resumed}: {seen:?}"
    );
    let tls12 = HandshakeKind { tls13: false, ..kind };
    let seen = messages(tls12);
    assert!(
        seen.contains(&Message::ServerKeyExchange) && seen.contains(&Message::ClientKeyExchange),
        "{seen:?}"
    );
    let rsa = HandshakeKind { suite: Suite::Rsa, ..tls12 };
    assert!(!messages(rsa).contains(&Message::ServerKeyExchange));
}

#[test]
fn only_full_handshakes_have_a_private_key_operation_and_those_of_tls_1_3_a_key_exchange() {
    for kind in HandshakeKind::all() {
        let costs = measure(kind, Side::Server, 5).unwrap();
        assert_eq!(costs.key_operation > 5.0, !kind.resumed, "{kind}: {costs:?}");
        assert_eq!(costs.key_exchange > 5.0, kind.tls13, "{kind}: {costs:?}");
    }
}

#[test]
fn a_clients_full_handshake_verifies_the_chain_and_a_resumed_one_does_not() {
    for kind in HandshakeKind::all() {
        let costs = measure(kind, Side::Client, 5).unwrap();
        assert_eq!(costs.verification > 5.0, !kind.resumed, "{kind}: {costs:?}");
        assert!(costs.key_operation == 0.0 && costs.key_exchange == 0.0, "{kind}: {costs:?}");
        let has = |wanted| costs.messages.iter().any(|(message, _)| *message == wanted);
        assert!(
            has(Message::ClientHello) && has(Message::ServerHello) && has(Message::ClientFinished),
            "{costs:?}"
        );
        assert_eq!(has(Message::Certificate), !kind.resumed, "{kind}: {costs:?}");
        assert_eq!(has(Message::CertificateVerify), kind.tls13 && !kind.resumed, "{kind}: {costs:?}");
        let signed = !kind.tls13 && !kind.resumed && kind.suite != Suite::Rsa;
        assert!(!signed || has(Message::ServerKeyExchange) && has(Message::ClientKeyExchange), "{costs:?}");
    }
}

fn both_sides() -> impl Iterator<Item = (HandshakeKind, Side)> {
    HandshakeKind::all().into_iter().flat_map(|kind| [(kind, Side::Server), (kind, Side::Client)])
}
