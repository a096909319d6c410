//! Keys that are added, removed and replaced while gateways use them.

use super::{PATIENT, progress, under_load};
use crate::support::{KeyServer, Site, eventually};

#[test]
fn keys_are_added_removed_and_replaced_under_load() {
    let site = Site::new();
    let pair = site.certificates.rsa(2048, &["localhost"]);
    let file = site.give_away(&pair, "site");
    let server = KeyServer::start(&site, &[]);
    let keys = || server.process.metric("quadrille_keyserver_keys", &[]);
    let (gateway, _file) =
        site.serve(&[site.listener(&pair.chain, &site.keyless(&[server.name()], "timeout: 160s"), PATIENT)]);
    under_load(&site, &gateway, |load| {
        // Another key is added, and removed.
        let other = site.certificates.ecdsa("P-256", &["other.example"]);
        let other_file = site.give_away(&other, "other");
        eventually("the key was not added", || keys() == 2.0);
        progress(load, 20);
        std::fs::remove_file(&other_file).expect("removing");
        eventually("the key was not removed", || keys() == 1.0);
        // The key's file is replaced with a copy under another name, then damaged by a partial write.
        let renamed = file.with_file_name("renamed.pem");
        std::fs::copy(&file, &renamed).expect("copying");
        let whole = std::fs::read(&file).expect("reading");
        std::fs::write(&file, &whole[..whole.len() / 2]).expect("writing");
        eventually("the damage was not noticed", || server.process.log().contains("is malformed"));
        progress(load, 20);
        std::fs::write(&file, &whole).expect("writing");
        progress(load, 20);
    });
    let failed = gateway.metric("quadrille_handshake_failures_total", &["reason=\"key_server\""]);
    assert_eq!(failed, 0.0, "{}", gateway.log());
}

#[test]
fn a_certificate_is_renewed_with_a_new_key() {
    let site = Site::new();
    let old = site.certificates.rsa(2048, &["localhost"]);
    site.give_away(&old, "old");
    let server = KeyServer::start(&site, &[]);
    let key = site.keyless(&[server.name()], "timeout: 160s");
    let (gateway, file) = site.serve(&[site.listener(&old.chain, &key, PATIENT)]);
    let new = site.certificates.ecdsa("P-384", &["localhost"]);
    under_load(&site, &gateway, |load| {
        // The new key is added first, then the certificate, then the old key is removed: in this order no client is
        // rejected.
        site.give_away(&new, "new");
        eventually("the key was not added", || server.process.metric("quadrille_keyserver_keys", &[]) == 2.0);
        let renewed = crate::support::document(&[site.listener(&new.chain, &key, PATIENT)], "");
        file.replace(&renewed);
        eventually("no reload", || gateway.metric("quadrille_reloads_total", &["ok"]) > 0.0);
        progress(load, 20);
        std::fs::remove_file(site.keys().join("old.pem")).expect("removing");
        eventually("the key was not removed", || {
            server.process.metric("quadrille_keyserver_keys", &[]) == 1.0
        });
        progress(load, 20);
    });
    assert!(gateway.metric("quadrille_handshakes_total", &["ecdsa-p384"]) > 0.0);
}

#[test]
fn a_directory_with_a_bad_key_is_not_served_at_all() {
    let site = Site::new();
    let pair = site.certificates.ecdsa("P-256", &["a"]);
    let file = site.give_away(&pair, "site");
    std::fs::write(file.with_file_name("broken.pem"), "-----BEGIN PRIVATE KEY-----\nnonsense\n")
        .expect("writing");
    let mut command = site.command();
    let said = crate::support::refused(command.args(["--listen", "127.0.0.1:0", "--admin", "off"]));
    assert!(said.contains("broken.pem") && said.contains("malformed"), "{said}");
}
