//! Certificates are renewed in time, and nobody notices.

use crate::authority::{Behaviour, Pebble, leaf, shown, wait_for_certificate};
use std::{
    collections::BTreeSet,
    fs,
    time::{Duration, Instant},
};

/// Certificates of a minute, renewed twice under load; `QUADRILLE_ACME_SOAK` is for how many seconds instead, with
/// certificates of two minutes.
#[test]
fn certificates_are_renewed_under_load_without_a_failed_handshake() {
    let soak = std::env::var("QUADRILLE_ACME_SOAK").ok().and_then(|seconds| seconds.parse().ok());
    let life = if soak.is_some() { 120 } else { 60 };
    let behaviour = Behaviour { life, refused_nonces: 10, ..Behaviour::default() };
    let Some(pebble) = Pebble::start(&behaviour) else { return };
    let gateway = pebble.gateway("{ names: [short.example.com] }");
    let root = pebble.root();
    wait_for_certificate(&gateway, &root, "short.example.com", &[]);
    let (address, began) = (gateway.address(0), Instant::now());
    // Those that came before there was a certificate were refused.
    let refused = gateway.metric("quadrille_handshake_failures_total", &[]);
    let (mut leaves, mut handshakes) = (BTreeSet::new(), 0);
    let limit = Duration::from_secs(soak.unwrap_or(300));
    while began.elapsed() < limit && (soak.is_some() || leaves.len() < 3) {
        // Verified, with its time: an expired one fails.
        let text = shown(address, &root, "short.example.com", &[]);
        let text = text.unwrap_or_else(|text| panic!("after {handshakes}: {text}\n{}", gateway.log()));
        leaves.insert(leaf(&text).to_owned());
        handshakes += 1;
    }
    println!("{handshakes} handshakes, {} certificates, in {:?}", leaves.len(), began.elapsed());
    let expected = soak.map_or(3, |seconds| usize::try_from(seconds / 120).unwrap_or(0));
    assert!(leaves.len() >= expected, "{} certificates\n{}", leaves.len(), gateway.log());
    assert_eq!(gateway.metric("quadrille_handshake_failures_total", &[]), refused, "{}", gateway.metrics());
}

/// The authority says when (RFC 9773), and is told which certificate is replaced.
#[test]
fn the_authority_can_have_a_certificate_renewed_early() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let gateway = pebble.gateway("{ names: [early.example.com] }");
    let root = pebble.root();
    let first = wait_for_certificate(&gateway, &root, "early.example.com", &[]);
    drop(gateway);
    let pem = format!("{}-----END CERTIFICATE-----\n", leaf(&first));
    let window = r#"{"suggestedWindow":{"start":"2020-01-01T00:00:00Z","end":"2020-01-02T00:00:00Z"}}"#;
    let body = serde_json::json!({ "Certificate": pem, "ARIResponse": window }).to_string();
    pebble.management(&["--fail", "-X", "POST", "-d", &body], "/set-renewal-info/");
    // That it was ordered a moment ago would keep it from being ordered again.
    fs::remove_file(pebble.state().join("progress.json")).expect("removing");
    let gateway = pebble.gateway("{ names: [early.example.com] }");
    crate::support::eventually("it is renewed", || {
        let now = shown(gateway.address(0), &root, "early.example.com", &[]);
        now.is_ok_and(|now| leaf(&now) != leaf(&first))
    });
    let log = pebble.log();
    // DER writes a number with its first bit set behind a zero, and Pebble, which expects the zero of whoever names it,
    // looks for what it has noted without: one serial number in some hundreds.
    let serial = log.split("Issued certificate serial ").nth(1).expect("the first one");
    let is_found = serial.starts_with(|digit: char| digit.to_digit(16).is_some_and(|value| value < 8));
    assert!(!is_found || log.contains("is a replacement of"), "{log}");
}
