//! Key servers that crash, hang and recover under load.

use super::{PATIENT, progress, under_load};
use crate::support::{Gateway, KeyServer, PATIENCE, Site, eventually, output, ports};
use std::process::Command;

/// Starts a gateway with an RSA certificate, and two servers for its key.
struct Pair {
    site: Site,
    servers: [KeyServer; 2],
    gateway: Gateway,
    _file: crate::support::Configuration,
}

impl Pair {
    fn start(keys: &str) -> Self {
        let site = Site::new();
        let pair = site.certificates.rsa(2048, &["localhost"]);
        site.give_away(&pair, "site");
        let servers = [KeyServer::start(&site, &[]), KeyServer::start(&site, &[])];
        let names: Vec<String> = servers.iter().map(KeyServer::name).collect();
        let (gateway, file) = site.serve(&[site.listener(&pair.chain, &site.keyless(&names, keys), PATIENT)]);
        Self { site, servers, gateway, _file: file }
    }
}

fn failures(gateway: &Gateway) -> f64 {
    gateway.metric("quadrille_handshake_failures_total", &["reason=\"key_server\""])
}

/// Waits until the gateway uses this server again, with this many successful handshakes.
fn wait_until_used(gateway: &Gateway, server: &KeyServer) {
    let name = format!("server=\"{}\"", server.name());
    eventually("the server is not used again", || {
        gateway.metric("quadrille_keyless_server_up", &[&name]) == 1.0
    });
}

#[test]
fn one_of_two_servers_is_killed_and_no_client_notices() {
    let Pair { site, mut servers, mut gateway, _file } = Pair::start("timeout: 160s");
    let answered = under_load(&site, &gateway, |load| {
        for round in 0..4 {
            let victim = round % 2;
            let port = servers[victim].port;
            servers[victim].process.signal("KILL");
            servers[victim].process.wait(PATIENCE).expect("its end");
            progress(load, 60);
            servers[victim] = KeyServer::start_at(&site, port, &[]);
            // Otherwise the next round would kill the only one.
            wait_until_used(&gateway, &servers[victim]);
            progress(load, 60);
        }
    });
    assert_eq!(failures(&gateway), 0.0, "{}", gateway.log());
    assert!(answered > 400, "{answered}");
    gateway.wait_for_log("key server is lost");
}

#[test]
fn a_server_that_is_stopped_in_its_tracks_costs_time_and_no_handshake() {
    let pair = Pair::start("timeout: 160s");
    let victim = &pair.servers[0].process;
    under_load(&pair.site, &pair.gateway, |load| {
        for _ in 0..2 {
            victim.signal("STOP");
            progress(load, 60);
            victim.signal("CONT");
            progress(load, 40);
        }
    });
    assert_eq!(failures(&pair.gateway), 0.0, "{}", pair.gateway.log());
}

#[test]
fn a_server_that_drains_is_left_in_time() {
    let Pair { site, mut servers, gateway, _file } = Pair::start("timeout: 160s");
    let port = servers[0].port;
    under_load(&site, &gateway, |load| {
        for _ in 0..2 {
            servers[0].process.signal("TERM");
            servers[0].process.wait(PATIENCE).expect("its end");
            progress(load, 30);
            servers[0] = KeyServer::start_at(&site, port, &[]);
            progress(load, 30);
        }
    });
    assert_eq!(failures(&gateway), 0.0, "{}", gateway.log());
}

#[test]
fn without_any_server_handshakes_fail_in_time_with_an_alert_and_then_recover() {
    let site = Site::new();
    let rsa = site.certificates.rsa(2048, &["localhost"]);
    site.give_away(&rsa, "site");
    let port = ports::free();
    let server = KeyServer::start_at(&site, port, &[]);
    let key = site.keyless(&[format!("localhost:{port}")], "timeout: 2s");
    let (mut gateway, _file) = site.serve(&[site.listener(&rsa.chain, &key, PATIENT)]);
    let address = gateway.address(0).to_string();
    let handshake = |version: &str| {
        let script = format!(
            "timeout 300 openssl s_client -connect {address} -servername localhost {version} </dev/null 2>&1"
        );
        output(Command::new("sh").args(["-c", &script])).1
    };
    let versions = ["-tls1_2", "-tls1_3"];
    assert!(versions.iter().all(|version| handshake(version).contains("Cipher is ")), "before");
    server.process.signal("KILL");
    gateway.wait_for_log("no key server is reachable");
    for version in versions {
        // Well before the handshake timeout.
        let said = handshake(version);
        assert!(said.contains("alert internal error"), "{version}: {said}");
    }
    let [failed, unavailable] = ["reason=\"key_server\"", "reason=\"unavailable\""];
    gateway.wait_for_metric("quadrille_handshake_failures_total", &[failed], |count| count == 2.0);
    gateway.wait_for_metric("quadrille_keyless_failures_total", &[unavailable], |count| count == 2.0);
    drop(server);
    let _server = KeyServer::start_at(&site, port, &[]);
    eventually("it does not recover", || handshake("-tls1_3").contains("Cipher is TLS_"));
    gateway.wait_for_log("key server is up");
}

#[test]
fn a_handshake_that_begins_while_the_only_server_restarts_waits_for_it() {
    let site = Site::new();
    let rsa = site.certificates.rsa(2048, &["localhost"]);
    site.give_away(&rsa, "site");
    let port = ports::free();
    let mut server = KeyServer::start_at(&site, port, &[]);
    let key = site.keyless(&[format!("localhost:{port}")], "timeout: 160s");
    let (gateway, _file) = site.serve(&[site.listener(&rsa.chain, &key, PATIENT)]);
    under_load(&site, &gateway, |load| {
        server.process.signal("KILL");
        server.process.wait(PATIENCE).expect("its end");
        server = KeyServer::start_at(&site, port, &[]);
        progress(load, 30);
    });
    assert_eq!(gateway.metric("quadrille_handshake_failures_total", &["reason=\"key_server\""]), 0.0);
}
