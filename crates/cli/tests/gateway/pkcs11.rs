//! Certificates of a gateway with keys in a PKCS#11 token of the same machine.

use crate::support::{
    Configuration, Gateway, Pair, Site, SoftHsm, configuration, eventually, output, quadrille, s_client,
    serve,
};
use std::process::Command;

fn provided(token: &SoftHsm, mut command: Command) -> Command {
    token.provide(&mut command);
    command
}

/// Starts a gateway with these listeners and the token's environment.
fn start(token: &SoftHsm, listeners: &[String]) -> (Gateway, Configuration) {
    let file = Configuration::new(&configuration::document(listeners, ""));
    let mut command = provided(token, serve());
    command.arg("--config").arg(file.path());
    (Gateway::start(command, listeners.len()), file)
}

fn listener(site: &Site, token: &SoftHsm, pair: &Pair, name: &str, settings: &str) -> String {
    let uri = token.uri(&format!(";object={name}"), settings);
    let keys = "timeouts: {handshake: 170s, handshake_deadline: off}, tls: {static_rsa: on}";
    site.listener(&pair.chain, &format!("'{uri}'"), keys)
}

#[test]
fn every_scheme() {
    let site = Site::new();
    let token = SoftHsm::new(&site.certificates, "token");
    let made = &site.certificates;
    let rsa = ["rsa_pss_rsae_sha256", "rsa_pss_rsae_sha512", "RSA+SHA256", "RSA+SHA384", "static"];
    let pairs: [(&str, Pair, &[&str]); 4] = [
        ("rsa", made.rsa(2048, &["localhost"]), &rsa),
        ("p256", made.ecdsa("P-256", &["localhost"]), &["ECDSA+SHA256"]),
        ("p384", made.ecdsa("P-384", &["localhost"]), &["ECDSA+SHA384"]),
        ("ed25519", made.ed25519(&["localhost"]), &["ed25519"]),
    ];
    for (index, (name, pair, _)) in pairs.iter().enumerate() {
        token.import(pair, name, &format!("0{index}"));
        std::fs::remove_file(&pair.key).expect("removing the key from the disk");
    }
    let listeners: Vec<String> =
        pairs.iter().map(|(name, pair, _)| listener(&site, &token, pair, name, "&x-timeout=100s")).collect();
    let (gateway, _file) = start(&token, &listeners);
    for (index, (name, _, schemes)) in pairs.iter().enumerate() {
        for scheme in *schemes {
            let arguments: &[&str] = match *scheme {
                "static" => &["-tls1_2", "-cipher", "AES128-GCM-SHA256"],
                scheme if scheme.starts_with("RSA+") => &["-tls1_2", "-sigalgs", scheme],
                scheme => &["-tls1_3", "-sigalgs", scheme],
            };
            s_client(gateway.address(index), &made.ca(), arguments).expect(&format!("{name} {scheme}"));
        }
    }
    assert!(gateway.metric("quadrille_key_operations_total", &["backend=\"pkcs11\"", "ok"]) >= 8.0);
}

#[test]
fn a_token_that_hangs_or_is_removed_does_not_stop_other_certificates() {
    let site = Site::new();
    let token = SoftHsm::new(&site.certificates, "token");
    let pair = site.certificates.ecdsa("P-256", &["localhost"]);
    token.import(&pair, "site", "01");
    let file = site.certificates.rsa(2048, &["localhost"]);
    let here = site.listener(&file.chain, &file.key.display().to_string(), PATIENT);
    let (gateway, _file) = start(&token, &[listener(&site, &token, &pair, "site", "&x-timeout=300ms"), here]);
    let connects = |index: usize| s_client(gateway.address(index), &site.certificates.ca(), &[]).answered();
    assert!(connects(0) && connects(1));
    for fault in ["hang", "removed"] {
        token.begin(fault);
        assert!(!connects(0) && connects(1), "{fault}");
        token.end(fault);
        eventually("the token is not used again", || connects(0));
    }
}

const PATIENT: &str = "timeouts: {handshake: 170s, handshake_deadline: off}";

#[test]
fn mistakes_are_found_at_the_start() {
    let site = Site::new();
    let token = SoftHsm::new(&site.certificates, "token");
    let pair = site.certificates.ecdsa("P-256", &["localhost"]);
    let other = site.certificates.ecdsa("P-256", &["other.example"]);
    token.import(&other, "other", "02");
    let check = |uri: &str| {
        let file = Configuration::new(&configuration::document(
            &[site.listener(&pair.chain, &format!("'{uri}'"), PATIENT)],
            "",
        ));
        output(provided(&token, quadrille("check")).arg(file.path()))
    };
    for (uri, part) in [
        (token.uri(";object=site", ""), "no private key"),
        (token.uri(";object=other", ""), "does not match the certificate"),
        (token.uri(";colour=other", ""), "unknown attribute `colour`"),
        (token.uri("", "&pin-value=1234"), "a PIN in the URI"),
        (
            "pkcs11:token=keys?module-path=/no/such.so".to_owned(),
            "cannot load the PKCS#11 module /no/such.so",
        ),
        (token.uri("", "").replace("token=keys", "token=others"), "no token pkcs11:token=others is present"),
    ] {
        let (ok, said) = check(&uri);
        let is_warning = part.starts_with("no token");
        assert!(ok == is_warning && said.contains(part), "{uri}: {said}");
        assert!(said.contains("quadrille.yaml:") || is_warning, "{said}");
    }
    token.set_pin("9999");
    let logins = token.logins();
    let (ok, said) = check(&token.uri(";object=other", ""));
    assert!(!ok && said.contains("rejected the PIN"), "{said}");
    assert_eq!(token.logins(), logins + 1);
}
