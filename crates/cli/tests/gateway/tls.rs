//! TLS negotiation: versions, cipher suites, groups, key types, ALPN. The clients are OpenSSL's and BoringSSL's.

use crate::support::{Certificates, Gateway, Pair, s_client, tls_client};
use boring::ssl::{Ssl, SslStream};
use std::{net::TcpStream, path::PathBuf};

const HOST: &[&str] = &["localhost"];

/// Returns a configuration with one listener for each of these certificates; `tls` is YAML in flow style.
fn one_listener_each(certificates: &Certificates, pairs: &[&Pair], tls: &str) -> PathBuf {
    let listener = |pair: &&Pair| {
        let (chain, key) = (pair.chain.display(), pair.key.display());
        format!(
            "  - address: 127.0.0.1:0\n    certificates: [{{chain: {chain}, key: {key}}}]\n    tls: {tls}\n    respond: ok\n"
        )
    };
    let file = certificates.path("listeners.yaml");
    let listeners: String = pairs.iter().map(listener).collect();
    std::fs::write(&file, format!("admin: 127.0.0.1:0\nlisteners:\n{listeners}")).expect("a configuration");
    file
}

#[test]
fn every_key_type_serves_every_version_that_has_it() {
    let certificates = Certificates::new();
    let ecdsa = |curve| certificates.ecdsa(curve, HOST);
    // The metrics' label; OpenSSL's names for the signature in TLS 1.2 and below, and in TLS 1.3.
    let kinds = [
        (certificates.rsa(2048, HOST), "rsa2048", "RSA", "RSA-PSS"),
        (certificates.rsa(3072, HOST), "rsa3072", "RSA", "RSA-PSS"),
        (certificates.rsa(4096, HOST), "rsa4096", "RSA", "RSA-PSS"),
        (ecdsa("P-256"), "ecdsa-p256", "ECDSA", "ECDSA"),
        (ecdsa("P-384"), "ecdsa-p384", "ECDSA", "ECDSA"),
        (ecdsa("P-521"), "ecdsa-p521", "ECDSA", "ECDSA"),
        (certificates.ed25519(HOST), "ed25519", "ed25519", "ed25519"),
    ];
    let pairs: Vec<_> = kinds.iter().map(|(pair, ..)| pair).collect();
    let file = one_listener_each(&certificates, &pairs, r#"{min: "1.0"}"#);
    let gateway = Gateway::with_config(&file, kinds.len());
    for (index, (_, key_type, old, new)) in kinds.iter().enumerate() {
        let versions =
            [("-tls1", "TLSv1"), ("-tls1_1", "TLSv1.1"), ("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")];
        // EdDSA requires TLS 1.2 (RFC 8422).
        let versions = if *key_type == "ed25519" { &versions[2..] } else { &versions[..] };
        for (flag, version) in versions {
            let what = format!("{key_type} in {version}");
            let seen = s_client(gateway.address(index), &certificates.ca(), &[flag]).expect(&what);
            assert_eq!(seen.version(), *version, "{what}");
            // OpenSSL prints no signature algorithm before TLS 1.2: it is fixed.
            match *flag {
                "-tls1_2" => assert!(
                    seen.signature() == *old || seen.signature() == *new,
                    "{what}: {}",
                    seen.signature()
                ),
                "-tls1_3" => assert_eq!(seen.signature(), *new, "{what}"),
                _ => {}
            }
            let counted =
                [format!("version=\"{version}\""), format!("key_type=\"{key_type}\""), "full".to_owned()];
            let counted: Vec<&str> = counted.iter().map(String::as_str).collect();
            assert_eq!(
                gateway.metric("quadrille_handshakes_total", &counted),
                1.0,
                "{what}\n{}",
                gateway.metrics()
            );
        }
        let operations =
            gateway.metric("quadrille_key_operations_total", &[&format!("\"{key_type}\""), "ok"]);
        assert_eq!(operations, versions.len() as f64, "{key_type}");
    }
    assert_eq!(gateway.metric("quadrille_handshake_failures_total", &[]), 0.0, "{}", gateway.metrics());
}

#[test]
fn old_versions_are_refused_unless_asked_for() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", HOST);
    let ca = certificates.ca();
    let gateway = Gateway::with_flags(&pair, &["--respond", "ok"]);
    for flag in ["-tls1", "-tls1_1"] {
        let seen = s_client(gateway.address(0), &ca, &[flag]).expect_refusal(flag);
        assert!(seen.text.contains("protocol version"), "a specific alert: {}", seen.text);
    }
    gateway.wait_for_metric("quadrille_handshake_failures_total", &["\"tls\""], |count| count == 2.0);
    let narrow = Gateway::with_flags(&pair, &["--respond", "ok", "--tls-min", "1.3"]);
    s_client(narrow.address(0), &ca, &["-tls1_2"]).expect_refusal("TLS 1.2 below the minimum");
    let old = Gateway::with_flags(&pair, &["--respond", "ok", "--tls-max", "1.2"]);
    assert_eq!(s_client(old.address(0), &ca, &[]).expect("the maximum").version(), "TLSv1.2");
}

