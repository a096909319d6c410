//! Gateways with certificates and without keys.

use crate::support::{Configuration, Gateway, KeyServer, Pair, Site, document, output, succeed};
use std::{os::unix::fs::MetadataExt, process::Command};

fn curl(site: &Site, gateway: &Gateway, listener: usize, arguments: &[&str]) -> (bool, String) {
    let port = gateway.address(listener).port();
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "300", "--cacert"]).arg(site.certificates.ca());
    command.args(["--resolve", &format!("localhost:{port}:127.0.0.1")]).args(arguments);
    output(command.arg(format!("https://localhost:{port}/")))
}

#[test]
fn every_kind_of_key_in_either_mode() {
    let site = Site::new();
    let certificates = &site.certificates;
    let pairs: Vec<Pair> = vec![
        certificates.rsa(2048, &["localhost"]),
        certificates.rsa(3072, &["localhost"]),
        certificates.ecdsa("P-384", &["localhost"]),
        certificates.ecdsa("P-256", &["localhost"]),
    ];
    for (index, pair) in pairs.iter().enumerate() {
        site.give_away(pair, &format!("key-{index}"));
    }
    let server = KeyServer::start(&site, &[]);
    let mut listeners = Vec::new();
    for mode in ["batched", "compatible"] {
        let key = site.keyless(&[server.name()], &format!("protocol: {mode}"));
        listeners.extend(pairs.iter().map(|pair| site.listener(&pair.chain, &key, "")));
    }
    let (gateway, _file) = site.serve(&listeners);
    for listener in 0..listeners.len() {
        for version in ["1.2", "1.3"] {
            let flags = ["--tlsv1.2", "--tls-max", version];
            let (ok, said) = curl(&site, &gateway, listener, &flags);
            assert!(ok && said == "right", "listener {listener}, TLS {version}: {said}\n{}", gateway.log());
        }
    }
    let counted = server.process.metric(
        "quadrille_keyserver_operations_total",
        &["client=\"gateway.example\"", "operation=\"sign\"", "result=\"ok\""],
    );
    assert_eq!(counted, 16.0, "one operation for each handshake");
    let log = [gateway.log(), server.process.log()].concat();
    assert!(!log.contains("PRIVATE KEY") && log.contains("key server is up"), "{log}");
}

#[test]
fn decryption_requires_a_policy() {
    let site = Site::new();
    let pair = site.certificates.rsa(2048, &["localhost"]);
    site.give_away(&pair, "shop");
    let policy = Configuration::new("clients: [{client: '*.example', operations: [sign]}]");
    let mut server = KeyServer::start(&site, &["--policy", &policy.path().display().to_string()]);
    for mode in ["batched", "compatible"] {
        policy.replace("clients: [{client: '*.example', operations: [sign]}]");
        let key = site.keyless(&[server.name()], &format!("protocol: {mode}"));
        let (gateway, _file) = site.serve(&[site.listener(&pair.chain, &key, "tls: {static_rsa: on}")]);
        let static_rsa = ["--tls-max", "1.2", "--ciphers", "AES128-GCM-SHA256"];
        assert!(curl(&site, &gateway, 0, &[]).0, "signing is allowed");
        crate::support::eventually("decryption is allowed", || !curl(&site, &gateway, 0, &static_rsa).0);
        server.process.wait_for_log("reason=\"denied\"");
        server.process.wait_for_log("operation=\"decrypt\"");
        // A changed policy applies to open connections.
        policy.replace("clients: [{client: gateway.example, keys: [shop], operations: [sign, decrypt]}]");
        crate::support::eventually("decryption is denied", || {
            curl(&site, &gateway, 0, &static_rsa) == (true, "right".into())
        });
    }
}

#[test]
fn on_a_unix_socket_the_kernel_identifies_the_client() {
    let site = Site::new();
    let pair = site.certificates.ecdsa("P-256", &["localhost"]);
    site.give_away(&pair, "site");
    let socket = format!("unix:{}", site.certificates.path("keys.sock").display());
    let server = KeyServer::start(&site, &["--listen", &socket]);
    let listeners = ["auto", "compatible"].map(|mode| {
        let key = format!("{{keyless: {{servers: ['{socket}'], protocol: {mode}}}}}");
        site.listener(&pair.chain, &key, "")
    });
    let (gateway, _file) = site.serve(&listeners);
    for listener in 0..2 {
        let (ok, said) = curl(&site, &gateway, listener, &[]);
        assert!(ok && said == "right", "{said}\n{}\n{}", gateway.log(), server.process.log());
    }
    assert!(server.process.metrics().contains("client=\"uid:"), "{}", server.process.metrics());
}

