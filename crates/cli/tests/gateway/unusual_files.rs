//! Keys, certificates and names in unusual forms: each is read, or the message says what to do.

use crate::support::{
    Certificates, Configuration, Gateway, Pair, document, listener, output, quadrille, refused, s_client,
    serve, succeed,
};
use std::{path::Path, process::Command};

fn openssl(arguments: &[&str], input: &Path, output: &Path) {
    succeed(Command::new("openssl").args(arguments).arg("-in").arg(input).arg("-out").arg(output));
}

/// Serves a certificate that must be rejected; returns the message.
#[track_caller]
fn refusal(chain: &Path, key: &Path) -> String {
    let mut command = serve();
    command.args(["--listen", "127.0.0.1:0", "--respond", "ok", "--cert"]).arg(chain);
    refused(command.arg("--key").arg(key))
}

/// Returns the output of `quadrille check` of a valid configuration with this certificate.
#[track_caller]
fn checked(pair: &Pair) -> String {
    let file = Configuration::new(&document(&[listener(pair, "respond: ok")], ""));
    crate::support::checked(&file.path())
}

#[test]
fn unsupported_curves_are_named_in_every_form() {
    let certificates = Certificates::new();
    let chain = certificates.ecdsa("P-256", &["localhost"]).chain;
    for curve in ["brainpoolP384r1", "secp256k1"] {
        let [key, sec1, explicit] = ["pkcs8", "sec1", "explicit"].map(|form| certificates.path(form));
        let parameters = format!("ec_paramgen_curve:{curve}");
        let generate = ["genpkey", "-algorithm", "EC", "-pkeyopt", &parameters, "-out"];
        succeed(Command::new("openssl").args(generate).arg(&key));
        openssl(&["pkey", "-traditional"], &key, &sec1);
        openssl(&["ec", "-param_enc", "explicit"], &key, &explicit);
        for form in [&key, &sec1] {
            let said = refusal(&chain, form);
            assert!(said.contains(&format!("on the curve {curve}")) && said.contains("P-256"), "{said}");
        }
        let said = refusal(&chain, &explicit);
        assert!(said.contains("explicit parameters") && said.contains("-param_enc named_curve"), "{said}");
    }
}

#[test]
fn a_key_with_its_public_key_is_served() {
    // RFC 8410 section 10.3.
    const KEY: &str = "-----BEGIN PRIVATE KEY-----
MHICAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
oB8wHQYKKoZIhvcNAQkJFDEPDA1DdXJkbGUgQ2hhaXJzgSEAGb9ECWmEzf6FQbrB
Z9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PRIVATE KEY-----
";
    let certificates = Certificates::new();
    let [key, chain] = ["version2.key", "version2.pem"].map(|file| certificates.path(file));
    // OpenSSL 3.0 does not read it.
    let first = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    std::fs::write(&key, first).expect("writing");
    certificates.sign(&key, &chain, &["localhost"], 2);
    std::fs::write(&key, KEY.replace('\n', "\r\n")).expect("writing");
    let gateway = Gateway::with_flags(&Pair { chain, key }, &["--respond", "ok"]);
    s_client(gateway.address(0), &certificates.ca(), &[]).expect("a handshake");
}

#[test]
fn other_forms_of_certificates_say_how_to_convert_them() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let [trusted, bundle] = ["trusted.pem", "bundle.pem"].map(|file| certificates.path(file));
    openssl(&["x509", "-trustout"], &pair.chain, &trusted);
    let said = refusal(&trusted, &pair.key);
    assert!(said.contains("`BEGIN TRUSTED CERTIFICATE` is OpenSSL's own form"), "{said}");
    assert!(said.contains("openssl x509 -in"), "{said}");
    let both = [std::fs::read(&pair.chain), std::fs::read(&trusted)].map(|text| text.expect("PEM")).concat();
    std::fs::write(&bundle, both).expect("writing");
    assert!(refusal(&bundle, &pair.key).contains("TRUSTED CERTIFICATE"), "behind another certificate");
    let convert = ["crl2pkcs7", "-nocrl", "-certfile"];
    succeed(Command::new("openssl").args(convert).arg(&pair.chain).arg("-out").arg(&bundle));
    assert!(refusal(&bundle, &pair.key).contains("openssl pkcs7 -in"));
}

#[test]
fn a_chain_without_its_intermediate_certificate_is_a_warning() {
    let root = Certificates::new();
    let below = root.intermediate();
    let pair = below.ecdsa("P-256", &["localhost"]);
    let chain = |parts: &[&Path]| {
        let text = parts.iter().map(|part| std::fs::read_to_string(part).expect("PEM"));
        let chain = below.path("chain.pem");
        std::fs::write(&chain, text.collect::<String>()).expect("writing");
        Pair { chain, ..pair.clone() }
    };
    let (own, middle, top) = (pair.chain.clone(), below.ca(), root.ca());
    for good in [&[&own, &middle][..], &[&own, &middle, &top], &[&own]] {
        let parts: Vec<&Path> = good.iter().map(|part| part.as_path()).collect();
        let said = checked(&chain(&parts));
        assert!(!said.contains("warning"), "{good:?}: {said}");
    }
    let said = checked(&chain(&[&own, &top]));
    assert!(said.contains("warning: the chain ") && said.contains("certificate 1 was not issued"), "{said}");
    let with_url = below.path("with-url.pem");
    let text = "subjectAltName=DNS:localhost\nauthorityInfoAccess=caIssuers;URI:http://ca.example/ca.der\n";
    below.sign_as(&pair.key, &with_url, "localhost", 2, text);
    let said = checked(&chain(&[&with_url]));
    assert!(said.contains("has no intermediate certificate") && said.contains("Intermediate CA"), "{said}");
    assert!(!checked(&chain(&[&with_url, &middle])).contains("warning"));
}

#[test]
fn a_key_usage_without_signatures_is_named() {
    let certificates = Certificates::new();
    let text = "subjectAltName=DNS:localhost\nkeyUsage=critical,keyEncipherment,keyAgreement\n";
    for pair in [certificates.ecdsa("P-256", &["localhost"]), certificates.rsa(2048, &["localhost"])] {
        let chain = certificates.path("usage.pem");
        certificates.sign_as(&pair.key, &chain, "localhost", 2, text);
        let is_rsa = pair.key.to_string_lossy().contains("rsa");
        let unusable = Pair { chain: chain.clone(), ..pair };
        let said = if is_rsa { checked(&unusable) } else { refusal(&chain, &unusable.key) };
        assert!(said.contains("the key usage of the certificate"), "{said}");
        assert!(said.contains("issue it with keyUsage=digitalSignature"), "{said}");
    }
}

#[test]
fn names_and_plain_listeners_have_their_remedy() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let check = |listeners: &[String], upstreams: &str| {
        let file = Configuration::new(&document(listeners, upstreams));
        let (passed, said) = output(quadrille("check").arg(file.path()));
        assert!(!passed, "{said}");
        said
    };
    for (keys, upstreams, expected) in [
        ("match: {server_names: [münchen.de]}, respond: a", "", "write `xn--mnchen-3ya.de`"),
        ("routes: [{host: '*.Bücher.example', respond: a}]", "", "write `*.xn--bcher-kva.example`"),
        ("upstream: u", "u: {servers: ['münchen.de:443']}", "write `xn--mnchen-3ya.de:443`"),
    ] {
        let said = check(&[listener(&pair, keys)], upstreams);
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let said = check(&["{address: '127.0.0.1:0', respond: a}".to_owned()], "");
    assert!(said.contains("`certificates` is missing; add") && said.contains("`tls: off`"), "{said}");
}
