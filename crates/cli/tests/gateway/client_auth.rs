//! Client certificates: off, optional, required, and from the wrong CA.

use crate::support::{Certificates, Gateway, Pair, Returning, Seen, Way, quadrille, s_client, succeed};
use std::path::Path;

const VERSIONS: [&str; 2] = ["-tls1_2", "-tls1_3"];

struct Setting {
    ours: Certificates,
    server: Pair,
    client: Pair,
    stranger: Pair,
    // Keeps the stranger's files alive.
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
        self.connect_with(gateway, version, client, None)
    }

    /// Connects with further certificates of the client's chain.
    fn connect_with<'a>(
        &self,
        gateway: &Gateway,
        version: &'a str,
        client: Option<&'a Pair>,
        more: Option<&'a str>,
    ) -> Seen {
        let mut arguments = vec![version];
        if let Some(pair) = client {
            let path = |path: &'a std::path::Path| path.to_str().expect("a UTF-8 path");
            arguments.extend(["-cert", path(&pair.chain), "-key", path(&pair.key)]);
        }
        arguments.extend(more.iter().flat_map(|file| ["-cert_chain", file]));
        s_client(gateway.address(0), &self.ours.ca(), &arguments)
    }
}

#[test]
fn required_accepts_only_clients_of_the_ca() {
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
fn optional_accepts_clients_without_a_certificate_but_not_with_a_wrong_one() {
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
        let seen = setting
            .connect(&gateway, version, Some(&setting.stranger))
            .expect("the certificate is not requested");
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
        // Another gateway has other ticket keys: without its certificate, the client is rejected there.
        let other = setting.gateway(&[]);
        s_client(other.address(0), &ca, &[version, "-sess_in", session]).expect_refusal("a foreign session");
    }
}

/// Returns the flags of a gateway that shares its ticket keys with the others of this test.
fn shared_tickets(setting: &Setting) -> String {
    let file = setting.ours.path("ticket.key");
    if !file.exists() {
        succeed(quadrille("tickets").arg("generate").arg(&file));
    }
    file.to_str().expect("UTF-8").to_owned()
}

#[test]
fn sessions_end_with_the_lifetime_of_the_first_handshake_and_with_the_certificate() {
    const MINUTE: u32 = 60;
    const DAY: u32 = 24 * 60 * MINUTE;
    let setting = Setting::new();
    let short = Pair { chain: setting.ours.path("short.pem"), key: setting.client.key.clone() };
    setting.ours.sign(&short.key, &short.chain, &["alice"], 1);
    let (tickets, ca) = (shared_tickets(&setting), setting.ours.ca());
    let start = |seconds: u32, lifetime: &str| {
        let flags = ["--respond", "ok", "--client-ca", ca.to_str().expect("UTF-8"), "--session-tickets"];
        let flags = [&flags[..], &[&tickets, "--session-lifetime", lifetime]].concat();
        Gateway::ahead(seconds, &setting.ours.path(""), &setting.server, &flags)
    };
    let hours = [0, 50 * MINUTE, 100 * MINUTE].map(|ahead| start(ahead, "1h"));
    let days = [0, DAY / 2, 2 * DAY].map(|ahead| start(ahead, "7d"));
    for way in [Way::Tls13, Way::Ticket12] {
        let client = Returning::with_certificate(&setting.ours, way, &setting.client);
        let mut session = None;
        let resumed =
            hours.each_ref().map(|gateway| client.visit(gateway.address(0), &mut session).expect("a visit"));
        assert_eq!(
            resumed,
            [false, true, false],
            "{way:?}: renewed meanwhile, and expired after the lifetime"
        );
        let client = Returning::with_certificate(&setting.ours, way, &short);
        let mut session = None;
        assert!(!client.visit(days[0].address(0), &mut session).expect("a first visit"));
        assert!(client.visit(days[1].address(0), &mut session).expect("half a day later"), "{way:?}");
        let late = client.visit(days[2].address(0), &mut session);
        assert!(late.is_err(), "{way:?}: the certificate has expired: {late:?}");
    }
}

#[test]
fn certificates_for_servers_alone_are_refused() {
    let setting = Setting::new();
    let gateway = setting.gateway(&[]);
    for (usage, accepted) in [("serverAuth", false), ("clientAuth", true), ("serverAuth,clientAuth", true)] {
        let pair = Pair { chain: setting.ours.path("usage.pem"), key: setting.client.key.clone() };
        let extensions = format!("subjectAltName=DNS:alice\nextendedKeyUsage={usage}\n");
        setting.ours.sign_as(&pair.key, &pair.chain, "alice", 30, &extensions);
        for version in VERSIONS {
            let seen = setting.connect(&gateway, version, Some(&pair));
            assert_eq!(seen.answered(), accepted, "{usage} {version}: {}", seen.text);
        }
    }
}

#[test]
fn every_ca_of_the_bundle_is_trusted_for_itself() {
    let setting = Setting::new();
    let below = setting.ours.intermediate();
    let client = below.ecdsa("P-256", &["bob"]);
    let read = |file: &Path| std::fs::read_to_string(file).expect("a PEM file");
    let both = below.path("both.pem");
    std::fs::write(&both, [read(&setting.ours.ca()), read(&below.ca())].concat()).expect("a bundle");
    let lists = [below.path("none.crl"), below.path("bob.crl")];
    below.revoke(&[], &lists[0]);
    below.revoke(&[&client], &lists[1]);
    let [none, bob] = lists.each_ref().map(|list| list.to_str().expect("UTF-8"));
    let root = setting.ours.ca();
    // CA bundle and CRLs; whether the root's client, the intermediate's client, and the latter with its chain are
    // accepted.
    let cases: [(&Path, &[&str], [bool; 3]); 5] = [
        (&root, &[], [true, false, true]),
        (&both, &[], [true, true, true]),
        (&below.ca(), &[], [false, true, true]),
        (&below.ca(), &["--client-crl", none], [false, true, true]),
        (&below.ca(), &["--client-crl", bob], [false, false, false]),
    ];
    for (bundle, flags, expected) in cases {
        let flags = [&["--respond", "ok", "--client-ca", bundle.to_str().expect("UTF-8")], flags].concat();
        let gateway = Gateway::with_flags(&setting.server, &flags);
        for version in VERSIONS {
            let answered = [(&setting.client, None), (&client, None), (&client, Some(below.ca()))].map(
                |(pair, more)| {
                    let more = more.as_ref().map(|file| file.to_str().expect("UTF-8"));
                    setting.connect_with(&gateway, version, Some(pair), more).answered()
                },
            );
            assert_eq!(answered, expected, "{version} {bundle:?} {flags:?}");
        }
    }
}