/// A policy determines which clients are served; the socket's permissions determine which can connect and use up
/// connections.
#[test]
fn a_unix_socket_is_for_its_group() {
    let site = Site::new();
    let policy = Configuration::new("clients: []");
    let policy = policy.path().display().to_string();
    let path = site.certificates.path("keys.sock");
    let socket = format!("unix:{}", path.display());
    let group = std::fs::metadata(site.keys()).expect("a directory").gid().to_string();
    let group = group.as_str();
    for (flags, mode) in [
        (&["--unix-group", group][..], 0o600),
        (&["--policy", &policy], 0o660),
        (&["--policy", &policy, "--unix-group", group], 0o660),
        (&["--policy", &policy, "--unix-mode", "0666"], 0o666),
    ] {
        let server = KeyServer::start(&site, &[&["--listen", &socket], flags].concat());
        let metadata = std::fs::metadata(&path).expect("the socket");
        assert_eq!(
            (metadata.mode() & 0o777, metadata.gid().to_string().as_str()),
            (mode, group),
            "{flags:?}"
        );
        drop(server);
    }
    let mut command = site.command();
    let (ok, said) =
        output(command.args(["--admin", "off", "--listen", &socket, "--unix-group", "absent-has-this"]));
    assert!(!ok && said.contains("there is no group `absent-has-this`; name a group"), "{said}");
    let (ok, said) = output(site.command().args(["--listen", &socket, "--unix-mode", "0999"]));
    assert!(!ok && said.contains("`0999` is not a mode"), "{said}");
}

#[test]
fn a_local_key_is_the_last_resort_and_is_left_when_a_server_comes() {
    let site = Site::new();
    let pair = site.certificates.rsa(2048, &["localhost"]);
    let port = crate::support::ports::free();
    let copy = site.keys().join("site.pem");
    std::fs::copy(&pair.key, &copy).expect("copying the key");
    let keys = format!("fallback: {}", pair.key.display());
    let key = site.keyless(&[format!("localhost:{port}")], &keys);
    let (gateway, _file) = site.serve(&[site.listener(&pair.chain, &key, "")]);
    assert_eq!(curl(&site, &gateway, 0, &[]), (true, "right".into()));
    assert!(gateway.metric("quadrille_keyless_fallbacks_total", &[]) >= 1.0);
    let server = KeyServer::start_at(&site, port, &[]);
    crate::support::eventually("the server is not used", || {
        assert!(curl(&site, &gateway, 0, &[]).0);
        server.process.metric("quadrille_keyserver_operations_total", &["result=\"ok\""]) > 0.0
    });
}

#[test]
fn flags_do_for_a_gateway_without_a_key() {
    let site = Site::new();
    let pair = site.certificates.ecdsa("P-256", &["localhost"]);
    site.give_away(&pair, "site");
    let server = KeyServer::start(&site, &[]);
    let mut command = crate::support::serve();
    command
        .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--respond", "right", "--cert"])
        .arg(&pair.chain);
    command.args(["--key-server", &server.name(), "--key-server-ca"]).arg(site.certificates.ca());
    command.arg("--key-server-cert").arg(&site.gateway.chain).arg("--key-server-key").arg(&site.gateway.key);
    let gateway = Gateway::start(command, 1);
    assert_eq!(curl(&site, &gateway, 0, &[]), (true, "right".into()));
}

#[test]
fn what_is_missing_is_named() {
    let site = Site::new();
    let pair = site.certificates.ecdsa("P-256", &["localhost"]);
    let file = site.certificates.path("q.yaml");
    let say = |key: &str| {
        std::fs::write(&file, document(&[site.listener(&pair.chain, key, "")], "")).expect("writing");
        let (ok, said) = output(crate::support::quadrille("check").arg(&file));
        assert!(!ok, "{key}: {said}");
        said
    };
    assert!(say("{keyless: {servers: [localhost]}}").contains("mutual TLS"));
    assert!(say("{keyless: {servers: []}}").contains("the list is empty"));
    assert!(say("{keyless: {servers: ['a:b:c d']}}").contains("is not a key server"));
    let wrong = format!("{{keyless: {{servers: ['unix:/x'], fallback: {}}}}}", site.gateway.key.display());
    assert!(say(&wrong).contains("does not match the certificate"), "{}", say(&wrong));
    let good = format!("{{keyless: {{servers: ['unix:/x'], fallback: {}}}}}", pair.key.display());
    std::fs::write(&file, document(&[site.listener(&pair.chain, &good, "")], "")).expect("writing");
    succeed(crate::support::quadrille("check").arg(&file));
}
