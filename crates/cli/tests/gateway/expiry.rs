//! Certificate revocation lists and CA certificates that have expired, or expire while they are in use.

use crate::support::{
    Certificates, Configuration, Gateway, checked, document, eventually, listener, process::serve_ahead,
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
    let said = checked(&file.path());
    let warned = |start: &str, file: &std::path::Path| {
        let line = said.lines().find(|line| line.starts_with(&format!("warning: {start} `")));
        line.is_some_and(|line| line.contains(&format!(" in {} has expired", file.display())))
    };
    assert!(warned("the certificate revocation list of", &list), "{said}");
    assert!(warned("the CA certificate", &expired), "{said}");
    certificates.revoke(&[], &list);
    std::fs::copy(certificates.ca(), &expired).expect("copying");
    let said = checked(&file.path());
    assert!(!said.contains("expired"), "{said}");
}

/// The CAs of other servers than upstreams: Redis, and the certificate authority.
#[test]
fn a_check_warns_of_expired_cas_of_other_servers() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let secret = certificates.path("fleet.secret");
    std::fs::write(&secret, [7; 32]).expect("writing");
    let expired = |name: &str| {
        let file = certificates.path(name);
        certificates.sign(&pair.key, &file, &[name], -1);
        file.display().to_string()
    };
    let (redis, authority, ask) = (expired("redis"), expired("authority"), expired("ask"));
    let text = document(&[listener(&pair, "respond: ok")], "")
        + &format!(
            "resumption: {{tickets: fleet, fleet_secret: {}, cache: 'rediss://127.0.0.1:1', redis_ca: {redis}}}\n\
             acme: {{state: {}, ca_file: {authority}, on_demand: {{ask: 'https://ask.example/', ca_file: {ask}}}}}\n",
            secret.display(),
            certificates.path("state").display(),
        );
    let file = Configuration::new(&text);
    let said = checked(&file.path());
    for file in [redis, authority, ask] {
        assert!(said.contains(&format!(" in {file} has expired; certificates that it issued")), "{said}");
    }
}

#[test]
fn ocsp_responses_from_files_have_warnings() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let (response, file) = (certificates.ocsp_response(&pair), certificates.path("quadrille.yaml"));
    let text = format!(
        "admin: 127.0.0.1:0\nlisteners:\n  - address: 127.0.0.1:0\n    respond: ok\n    certificates:\n\
         \x20     - {{chain: {}, key: {}, ocsp: {}}}\n",
        pair.chain.display(),
        pair.key.display(),
        response.display()
    );
    std::fs::write(&file, text).expect("a configuration");
    let said = checked(&file);
    assert!(!said.contains("warning: "), "{said}");
    // The response is valid for seven days, and the certificate for longer.
    let mut command = serve_ahead(8 * 24 * 3600, pair.chain.parent().expect("a directory"));
    command.arg("--config").arg(&file);
    let mut gateway = Gateway::start(command, 1);
    gateway.wait_for_log(&format!("the OCSP response for `localhost` in {} has expired", response.display()));
    std::fs::write(&response, [0x30, 0]).expect("writing");
    let said = checked(&file);
    assert!(said.contains("is stapled, but clients may reject it: the response is unusable"), "{said}");
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
