//! `quadrille cert list` of certificates from files and with keys on key servers.

use crate::support::{Certificates, Configuration, document, listener, output, quadrille};
use serde_json::Value;

#[test]
fn all_certificates_are_listed_and_those_that_cannot_be_read_are_named() {
    let certificates = Certificates::new();
    let (one, other) =
        (certificates.ecdsa("P-256", &["a.example", "b.example"]), certificates.rsa(2048, &["c.example"]));
    let remote = format!(
        "{{chain: {}, key: {{keyless: {{servers: ['unix:/run/none.sock']}}}}}}",
        other.chain.display()
    );
    let missing = "{chain: /nowhere/chain.pem, key: /nowhere/key.pem}";
    let local = listener(&one, "respond: ok");
    let both = format!("{{address: '127.0.0.1:7', certificates: [{remote}, {missing}], respond: ok}}");
    let configuration = Configuration::new(&document(&[local.clone(), both], ""));
    let list = |arguments: &[&str]| {
        output(quadrille("cert").arg("list").arg("--config").arg(configuration.path()).args(arguments))
    };
    let (listed, text) = list(&[]);
    assert!(listed, "{text}");
    let line = |mark: &str| {
        text.lines().find(|line| line.contains(mark)).unwrap_or_else(|| panic!("{mark}: {text}"))
    };
    for part in ["a.example, b.example", "ecdsa-p256", " days ", one.key.to_str().expect("UTF-8")] {
        assert!(line("127.0.0.1:0").contains(part), "{part}: {text}");
    }
    for part in ["c.example", "rsa2048", "key server unix:/run/none.sock", "127.0.0.1:7"] {
        assert!(line("c.example").contains(part), "{part}: {text}");
    }
    assert!(line("not readable").contains("/nowhere/chain.pem"));
    assert!(text.contains("warning: /nowhere/chain.pem: No such file or directory"), "{text}");
    let all: Value = serde_json::from_str(list(&["--json"]).1.as_str()).expect("a JSON list");
    assert_eq!(all.as_array().map(Vec::len), Some(3));
    assert_eq!(all[0]["names"][1], "b.example");
    // The certificate is valid for 30 days from a moment ago.
    assert!(all[0]["days_left"].as_i64().is_some_and(|days| (29..=30).contains(&days)), "{all}");
    assert_eq!(all[0]["acme"], false);
    assert!(all[2]["problem"].as_str().is_some_and(|problem| problem.contains("No such file")), "{all}");
}
