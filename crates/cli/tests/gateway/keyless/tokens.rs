//! Keys in PKCS#11 tokens behind a key server, with SoftHSM.

use super::{
    PATIENT,
    operations::{ECDSA, RSA, ask, block_on, client, decrypt, remote},
};
use crate::support::{
    Configuration, KeyServer, Pair, Site, SoftHsm, output, ports, quadrille, refused, s_client,
};
use quadrille_engine::{Operation, SignatureScheme as S};
use quadrille_keyless::client::Protocol;
use std::{fs, path::PathBuf};

/// Imports a pair's key, and writes its URI to the key server's directory.
pub(super) fn store(
    site: &Site,
    token: &SoftHsm,
    pair: &Pair,
    name: &str,
    id: &str,
    settings: &str,
) -> PathBuf {
    token.import(pair, name, id);
    let file = site.keys().join(format!("{name}.uri"));
    fs::write(&file, format!("# {name}\n{}\n", token.uri(&format!(";object={name}"), settings)))
        .expect("writing");
    file
}

/// Settings of a token on a busy machine.
const PATIENT_TOKEN: &str = "&x-timeout=100s";

/// Starts a key server with the token's environment.
pub(super) fn start(site: &Site, token: &SoftHsm, flags: &[&str]) -> KeyServer {
    let mut command = site.command();
    token.provide(&mut command);
    KeyServer::run(command, ports::free(), flags)
}

#[test]
fn every_signature_and_raw_decryption_of_a_token() {
    let site = Site::new();
    let token = SoftHsm::new(&site.certificates, "token");
    let made = &site.certificates;
    let keys: [(&str, Pair, &[S]); 5] = [
        ("rsa2048", made.rsa(2048, &["a"]), &RSA),
        ("p256", made.ecdsa("P-256", &["a"]), &ECDSA),
        ("p384", made.ecdsa("P-384", &["a"]), &ECDSA),
        ("p521", made.ecdsa("P-521", &["a"]), &ECDSA),
        ("ed25519", made.ed25519(&["a"]), &[S::Ed25519]),
    ];
    for (index, (name, pair, _)) in keys.iter().enumerate() {
        store(&site, &token, pair, name, &format!("0{index}"), PATIENT_TOKEN);
    }
    let policy = Configuration::new("clients: [{client: gateway.example, operations: [sign, decrypt]}]");
    let server = start(&site, &token, &["--policy", &policy.path().display().to_string()]);
    for protocol in [Protocol::Batched, Protocol::Compatible] {
        block_on(async {
            let client = client(&site, &server, protocol, false);
            for (_, pair, schemes) in &keys {
                let key = remote(&pair.key);
                for scheme in *schemes {
                    let operation = Operation::sign(*scheme, b"a message").expect("an operation");
                    let signed = ask(&client, &key, operation).await;
                    assert!(signed.is_ok(), "{scheme:?} with {}: {signed:?}", key.key_type());
                }
            }
            decrypt(&client, &keys[0].1.key).await;
        });
    }
    let logins = token.logins();
    assert!((1..=16).contains(&logins), "{logins}: at most one for each session");
    assert!(server.process.metric("quadrille_key_operations_total", &["backend=\"pkcs11\""]) > 0.0);
    assert_eq!(server.process.metric("quadrille_pkcs11_token_up", &["token=\"keys\""]), 1.0);
}

