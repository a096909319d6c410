//! Certificates ordered by ACME.

use super::{Case, check, parsed};
use crate::{
    file::{parse, show},
    model::{AcmeChallenge, AcmeKeyType},
};

const ACCOUNT: &str = "acme: {state: /s, challenges: [tls-alpn-01, dns-01], dns_hook: /h}\n";

fn listener(order: &str) -> String {
    format!("listeners: [{{address: 8443, certificates: [{{acme: {order}}}], respond: hi}}]")
}

#[test]
fn an_order_makes_a_certificate_for_each_type_of_key() {
    let order = "{names: [b.example.com, A.example.com, 192.0.2.1], key_types: [rsa-2048, ecdsa-p256]}";
    let gateway = parsed(&format!("acme: {{state: state}}\n{}", listener(order)));
    let tls = gateway.listeners[0].all_chains().next().unwrap().tls.clone().unwrap();
    let [rsa, ecdsa] = &tls.certificates[..] else { panic!("{tls:?}") };
    assert_eq!(rsa.order.as_ref().unwrap().key_type, AcmeKeyType::Rsa2048);
    let file = ecdsa.chain.path().unwrap().display().to_string();
    assert!(
        file.starts_with("etc/state/certificates/b.example.com.") && file.ends_with(".ecdsa-p256.pem"),
        "{file}"
    );
    assert_ne!(rsa.chain, ecdsa.chain);
    let shown = show(&gateway)["listeners"][0]["certificates"].to_string();
    assert!(shown.contains(r#"[{"acme":{"#) && !shown.contains("chain"), "{shown}");
    // Another order of the names means the same certificate, unless the first name differs, which names the file.
    let turned = order.replace("A.example.com, 192.0.2.1", "192.0.2.1, a.example.com");
    let turned = parsed(&format!("acme: {{state: state}}\n{}", listener(&turned)));
    let again = turned.listeners[0].all_chains().next().unwrap().tls.clone().unwrap();
    assert_eq!(again.certificates[1].chain, ecdsa.chain);
}

#[test]
fn a_name_is_proved_by_what_can_prove_it() {
    let acme = parsed(&format!("{ACCOUNT}{}", listener("{names: [a.example.com]}"))).acme.unwrap();
    let ways = |name| acme.challenges_for(name).collect::<Vec<_>>();
    assert_eq!(ways("a.example.com"), [AcmeChallenge::TlsAlpn01, AcmeChallenge::Dns01]);
    assert_eq!(ways("*.a.example.com"), [AcmeChallenge::Dns01]);
    assert_eq!(ways("2001:db8::1"), [AcmeChallenge::TlsAlpn01]);
}

#[test]
fn orders_that_cannot_work_are_refused() {
    check(ORDERS, |text| format!("acme: {{state: /s}}\n{}", listener(text)));
}

#[test]
fn a_private_authority_may_issue_for_a_name_of_one_label() {
    let acme = "acme: {state: /s, directory: 'https://ca.internal/acme/directory'}";
    let text = format!("{acme}\n{}", listener("{names: [localhost, printer]}"));
    assert!(parse(&text, "q.yaml").is_ok());
}

#[test]
fn accounts_that_cannot_work_are_refused() {
    check(ACCOUNTS, |text| format!("acme: {text}\n{}", listener("{names: [a.example.com]}")));
}

#[test]
fn an_order_without_an_account_is_refused() {
    let refused = parse(&listener("{names: [a.example.com]}"), "q.yaml").unwrap_err().to_string();
    assert!(refused.contains("no ACME account to order it from; add `acme: { state: DIRECTORY"), "{refused}");
}

const ORDERS: &[Case] = &[
    (
        "{}",
        "q.yaml:2: listeners[0].certificates[0].acme: `names` is missing; add `names: ...` (list of names and IP addresses)",
    ),
    (
        "{names: [\"*.a.example.com\"]}",
        "q.yaml:2: listeners[0].certificates[0].acme: none of the `challenges` can prove *.a.example.com; wildcards need `dns-01` with a `dns_hook`, IP addresses one of the others",
    ),
    (
        "{names: [localhost]}",
        "q.yaml:2: listeners[0].certificates[0].acme: `localhost` is not a public name, and letsencrypt.org issues for public names only; write the whole name, such as `www.example.com`, or the directory of a private authority",
    ),
    (
        "{names: [a_b.example.com]}",
        "q.yaml:2: listeners[0].certificates[0].acme.names[0]: `a_b.example.com` is not a name for a certificate; write the whole name, such as `www.example.com`",
    ),
    (
        "{names: [a.example.com, A.example.com]}",
        "q.yaml:2: listeners[0].certificates[0].acme.names[1]: this name is listed twice; remove one",
    ),
    (
        "{names: [a.example.com], key_types: [dsa-1024]}",
        "q.yaml:2: listeners[0].certificates[0].acme.key_types[0]: `dsa-1024` is not a type of key; use ecdsa-p256, ecdsa-p384, rsa-2048, rsa-3072 or rsa-4096",
    ),
    (
        "{names: [a.example.com]}, chain: c.pem",
        "q.yaml:2: listeners[0].certificates[0].chain: `acme` provides certificate and key; remove one of the two",
    ),
    (
        "{names: [a.example.com]}, experimental: {trust_anchor: 32473.1}",
        "q.yaml:2: listeners[0].certificates[0].experimental: `acme` provides certificate and key; remove one of the two",
    ),
];

const ACCOUNTS: &[Case] = &[
    ("{}", "q.yaml:1: acme: `state` is missing; add `state: ...` (path)"),
    (
        "{state: s, directory: \"http://ca.example/\"}",
        "q.yaml:1: acme.directory: `http://ca.example/` is not the URL of a directory; write the whole URL, such as `https://acme-v02.api.letsencrypt.org/directory`",
    ),
    (
        "{state: s, email: office}",
        "q.yaml:1: acme.email: `office` is not a mail address; write `name@example.com`",
    ),
    (
        "{state: s, challenges: [dns-01]}",
        "q.yaml:1: acme: `dns-01` and `dns_hook` belong together; name the command as `dns_hook: FILE`, and `dns-01` among the `challenges`",
    ),
    (
        "{state: s, on_demand: {ask: 'ftp://ask.example/', names: 0}}",
        "q.yaml:1: acme.on_demand.ask: `ftp://ask.example/` is not an http:// or https:// URL; write the whole URL, \
         such as `http://127.0.0.1:8080/may-be-ordered`\nq.yaml:1: acme.on_demand.names: `0` is not a whole number of \
         at least 1; write plain digits",
    ),
    ("{state: s, on_demand: {names: 5}}", "q.yaml:1: acme.on_demand: `ask` is missing; add `ask: ...` (URL)"),
    (
        "{state: s, external_account: {id: x}}",
        "q.yaml:1: acme.external_account: `key_file` is missing; add `key_file: ...` (path)",
    ),
    (
        "{state: s, fleet: maybe}",
        "q.yaml:1: acme.fleet: `maybe` is not a way to share certificates; use required, preferred or off",
    ),
];