#[test]
fn the_client_s_order_decides_between_aes_and_chacha() {
    let certificates = Certificates::new();
    let (rsa, ecdsa) = (certificates.rsa(2048, HOST), certificates.ecdsa("P-256", HOST));
    let file = one_listener_each(&certificates, &[&rsa, &ecdsa], "{}");
    let gateway = Gateway::with_config(&file, 2);
    let ca = certificates.ca();
    for (index, key) in [(0, "RSA"), (1, "ECDSA")] {
        let suites = ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"];
        for first in suites {
            let others = suites.iter().filter(|suite| **suite != first);
            let list: Vec<_> =
                [&first].into_iter().chain(others).map(|suite| format!("ECDHE-{key}-{suite}")).collect();
            let arguments = ["-tls1_2", "-cipher", &list.join(":")];
            let seen = s_client(gateway.address(index), &ca, &arguments).expect(&list[0]);
            assert_eq!(seen.cipher(), list[0]);
        }
    }
    let suites = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];
    for rotation in 0..suites.len() {
        let mut list = suites;
        list.rotate_left(rotation);
        let seen =
            s_client(gateway.address(0), &ca, &["-tls1_3", "-ciphersuites", &list.join(":")]).expect(list[0]);
        assert_eq!(seen.cipher(), list[0]);
        let counted = gateway.metric("quadrille_handshakes_total", &[&format!("cipher=\"{}\"", list[0])]);
        assert_eq!(counted, 1.0, "{}", gateway.metrics());
    }
}

#[test]
fn cbc_is_an_explicit_choice() {
    let certificates = Certificates::new();
    let (rsa, ecdsa) = (certificates.rsa(2048, HOST), certificates.ecdsa("P-256", HOST));
    let ca = certificates.ca();
    for (pair, key) in [(&rsa, "RSA"), (&ecdsa, "ECDSA")] {
        let start = |flags: &[&str]| Gateway::with_flags(pair, &[&["--respond", "ok"], flags].concat());
        let (without, with, old) =
            (start(&["--static-rsa"]), start(&["--cbc"]), start(&["--tls-min", "1.1"]));
        for suite in ["AES128-SHA", "AES256-SHA"] {
            let cbc = format!("ECDHE-{key}-{suite}");
            let arguments = ["-tls1_2", "-cipher", &cbc];
            s_client(without.address(0), &ca, &arguments).expect_refusal(&cbc);
            assert_eq!(s_client(with.address(0), &ca, &arguments).expect(&cbc).cipher(), cbc);
            assert_eq!(s_client(old.address(0), &ca, &arguments).expect(&cbc).cipher(), cbc);
            s_client(without.address(0), &ca, &["-tls1_2", "-cipher", suite]).expect_refusal(suite);
            let with_gcm = format!("{cbc}:ECDHE-{key}-AES128-GCM-SHA256");
            let seen = s_client(with.address(0), &ca, &["-tls1_2", "-cipher", &with_gcm]).expect(&with_gcm);
            assert_eq!(seen.cipher(), format!("ECDHE-{key}-AES128-GCM-SHA256"), "an AEAD comes before CBC");
        }
    }
}

#[test]
fn static_rsa_is_an_explicit_choice() {
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, HOST);
    let ca = certificates.ca();
    let without = Gateway::with_flags(&pair, &["--respond", "ok"]);
    let with = Gateway::with_flags(&pair, &["--respond", "ok", "--static-rsa", "--tls-min", "1.0"]);
    for suite in ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA", "AES256-SHA"] {
        s_client(without.address(0), &ca, &["-tls1_2", "-cipher", suite]).expect_refusal(suite);
        let seen = s_client(with.address(0), &ca, &["-tls1_2", "-cipher", suite]).expect(suite);
        assert_eq!(seen.cipher(), suite);
    }
    s_client(with.address(0), &ca, &["-tls1", "-cipher", "AES128-SHA:@SECLEVEL=0"])
        .expect("static RSA in TLS 1.0");
    let both = "AES128-GCM-SHA256:ECDHE-RSA-AES128-SHA";
    let seen = s_client(with.address(0), &ca, &["-tls1_2", "-cipher", both]).expect(both);
    assert_eq!(seen.cipher(), "ECDHE-RSA-AES128-SHA", "forward secrecy comes first");
    let counted = with.metric("quadrille_handshakes_total", &["TLS_RSA_WITH_AES_256_GCM_SHA384"]);
    assert_eq!(counted, 1.0, "{}", with.metrics());
}

