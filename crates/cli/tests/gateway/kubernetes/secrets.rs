//! Certificates of Secrets.

use super::{Cluster, ingress_with_tls, secret, secret_of};
use crate::support::eventually;

#[test]
fn a_wrong_secret_closes_only_its_own_host() {
    let cluster = Cluster::new(&[]);
    let right = cluster.certificates.ecdsa("P-256", &["a.example"]);
    let other = cluster.certificates.ecdsa("P-256", &["b.example"]);
    cluster.server.put(&secret_of("a", &right));
    cluster.server.put(&secret_of("b", &other));
    cluster.server.put(&ingress_with_tls("a", "a.example", "a"));
    cluster.server.put(&ingress_with_tls("b", "b.example", "b"));
    let serves = |host: &str| cluster.get_https(host).is_ok_and(|body| body.contains("app"));
    eventually("the hosts are not served", || serves("a.example") && serves("b.example"));
    // The key belongs to the other certificate.
    cluster.server.put(&secret("b", &other.chain, &right.key));
    eventually("the wrong key is in use", || !serves("b.example"));
    assert!(serves("a.example"), "{}", cluster.gateway.log());
    eventually("no Event", || !cluster.server.written("/events").is_empty());
    let event = &cluster.server.written("/events")[0];
    assert!(event["note"].as_str().unwrap().contains("does not belong to the certificate"), "{event}");
    assert_eq!(event["regarding"]["name"], "b", "{event}");
    cluster.server.put(&secret_of("b", &other));
    eventually("the right key is not in use", || serves("b.example"));
    cluster.server.delete("secrets", "b");
    eventually("a deleted Secret is in use", || !serves("b.example"));
    assert!(serves("a.example"), "{}", cluster.gateway.log());
}

#[test]
fn a_renewed_certificate_is_live_and_keys_are_not_shown() {
    let cluster = Cluster::new(&[]);
    let first = cluster.certificates.ecdsa("P-256", &["a.example"]);
    cluster.server.put(&secret_of("a", &first));
    cluster.server.put(&ingress_with_tls("a", "a.example", "a"));
    let serial = || {
        let mut connector = std::process::Command::new("openssl");
        connector.args(["s_client", "-connect", &cluster.https.to_string(), "-servername", "a.example"]);
        connector.stdin(std::process::Stdio::null());
        crate::support::output(&mut connector).1
    };
    eventually("no page", || cluster.get_https("a.example").is_ok());
    let before = serial();
    let second = cluster.certificates.ecdsa("P-384", &["a.example"]);
    cluster.server.put(&secret_of("a", &second));
    eventually("the certificate is not renewed", || certificate(&serial()) != certificate(&before));
    assert!(cluster.get_https("a.example").is_ok());
    for pair in [first, second] {
        let key = std::fs::read_to_string(pair.key).expect("the key");
        let secret = key.lines().nth(1).expect("a line of the key");
        for shown in [
            cluster.gateway.log(),
            cluster.gateway.admin_page("/config"),
            cluster.gateway.admin_page("/status"),
        ] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}

/// Returns the certificate in the output of `openssl s_client`.
fn certificate(said: &str) -> &str {
    let begin = said.find("-----BEGIN CERTIFICATE-----").unwrap_or_default();
    let end = said.find("-----END CERTIFICATE-----").unwrap_or(said.len());
    &said[begin..end]
}
