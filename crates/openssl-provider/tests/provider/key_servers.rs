//! Key servers that stop and restart: another server or a key in the process takes over, or handshakes fail cleanly
//! and soon.

use crate::{
    servers::{haproxy, nginx},
    support::{Running, Site, fail, free_port, handshake, listens, until},
};
use std::{fs, process::Stdio};

pub(crate) fn site() -> Site {
    let site = Site::new();
    site.certificate("rsa", "rsa:2048");
    fs::copy(site.path("rsa.pem"), site.path("served.pem")).expect("it is there");
    site.plain_openssl("genpkey -genparam -algorithm DH -pkeyopt group:ffdhe2048 -out dh.pem");
    site
}

pub(crate) fn serve(site: &Site, start: crate::servers::Start, key: &str) -> (Running, u16) {
    site.write("served.both", &format!("{}{}", site.read("rsa.pem"), site.read(key)));
    let port = free_port();
    let running = start(site, key, port);
    until("the server listens", || listens(port));
    (running, port)
}

#[test]
fn handshakes_fail_soon_without_a_key_server_and_go_on_when_it_is_back() {
    for start in [nginx, haproxy] as [crate::servers::Start; 2] {
        let site = site();
        site.stand_in("remote.key", &["keys"], "rsa", &[]);
        let keys = site.key_server("keys", &["rsa"]);
        let (mut running, port) = serve(&site, start, "remote.key");
        assert!(handshake(&site, port, "").is_some(), "{}", running.log());
        drop(keys);
        // Long before the client gives up, which takes minutes.
        for _ in 0..3 {
            assert!(is_refused(&site, port), "{}", running.log());
        }
        let _keys = site.key_server("keys", &["rsa"]);
        until("handshakes go on", || handshake(&site, port, "").is_some());
        assert!(running.is_alive(), "{}", running.log());
    }
}

/// Returns whether the server ends the handshake; otherwise `timeout` ends the client with status 124.
fn is_refused(site: &Site, port: u16) -> bool {
    let mut client = site.plain("timeout");
    client.args(["180", "openssl", "s_client", "-servername", "localhost", "-connect"]);
    let status =
        client.arg(format!("127.0.0.1:{port}")).stdin(Stdio::null()).output().expect("openssl").status;
    !status.success() && status.code() != Some(124)
}

#[test]
fn another_key_server_takes_over() {
    for start in [nginx, haproxy] as [crate::servers::Start; 2] {
        let site = site();
        site.stand_in("remote.key", &["one", "two"], "rsa", &[]);
        let one = site.key_server("one", &["rsa"]);
        let _two = site.key_server("two", &["rsa"]);
        let (running, port) = serve(&site, start, "remote.key");
        assert!(handshake(&site, port, "").is_some(), "{}", running.log());
        drop(one);
        for _ in 0..5 {
            assert!(handshake(&site, port, "").is_some(), "{}", running.log());
        }
    }
}

#[test]
fn a_key_in_the_process_takes_over() {
    for start in [nginx, haproxy] as [crate::servers::Start; 2] {
        let site = site();
        let fallback = site.path_text("rsa.key");
        site.stand_in("remote.key", &["keys"], "rsa", &["--fallback", &fallback]);
        let (running, port) = serve(&site, start, "remote.key");
        for _ in 0..3 {
            assert!(handshake(&site, port, "").is_some(), "{}", running.log());
        }
    }
}

#[test]
fn what_the_key_server_refuses_is_said() {
    let site = site();
    site.write("message", "x");
    let directory = site.path("keys.keys");
    fs::create_dir_all(&directory).expect("it is there");
    let _keys = site.key_server("keys", &[]);
    let uri = site.uri(&["keys"], "rsa");
    let unknown = fail(site.with_provider("openssl").args(["dgst", "-sha256", "-sign", &uri, "message"]));
    assert!(unknown.contains("the server has no such key") && unknown.contains("--keys"), "{unknown}");
    let salt = "-sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:20";
    fs::copy(site.path("rsa.key"), directory.join("rsa.key")).expect("it is there");
    site.write("policy.yaml", "clients:\n  - client: \"uid:*\"\n");
    let sign = |options: &str| {
        let options = options.split(' ').filter(|option| !option.is_empty());
        let mut command = site.with_provider("openssl");
        command.args(["dgst", "-sha256"]).args(options).args(["-sign", &uri, "-out", "signature", "message"]);
        command.output().expect("it is there")
    };
    until("the key is read", || sign("").status.success());
    until("the policy is read", || !sign(salt).status.success());
    let said = crate::support::said(&sign(salt));
    assert!(said.contains("does not allow"), "{said}");
}

/// A ciphertext with invalid padding has one result, in whichever process it is decrypted; else clients of several
/// workers could tell valid from invalid padding (Bleichenbacher 1998).
#[test]
fn implicit_rejection_is_the_same_in_every_process() {
    let site = site();
    site.certificate("other", "rsa:2048");
    let _keys = site.key_server("keys", &["rsa", "other"]);
    let remote = site.uri(&["keys"], "rsa");
    let hybrid = format!("{remote}&fallback={}", site.path_text("rsa.key"));
    let local = format!("quadrille:file:{}", site.path_text("rsa.key"));
    let other = site.uri(&["keys"], "other");
    // Numbers below the modulus whose decryption has no valid padding, but with negligible probability.
    for name in ["one", "two"] {
        site.write(name, &format!("\0{name}{}", "x".repeat(252)));
    }
    let decrypt = |key: &str, ciphertext: &str| {
        let mut command = site.with_provider("openssl");
        command.args(["pkeyutl", "-decrypt", "-inkey", key, "-in", ciphertext]);
        crate::support::finish(&mut command).stdout
    };
    let results: Vec<_> = [&remote, &remote, &remote, &hybrid, &local].map(|key| decrypt(key, "one")).into();
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    assert_eq!(decrypt(&remote, "two"), decrypt(&local, "two"));
    // One in 2^8 of the results would be equal by their lengths alone; so both kinds of differences are tried.
    let is_other = decrypt(&remote, "two") != results[0] || decrypt(&other, "one") != results[0];
    assert!(is_other, "it depends on the ciphertext and on the key");
    site.write("message", "a message");
    site.plain_openssl("pkeyutl -encrypt -certin -inkey rsa.pem -in message -out encrypted");
    assert_eq!(decrypt(&remote, "encrypted"), b"a message");
}

#[test]
fn without_permission_to_decrypt_nothing_is_derived() {
    let site = site();
    let _keys = site.key_server("keys", &["rsa"]);
    site.write("policy.yaml", "clients:\n  - client: \"uid:*\"\n    operations: [sign]\n");
    site.write("message", "a message");
    site.plain_openssl("pkeyutl -encrypt -certin -inkey rsa.pem -in message -out encrypted");
    let uri = site.uri(&["keys"], "rsa");
    let decrypt = || {
        let mut command = site.with_provider("openssl");
        command.args(["pkeyutl", "-decrypt", "-inkey", &uri, "-in", "encrypted"]);
        command.output().expect("openssl")
    };
    until("the policy is read", || !decrypt().status.success());
    let said = crate::support::said(&decrypt());
    assert!(said.contains("--policy must allow decryption"), "{said}");
}
