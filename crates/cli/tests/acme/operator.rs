//! Manual operations with `quadrille cert`.

use crate::{
    authority::{Behaviour, Pebble, leaf, shown, wait_for_certificate},
    support::{eventually, output, quadrille, succeed},
};
use std::fs;

#[test]
fn certificates_are_listed_renewed_and_revoked() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let order = "{ names: [hand.example.com] }";
    let file = pebble.configuration(order, "");
    let checked = succeed(quadrille("check").arg(&file));
    assert!(checked.contains("hand.example.com (ecdsa-p256): not issued yet"), "{checked}");
    assert!(checked.contains("proved by tls-alpn-01 or http-01"), "{checked}");
    assert!(!pebble.state().exists(), "a check leaves nothing behind");
    fs::write(pebble.state(), "no directory").expect("a file");
    let listed = pebble.cert(&["list"]);
    assert!(listed.contains("ecdsa-p256): unknown: ") && listed.contains("Not a directory"), "{listed}");
    fs::remove_file(pebble.state()).expect("removing it");
    let gateway = pebble.gateway(order);
    let root = pebble.root();
    let first = wait_for_certificate(&gateway, &root, "hand.example.com", &[]);
    let listed = pebble.cert(&["list"]);
    assert!(listed.contains("hand.example.com (ecdsa-p256): 89 days left; renewed in"), "{listed}");

    let (known, text) = output(quadrille("cert").args(["renew", "other.example.com", "--config"]).arg(&file));
    assert!(!known && text.contains("has the name other.example.com"), "{text}");
    let replaced = |before: &str| {
        let mut after = String::new();
        eventually("another certificate", || {
            match shown(gateway.address(0), &root, "hand.example.com", &[]) {
                Ok(text) if leaf(&text) != leaf(before) => {
                    after = text;
                    true
                }
                _ => false,
            }
        });
        after
    };
    pebble.cert(&["renew", "hand.example.com"]);
    let second = replaced(&first);
    pebble.cert(&["revoke", "hand.example.com", "--reason", "key-compromise"]);
    replaced(&second);
    assert!(pebble.log().contains("/revoke-cert"), "{}", pebble.log());
}
