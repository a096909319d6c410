//! X25519 of the provider: used only where it is preferred, compatible, and used in real servers' handshakes.

use crate::{
    program::compiled,
    servers::{haproxy, nginx},
    support::{Running, Site, fail, finish, free_port, handshake, listens, said, until},
};

/// A mandatory property: without our algorithm the fetch fails.
const OURS: &str = "-propquery quadrille.key_exchange=yes";

#[test]
fn only_key_exchange_is_preferred_and_only_where_the_configuration_says_so() {
    for (site, x25519) in [(Site::new(), "default"), (Site::with_key_exchange(), "quadrille")] {
        let program = compiled(&site, "fetched");
        let fetched = said(&finish(site.plain(&program).arg(site.path("openssl.cnf"))));
        assert_eq!(fetched, format!("X25519 {x25519}\nRSA default\nEC default\nSHA256 default\n"));
    }
}

#[test]
fn secrets_are_those_of_openssl() {
    let site = Site::with_key_exchange();
    for round in 0..20 {
        site.openssl(&format!("genpkey -algorithm X25519 {OURS} -out ours.key"));
        site.plain_openssl("genpkey -algorithm X25519 -out theirs.key");
        for name in ["ours", "theirs"] {
            site.plain_openssl(&format!("pkey -in {name}.key -pubout -out {name}.pub"));
        }
        site.openssl("pkeyutl -derive -inkey ours.key -peerkey theirs.pub -out one");
        site.plain_openssl("pkeyutl -derive -inkey theirs.key -peerkey ours.pub -out other");
        let [one, other] = ["one", "other"].map(|name| std::fs::read(site.path(name)).expect("a secret"));
        assert_eq!(one.len(), 32);
        assert_eq!(one, other, "round {round}");
    }
}

#[test]
fn a_point_of_small_order_and_a_key_of_another_length_are_refused() {
    let site = Site::with_key_exchange();
    site.openssl(&format!("genpkey -algorithm X25519 {OURS} -out ours.key"));
    // A SubjectPublicKeyInfo (RFC 8410) with the point 0.
    let header = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x03, 0x21, 0x00];
    std::fs::write(site.path("zero.der"), [&header[..], &[0; 32]].concat()).expect("a file");
    site.plain_openssl("pkey -pubin -inform DER -in zero.der -pubout -out zero.pub");
    let derive = "pkeyutl -derive -inkey ours.key -peerkey zero.pub -out secret";
    let refused = fail(site.with_provider("openssl").args(derive.split(' ')));
    assert!(refused.contains("small order"), "{refused}");
}

#[test]
fn servers_handshakes_use_it() {
    let site = Site::with_key_exchange();
    site.certificate("served", "rsa:2048");
    site.plain_openssl("genpkey -genparam -algorithm DH -pkeyopt group:ffdhe2048 -out dh.pem");
    for start in [nginx, haproxy] {
        let port = free_port();
        let mut running: Running = start(&site, "served.key", port);
        until(&format!("the server listens: {}", running.log()), || listens(port) || !running.is_alive());
        for options in ["-tls1_3 -groups X25519", "-tls1_2 -groups X25519", "-tls1_3 -groups P-256"] {
            for _ in 0..40 {
                let said = handshake(&site, port, options);
                let key = if options.ends_with("P-256") { "ECDH, prime256v1" } else { "X25519, 253 bits" };
                let good = said.as_ref().is_some_and(|said| said.contains(key));
                assert!(good, "{options}: {said:?}\n{}", running.log());
            }
        }
    }
}
