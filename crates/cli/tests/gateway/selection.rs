//! Certificate selection by server name and by the client's supported algorithms, and the stapled OCSP response.

use crate::support::{Certificates, Gateway, Pair, Seen, s_client, serve};

/// Starts a gateway with these certificates; the first is the default.
fn gateway(pairs: &[&Pair]) -> Gateway {
    let mut command = serve();
    command.args([
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--respond",
        "ok",
        "--tls-min",
        "1.0",
    ]);
    for pair in pairs {
        command.arg("--cert").arg(&pair.chain).arg("--key").arg(&pair.key);
    }
    Gateway::start(command, 1)
}

#[test]
fn names_choose_the_certificate() {
    let certificates = Certificates::new();
    let default = certificates.ecdsa("P-256", &["default.test"]);
    let exact = certificates.ecdsa("P-256", &["www.example.test", "example.test"]);
    let wildcard = certificates.ecdsa("P-256", &["*.example.test"]);
    let upper = certificates.ecdsa("P-256", &["Shop.Example.Test"]);
    let gateway = gateway(&[&default, &exact, &wildcard, &upper]);
    for version in ["-tls1_2", "-tls1_3"] {
        for (name, expected) in [
            ("www.example.test", "www.example.test"),
            ("WWW.Example.TEST", "www.example.test"),
            ("example.test", "www.example.test"),
            ("api.example.test", "*.example.test"),
            ("API.EXAMPLE.TEST", "*.example.test"),
            ("shop.example.test", "Shop.Example.Test"),
            ("a.b.example.test", "default.test"),
            ("other.test", "default.test"),
            ("default.test", "default.test"),
        ] {
            let seen = s_client(gateway.address(0), &certificates.ca(), &[version, "-servername", name])
                .expect(name);
            assert_eq!(seen.common_name(), expected, "{version} {name}");
        }
        let seen =
            s_client(gateway.address(0), &certificates.ca(), &[version, "-noservername"]).expect("no SNI");
        assert_eq!(seen.common_name(), "default.test", "{version}");
    }
}

/// Clients that can verify only one key type, and that type.
const CLIENTS: [(&[&str], &str); 10] = [
    (&["-tls1_3"], "ECDSA"),
    (&["-tls1_2"], "ECDSA"),
    (&["-tls1_3", "-sigalgs", "RSA-PSS+SHA256"], "RSA-PSS"),
    (&["-tls1_3", "-sigalgs", "ECDSA+SHA256"], "ECDSA"),
    (&["-tls1_2", "-sigalgs", "RSA+SHA256"], "RSA"),
    (&["-tls1_2", "-sigalgs", "RSA-PSS+SHA256"], "RSA-PSS"),
    (&["-tls1_2", "-sigalgs", "ECDSA+SHA256"], "ECDSA"),
    // All signature algorithms, but suites for one key type only.
    (&["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"], "RSA-PSS"),
    // An ECDSA suite that the gateway does not support.
    (&["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-GCM-SHA256"], "RSA-PSS"),
    // In TLS 1.2, ECDSA requires the certificate's curve among the client's groups (RFC 8422 section 5.1).
    (&["-tls1_2", "-groups", "X25519"], "RSA-PSS"),
];

#[test]
fn a_pair_of_rsa_and_ecdsa_gives_each_client_what_it_can_verify() {
    let certificates = Certificates::new();
    let rsa = certificates.rsa(2048, &["localhost"]);
    let ecdsa = certificates.ecdsa("P-256", &["localhost"]);
    for pairs in [[&rsa, &ecdsa], [&ecdsa, &rsa]] {
        let gateway = gateway(&pairs);
        for (arguments, signature) in CLIENTS {
            for name in [&["-noservername"][..], &["-servername", "localhost"]] {
                let arguments = [arguments, name].concat();
                let what = arguments.join(" ");
                let seen = s_client(gateway.address(0), &certificates.ca(), &arguments).expect(&what);
                assert_eq!(seen.signature(), signature, "{what}");
            }
        }
        let old = s_client(gateway.address(0), &certificates.ca(), &["-tls1", "-cipher", "aRSA:@SECLEVEL=0"]);
        assert!(old.expect("an old client").cipher().starts_with("ECDHE-RSA"));
    }
}

#[test]
fn a_client_that_cannot_verify_the_exact_name_s_kind_falls_back_to_the_wildcard() {
    let certificates = Certificates::new();
    let wildcard = certificates.rsa(2048, &["*.example.test"]);
    let exact = certificates.ecdsa("P-256", &["www.example.test"]);
    let gateway = gateway(&[&wildcard, &exact]);
    let connect = |arguments: &[&str]| -> Seen {
        s_client(gateway.address(0), &certificates.ca(), arguments).expect(&arguments.join(" "))
    };
    assert_eq!(connect(&["-servername", "www.example.test"]).common_name(), "www.example.test");
    let limited = connect(&["-servername", "www.example.test", "-sigalgs", "RSA-PSS+SHA256"]);
    assert_eq!(limited.common_name(), "*.example.test");
    // A certificate for one of the default's names is not a second default.
    assert_eq!(connect(&["-noservername"]).common_name(), "*.example.test");
}

#[test]
fn an_ocsp_response_is_stapled_from_its_file() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let plain = certificates.ecdsa("P-256", &["plain.test"]);
    let response = certificates.ocsp_response(&pair);
    let file = certificates.path("quadrille.yaml");
    let shown = |pair: &Pair| format!("chain: {}, key: {}", pair.chain.display(), pair.key.display());
    let configuration = format!(
        "admin: 127.0.0.1:0\nlisteners:\n  - address: 127.0.0.1:0\n    respond: ok\n    certificates:\n\
         \x20     - {{{}, ocsp: {}}}\n      - {{{}}}\n",
        shown(&pair),
        response.display(),
        shown(&plain)
    );
    std::fs::write(&file, configuration).expect("a configuration");
    let gateway = Gateway::with_config(&file, 1);
    for version in ["-tls1_2", "-tls1_3"] {
        let connect = |arguments: &[&str]| {
            s_client(gateway.address(0), &certificates.ca(), &[&[version], arguments].concat())
                .expect(version)
        };
        let asked = connect(&["-status"]);
        assert!(asked.text.contains("OCSP Response Status: successful"), "{}", asked.text);
        assert!(asked.text.contains("Cert Status: good"), "{}", asked.text);
        assert!(!connect(&[]).text.contains("OCSP Response Status"), "not requested");
        let other = connect(&["-status", "-servername", "plain.test"]);
        assert!(other.text.contains("OCSP response: no response sent"), "{}", other.text);
    }
}
