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
