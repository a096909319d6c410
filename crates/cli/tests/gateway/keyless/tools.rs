//! `quadrille keyserver ping` and `sign`.

use crate::support::{KeyServer, Site, output, quadrille, succeed};
use std::process::Command;

#[test]
fn ping_tells_whether_a_server_is_up_and_has_the_key() {
    let site = Site::new();
    let held = site.certificates.rsa(2048, &["held.example"]);
    site.give_away(&held, "held");
    let not_held = site.certificates.ecdsa("P-256", &["other.example"]);
    let server = KeyServer::start(&site, &[]);
    let ping = |certificate: &std::path::Path, arguments: &[&str]| {
        let mut command = quadrille("keyserver");
        command.args(["ping", "--server", &server.name(), "--for"]).arg(certificate).args(arguments);
        site.as_gateway(&mut command);
        output(&mut command)
    };
    let (ok, said) = ping(&held.chain, &["--count", "3"]);
    assert!(ok, "{said}");
    for part in
        ["batched mode, TLSv1.3, X25519MLKEM768", "holds the key", "(rsa2048); 3 signatures", "median"]
    {
        assert!(said.contains(part), "{said}");
    }
    let (ok, said) = ping(&held.chain, &["--count", "64", "--in-flight", "16"]);
    assert!(ok && said.contains("64 signatures") && said.contains(" a second"), "{said}");
    let (ok, said) = ping(&held.chain, &["--protocol", "compatible"]);
    assert!(ok && said.contains("compatible mode"), "{said}");
    let (ok, said) = ping(&not_held.chain, &[]);
    assert!(!ok && said.contains("no such key"), "{said}");
    server.process.signal("STOP");
    let (ok, said) = ping(&held.chain, &["--timeout", "500ms"]);
    assert!(!ok && said.contains("no response within 500ms"), "{said}");
}

#[test]
fn sign_makes_what_openssl_verifies() {
    let site = Site::new();
    let made = &site.certificates;
    let pairs = [
        (made.rsa(2048, &["a"]), &["-sha256", "-sigopt", "rsa_padding_mode:pss"][..]),
        (made.ecdsa("P-384", &["a"]), &["-sha384"]),
    ];
    let message = made.path("message");
    std::fs::write(&message, "a message").expect("writing");
    for (index, (pair, _)) in pairs.iter().enumerate() {
        site.give_away(pair, &format!("key-{index}"));
    }
    let server = KeyServer::start(&site, &[]);
    for (pair, digest) in &pairs {
        let (signature, public) = (made.path("signature"), made.path("public.pem"));
        let mut sign = quadrille("keyserver");
        sign.args(["sign", "--server", &server.name(), "--for"]).arg(&pair.chain);
        sign.arg("--in").arg(&message).arg("--out").arg(&signature);
        site.as_gateway(&mut sign);
        succeed(&mut sign);
        let key =
            succeed(Command::new("openssl").args(["x509", "-pubkey", "-noout", "-in"]).arg(&pair.chain));
        std::fs::write(&public, key).expect("writing");
        let mut verify = Command::new("openssl");
        verify.arg("dgst").args(*digest).arg("-verify").arg(&public).arg("-signature").arg(&signature);
        assert!(succeed(verify.arg(&message)).contains("Verified OK"));
    }
}
