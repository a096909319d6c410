//! Certificate revocation lists and CA certificates that have expired, or expire while they are in use.

use crate::support::{
    Certificates, Configuration, Gateway, document, eventually, listener, quadrille, succeed,
};

const PAST: [&str; 4] = ["-crl_lastupdate", "20240101000000Z", "-crl_nextupdate", "20240201000000Z"];

#[test]
fn a_check_warns_of_expired_lists_and_cas() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let (list, expired) = (certificates.path("clients.crl"), certificates.path("expired.pem"));
    certificates.revoke_until(&PAST, &[], &list);
    certificates.sign(&pair.key, &expired, &["Old CA"], -1);
    let auth = format!(
        "upstream: web, tls: {{client_auth: {{mode: required, ca: {}, crl: {}}}}}",
        certificates.ca().display(),
        list.display()
    );
    let upstreams = format!("web: {{servers: ['127.0.0.1:1'], tls: {{ca: {}}}}}", expired.display());
    let file = Configuration::new(&document(&[listener(&pair, &auth)], &upstreams));
    let said = succeed(quadrille("check").arg(file.path()));
    let warned = |start: &str, file: &std::path::Path| {
        let line = said.lines().find(|line| line.starts_with(&format!("warning: {start} `")));
        line.is_some_and(|line| line.contains(&format!(" in {} has expired", file.display())))
    };
    assert!(warned("the certificate revocation list of", &list), "{said}");
    assert!(warned("the CA certificate", &expired), "{said}");
    certificates.revoke(&[], &list);
    std::fs::copy(certificates.ca(), &expired).expect("copying");
    let said = succeed(quadrille("check").arg(file.path()));
    assert!(!said.contains("expired"), "{said}");
}

#[test]
fn a_list_that_expires_while_it_is_in_use_is_logged() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let list = certificates.path("clients.crl");
    certificates.revoke_until(&["-crlsec", "5"], &[], &list);
    let (ca, crl) = (certificates.ca(), list.display().to_string());
    let flags = ["--respond", "ok", "--client-ca", ca.to_str().expect("UTF-8"), "--client-crl", &crl];
    let mut gateway = Gateway::with_flags(&pair, &flags);
    let shown = |gateway: &Gateway| gateway.metric("quadrille_crl_next_update_seconds", &[&crl]);
    let first = shown(&gateway);
    assert!(first > 0.0);
    assert!(gateway.metric("quadrille_ca_not_after_seconds", &[ca.to_str().expect("UTF-8")]) > first);
    gateway.wait_for_log("the certificate revocation list of `");
    certificates.revoke(&[], &list);
    eventually("the new list is not in use", || shown(&gateway) > first);
    assert_eq!(gateway.log().matches("has expired; certificates of this CA").count(), 1);
}