/// Every scheme of TLS, with openssl as the client of a gateway.
#[test]
fn handshakes_of_openssl() {
    let site = Site::new();
    let token = SoftHsm::new(&site.certificates, "token");
    let made = &site.certificates;
    let rsa = [
        "rsa_pss_rsae_sha256",
        "rsa_pss_rsae_sha384",
        "rsa_pss_rsae_sha512",
        "RSA+SHA256",
        "RSA+SHA384",
        "RSA+SHA512",
    ];
    let pairs: [(&str, Pair, &[&str]); 4] = [
        ("rsa", made.rsa(2048, &["localhost"]), &rsa),
        ("p256", made.ecdsa("P-256", &["localhost"]), &["ECDSA+SHA256"]),
        ("p384", made.ecdsa("P-384", &["localhost"]), &["ECDSA+SHA384"]),
        ("ed25519", made.ed25519(&["localhost"]), &["ed25519"]),
    ];
    for (index, (name, pair, _)) in pairs.iter().enumerate() {
        store(&site, &token, pair, name, &format!("0{index}"), PATIENT_TOKEN);
    }
    let server = start(&site, &token, &[]);
    let key = site.keyless(&[server.name()], "timeout: 160s");
    let listeners: Vec<String> =
        pairs.iter().map(|(_, pair, _)| site.listener(&pair.chain, &key, PATIENT)).collect();
    let (gateway, _file) = site.serve(&listeners);
    for (index, (name, _, schemes)) in pairs.iter().enumerate() {
        for scheme in *schemes {
            let version = if scheme.starts_with("RSA+") { "-tls1_2" } else { "-tls1_3" };
            let arguments = [version, "-sigalgs", scheme, "-servername", "localhost"];
            s_client(gateway.address(index), &made.ca(), &arguments).expect(&format!("{name} {scheme}"));
        }
    }
}

#[test]
fn a_file_with_a_certificate_and_a_token_without_the_key() {
    let site = Site::new();
    let token = SoftHsm::new(&site.certificates, "token");
    let pair = site.certificates.ecdsa("P-256", &["a"]);
    let file = site.keys().join("site.uri");
    let uri = token.uri(";object=site", PATIENT_TOKEN);
    fs::write(&file, &uri).expect("writing");
    let said = refused(site_command(&site, &token).args(["--listen", "127.0.0.1:0", "--admin", "off"]));
    assert!(
        said.contains("site.uri") && said.contains("no private key pkcs11:token=keys;object=site"),
        "{said}"
    );
    // Another key than that of the certificate.
    let other = site.certificates.ecdsa("P-256", &["b"]);
    token.import(&other, "site", "01");
    let chain = fs::read_to_string(&pair.chain).expect("reading");
    fs::write(&file, format!("{uri}\n{chain}")).expect("writing");
    let said = refused(site_command(&site, &token).args(["--listen", "127.0.0.1:0", "--admin", "off"]));
    assert!(said.contains("does not match the certificate"), "{said}");
}

fn site_command(site: &Site, token: &SoftHsm) -> std::process::Command {
    let mut command = site.command();
    token.provide(&mut command);
    command
}

#[test]
fn keys_are_listed() {
    let site = Site::new();
    let token = SoftHsm::new(&site.certificates, "token");
    let pairs =
        [("rsa", site.certificates.rsa(2048, &["a"])), ("curve", site.certificates.ecdsa("P-256", &["a"]))];
    for (index, (name, pair)) in pairs.iter().enumerate() {
        store(&site, &token, pair, name, &format!("0{index}"), "");
    }
    let file = site.certificates.ed25519(&["a"]);
    site.give_away(&file, "in-a-file");
    let listed = |keys: &str| {
        let mut command = quadrille("keyserver");
        token.provide(&mut command);
        output(command.args(["keys", "--keys", keys]))
    };
    let (ok, of_directory) = listed(&site.keys().display().to_string());
    assert!(ok, "{of_directory}");
    let (ok, of_token) = listed(&token.uri("", ""));
    assert!(ok, "{of_token}");
    for (index, (name, pair)) in pairs.iter().enumerate() {
        let key = remote(&pair.key);
        let start = format!("{}  {}  ", key.ski(), key.key_type());
        assert!(of_directory.contains(&format!("{start}{name} (in a PKCS#11 token)")), "{of_directory}");
        assert!(
            of_token.contains(&format!("{start}pkcs11:token=keys;object={name};id=%0{index}")),
            "{of_token}"
        );
    }
    assert!(of_directory.contains("ed25519  in-a-file\n"), "{of_directory}");
    let (ok, said) = listed(&token.uri(";object=other", ""));
    assert!(!ok && said.contains("no such private key"), "{said}");
}
