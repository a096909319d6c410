//! Keys on other machines, and the policy of key servers.

use super::parsed;
use crate::{
    file::{parse_key_policy, show},
    model::{KeyServerUse, KeySource},
};
use std::time::Duration;

/// A listener whose certificate has this key.
fn document(key: &str) -> String {
    format!(
        "listeners: [{{address: '127.0.0.1:1', certificates: [{{chain: c.pem, key: {key}}}], respond: ok}}]"
    )
}

#[test]
fn what_it_means() {
    let text = "{keyless: {servers: [a, 'b:5', 'unix:/s'], ca: ca.pem, certificate: g.pem, key: g.key, timeout: 2s, \
                hedge: off, use: overflow, fallback: site.key}}";
    let gateway = parsed(&document(text));
    let KeySource::Keyless(keyless) =
        &gateway.listeners[0].chains[0].tls.as_ref().unwrap().certificates[0].key
    else {
        panic!("not keyless")
    };
    let servers: Vec<String> = keyless.servers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["a:2407", "b:5", "unix:/s"]);
    assert_eq!((keyless.timeout, keyless.hedge, keyless.padding), (Duration::from_secs(2), false, false));
    assert_eq!(keyless.usage, KeyServerUse::Overflow);
    let files: Vec<String> = keyless.sources().map(ToString::to_string).collect();
    assert_eq!(files, ["etc/ca.pem", "etc/g.pem", "etc/g.key", "etc/site.key"]);
    let shown = show(&gateway).to_string();
    assert!(shown.contains("\"servers\":[\"a:2407\",\"b:5\",\"unix:/s\"]"), "{shown}");
}

#[test]
fn what_is_refused() {
    let here = "q.yaml:1: listeners[0].certificates[0].key";
    let cases = [
        ("{keyles: {}}", "unknown key; did you mean `keyless`?"),
        ("{keyless: {servers: [a]}}", "servers over TCP need mutual TLS"),
        ("{keyless: {servers: [a], ca: c, key: k}}", "`certificate` is missing"),
        ("{keyless: {servers: [], ca: c}}", "the list is empty"),
        ("{keyless: {servers: ['unix:/s', 'unix:/s']}}", "this server is listed twice"),
        ("{keyless: {servers: ['a b'], ca: c, certificate: d, key: k}}", "is not a key server"),
        ("{keyless: {servers: ['unix:/s'], protocol: quick}}", "is not a mode of the keyless protocol"),
        ("{keyless: {servers: ['unix:/s'], use: rarely}}", "is not a use of key servers"),
        ("{keyless: {servers: ['unix:/s'], use: overflow}}", "the private key must be here"),
        ("{keyless: {servers: ['unix:/s'], timeout: 0}}", "zero would time out immediately"),
    ];
    for (key, message) in cases {
        let said = super::mistakes(&document(key));
        assert!(said.contains(message) && said.contains(here), "{key}: {said}");
    }
}

#[test]
fn policies() {
    let refused = |text: &str| parse_key_policy(text, "p.yaml").expect_err(text).to_string();
    assert!(refused("").contains("it needs `clients`"));
    assert!(refused("clients: [{keys: [a]}]").contains("`client` is missing"));
    assert!(refused("clients: [{client: 'a*b*'}]").contains("more than one `*`"));
    assert!(refused("clients: [{client: a, operations: [singe]}]").contains("did you mean `sign`?"));
    assert!(refused("clients: [{client: a, rate: 0}]").contains("whole number of at least 1"));
    let absent = parse_key_policy("clients: []", "p.yaml").unwrap();
    assert_eq!(absent.rules, Some(Vec::new()));
    let one = parse_key_policy("clients: [{client: a, operations: decrypt, rate: 7}]", "p.yaml").unwrap();
    let rule = &one.rules.unwrap()[0];
    assert!(rule.decrypt && !rule.sign && rule.keys[0].fits("any"));
    assert!(!rule.generate && rule.limits.generated_keys.get() == 100);
    assert_eq!((rule.limits.rate.unwrap().get(), rule.limits.in_flight.get()), (7, 4096));
    let makes = "clients: [{client: a, operations: [sign, generate], generated_keys: 3}]";
    let makes = parse_key_policy(makes, "p.yaml").unwrap().rules.unwrap();
    assert!(makes[0].generate && makes[0].sign && makes[0].limits.generated_keys.get() == 3);
}

#[test]
fn a_key_that_is_made_elsewhere_has_no_other_place() {
    let document = |keyless: &str| {
        format!(
            "acme: {{state: s}}\nlisteners: [{{address: 1, respond: hi, certificates: [{{acme: {{names: \
             [a.example], keyless: {keyless}}}}}]}}]"
        )
    };
    let cases = [
        ("{servers: ['unix:/s'], fallback: k.pem}", "never leaves them"),
        ("{servers: ['unix:/s'], use: overflow, fallback: k.pem}", "nothing can be computed here"),
        ("{servers: ['unix:/s'], protocol: compatible}", "the compatible mode cannot generate keys"),
        ("{servers: [a]}", "servers over TCP need mutual TLS"),
    ];
    for (keyless, message) in cases {
        let said = super::mistakes(&document(keyless));
        assert!(said.contains(message) && said.contains("acme.keyless"), "{keyless}: {said}");
    }
    let model = super::parsed(&document("{servers: ['unix:/s']}"));
    let tls = model.listeners[0].chains[0].tls.as_ref().unwrap();
    let KeySource::Keyless(_) = &tls.certificates[0].key else { panic!("{:?}", tls.certificates[0].key) };
    let file = tls.certificates[0].chain.path().unwrap().display().to_string();
    assert!(file.ends_with("s/certificates/a.example.ecdsa-p256.keyless.pem"), "{file}");
}
