//! Client certificates: off, optional, required, and from the wrong CA.

use crate::support::{Certificates, Gateway, Pair, Seen, s_client};

const VERSIONS: [&str; 2] = ["-tls1_2", "-tls1_3"];

struct Setting {
    ours: Certificates,
    server: Pair,
    client: Pair,
    stranger: Pair,
    // Holds the stranger's files.
    _theirs: Certificates,
}

impl Setting {
    fn new() -> Self {
        let (ours, theirs) = (Certificates::new(), Certificates::new());
        Self {
            server: ours.ecdsa("P-256", &["localhost"]),
            client: ours.ecdsa("P-256", &["alice"]),
            stranger: theirs.ecdsa("P-256", &["mallory"]),
            ours,
            _theirs: theirs,
        }
    }

    fn gateway(&self, more: &[&str]) -> Gateway {
        let ca = self.ours.ca();
        let mut flags = vec!["--respond", "ok"];
        if !more.contains(&"off") {
            flags.extend(["--client-ca", ca.to_str().expect("a UTF-8 path")]);
            flags.extend(more);
        }
        Gateway::with_flags(&self.server, &flags)
    }

    fn connect<'a>(&self, gateway: &Gateway, version: &'a str, client: Option<&'a Pair>) -> Seen {
        let mut arguments = vec![version];
        if let Some(pair) = client {
            let path = |path: &'a std::path::Path| path.to_str().expect("a UTF-8 path");
            arguments.extend(["-cert", path(&pair.chain), "-key", path(&pair.key)]);
        }
        s_client(gateway.address(0), &self.ours.ca(), &arguments)
    }
}

#[test]
fn required_lets_in_only_clients_of_the_ca() {
    let setting = Setting::new();
    let gateway = setting.gateway(&[]);
    for version in VERSIONS {
        let seen = setting.connect(&gateway, version, Some(&setting.client)).expect(version);
        assert!(seen.text.contains("Acceptable client certificate CA names\nCN = Test CA"), "{}", seen.text);
        setting.connect(&gateway, version, None).expect_refusal("no certificate");
        setting.connect(&gateway, version, Some(&setting.stranger)).expect_refusal("another CA");
    }
    assert_eq!(gateway.metric("quadrille_handshakes_total", &[]), 2.0, "{}", gateway.metrics());
    gateway.wait_for_metric("quadrille_handshake_failures_total", &["\"tls\""], |count| count == 4.0);
}

#[test]
fn optional_lets_in_clients_without_but_not_with_a_wrong_one() {
    let setting = Setting::new();
    let gateway = setting.gateway(&["--client-auth-optional"]);
    for version in VERSIONS {
        setting.connect(&gateway, version, Some(&setting.client)).expect("ours");
        setting.connect(&gateway, version, None).expect("none");
        setting.connect(&gateway, version, Some(&setting.stranger)).expect_refusal("another CA");
    }
}

#[test]
fn off_does_not_ask() {
    let setting = Setting::new();
    let gateway = setting.gateway(&["off"]);
    for version in VERSIONS {
        let seen = setting.connect(&gateway, version, Some(&setting.stranger)).expect("nobody looks at it");
        assert!(seen.text.contains("No client certificate CA names sent"), "{}", seen.text);
    }
}

#[test]
fn a_resumed_session_stays_one_of_a_verified_client() {
    let setting = Setting::new();
    let gateway = setting.gateway(&[]);
    let session = setting.ours.path("session.pem");
    let session = session.to_str().expect("UTF-8");
    let (chain, key) =
        (setting.client.chain.to_str().expect("UTF-8"), setting.client.key.to_str().expect("UTF-8"));
    let ca = setting.ours.ca();
    for version in VERSIONS {
        let first = [version, "-cert", chain, "-key", key, "-sess_out", session];
        s_client(gateway.address(0), &ca, &first).expect("a full handshake");
        let seen = s_client(gateway.address(0), &ca, &[version, "-sess_in", session]).expect("a resumed one");
        assert!(seen.resumed(), "{version}");
        // Another gateway has other ticket keys: without its own certificate this client is nobody there.
        let other = setting.gateway(&[]);
        s_client(other.address(0), &ca, &[version, "-sess_in", session]).expect_refusal("a foreign session");
    }
}