#[test]
fn groups_and_alpn_are_what_both_sides_have() {
    let certificates = Certificates::new();
    let gateway = Gateway::with_flags(&certificates.rsa(2048, HOST), &["--respond", "ok"]);
    let (address, ca) = (gateway.address(0), certificates.ca());
    for version in ["-tls1_2", "-tls1_3"] {
        for (group, name) in [("X25519", "X25519"), ("P-256", "prime256v1"), ("P-384", "secp384r1")] {
            let seen = s_client(address, &ca, &[version, "-groups", group]).expect(group);
            assert!([name, group].contains(&seen.group()), "{version} {group}: {}", seen.group());
        }
        s_client(address, &ca, &[version, "-groups", "P-521"])
            .expect_refusal("P-521 is not offered by default");
        // The client offers a P-384 share and receives a HelloRetryRequest if X25519 is preferred.
        s_client(address, &ca, &[version, "-groups", "P-521:X25519"]).expect("a second key share");
    }
    for group in ["X25519MLKEM768", "X25519", "P-384"] {
        let client = tls_client(|builder| builder.set_curves_list(group).expect("a group"));
        let stream = connect(&gateway, &client);
        assert_eq!(stream.ssl().curve_name(), Some(group));
    }
    let modern = tls_client(|builder| builder.set_curves_list("X25519MLKEM768:X25519").expect("groups"));
    assert_eq!(connect(&gateway, &modern).ssl().curve_name(), Some("X25519MLKEM768"));

    for (offer, chosen) in [("http/1.1", Some("http/1.1")), ("spdy/3,http/1.1", Some("http/1.1")), ("", None)]
    {
        let arguments = if offer.is_empty() { vec![] } else { vec!["-alpn", offer] };
        assert_eq!(s_client(address, &ca, &arguments).expect(offer).alpn(), chosen);
    }
    let both = tls_client(|builder| builder.set_alpn_protos(b"\x08http/1.1\x02h2").expect("ALPN"));
    assert_eq!(
        connect(&gateway, &both).ssl().selected_alpn_protocol(),
        Some(&b"h2"[..]),
        "the gateway's order"
    );
    let seen = s_client(address, &ca, &["-alpn", "spdy/3"]).expect_refusal("no common protocol");
    assert!(seen.text.contains("no application protocol"), "{}", seen.text);
}

fn connect(gateway: &Gateway, client: &boring::ssl::SslContext) -> SslStream<TcpStream> {
    let tcp = TcpStream::connect(gateway.address(0)).expect("a connection");
    let ssl = Ssl::new(client).expect("a session");
    ssl.connect(tcp).unwrap_or_else(|error| panic!("{error}\n{}", gateway.log()))
}

/// Cipher suites by OpenSSL's names and IANA's, in this order; TLS 1.3 has its own.
#[test]
fn cipher_suites_are_those_of_the_list() {
    let certificates = Certificates::new();
    let (rsa, ecdsa) = (certificates.rsa(2048, HOST), certificates.ecdsa("P-256", HOST));
    let suites = "{min: 1.0, cipher_suites: [ECDHE-RSA-AES256-GCM-SHA384, TLS_RSA_WITH_AES_128_CBC_SHA, \
                  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, ECDHE-ECDSA-AES256-SHA]}";
    let file = one_listener_each(&certificates, &[&rsa, &ecdsa], suites);
    let gateway = Gateway::with_config(&file, 2);
    let ca = certificates.ca();
    let seen = |index, arguments: &[&str]| s_client(gateway.address(index), &ca, arguments);
    for (index, version, offered, chosen) in [
        (
            0,
            "-tls1_2",
            "ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA:ECDHE-RSA-AES256-GCM-SHA384",
            "ECDHE-RSA-AES256-GCM-SHA384",
        ),
        (0, "-tls1", "ALL:@SECLEVEL=0", "AES128-SHA"),
        (
            1,
            "-tls1_2",
            "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
        ),
        (1, "-tls1_1", "ALL:@SECLEVEL=0", "ECDHE-ECDSA-AES256-SHA"),
    ] {
        let answered = seen(index, &[version, "-cipher", offered]).expect(chosen);
        assert_eq!(answered.cipher(), chosen, "{index} {version}");
    }
    for (index, other) in [(0, "ECDHE-RSA-AES128-GCM-SHA256"), (1, "ECDHE-ECDSA-CHACHA20-POLY1305")] {
        seen(index, &["-tls1_2", "-cipher", other]).expect_refusal(other);
    }
    assert!(seen(0, &["-tls1_3"]).expect("TLS 1.3").cipher().starts_with("TLS_"));
}
