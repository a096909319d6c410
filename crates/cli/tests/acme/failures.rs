//! Failures of the authority: existing certificates stay in use.

use crate::{
    authority::{Behaviour, Pebble, leaf, shown, wait_for_certificate},
    front::https_before,
    support::{Certificates, Gateway, clock::Clock, output, process::serve_ahead, quadrille, throughout},
};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
    time::Duration,
};

#[test]
fn an_authority_that_is_down_longer_than_the_certificate_should_have_lasted_is_an_alert_and_no_outage() {
    const DAY: i64 = 24 * 3600;
    let behaviour = Behaviour { life: 9 * 24 * 3600, ..Behaviour::default() };
    let Some(mut pebble) = Pebble::start(&behaviour) else { return };
    let clock = Clock::new(&pebble.path(""));
    let mut command = clock.serve();
    command.arg("--config").arg(pebble.configuration("{ names: [down.example.com] }", ""));
    let mut gateway = Gateway::start(command, 1);
    let root = pebble.root();
    let first = wait_for_certificate(&gateway, &root, "down.example.com", &[]);
    pebble.stop();
    clock.runs_ahead(8 * DAY);
    gateway.wait_for_metric("quadrille_acme_certificates", &["late"], |value| value == 1.0);
    gateway.wait_for_log("less than a third of its lifetime is left");
    gateway.wait_for_log("cannot reach the certificate authority");
    let still = shown(gateway.address(0), &root, "down.example.com", &[]).expect("the old one serves");
    assert_eq!(leaf(&first), leaf(&still));
    // The restarted authority has no account and another root.
    pebble.run(&behaviour);
    let root = pebble.root();
    // Orders are retried each hour.
    clock.runs_ahead(8 * DAY + 3600);
    gateway.wait_for_log("does not know the account");
    clock.runs_ahead(8 * DAY + 2 * 3600);
    let second = wait_for_certificate(&gateway, &root, "down.example.com", &[]);
    assert_ne!(leaf(&first), leaf(&second));
}

/// If a name cannot be validated, the authority's error is logged, and the order is not retried at once.
#[test]
fn the_authoritys_error_is_logged() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    // No server listens on the validation port.
    let file = pebble.configuration("{ names: [unreachable.example.com] }", "");
    let text = fs::read_to_string(&file).expect("the configuration");
    fs::write(&file, text.replace(&format!(":{}\n", pebble.tls_port), ":0\n")).expect("writing");
    let mut gateway = Gateway::with_config(&file, 1);
    gateway.wait_for_log("the certificate authority rejects the request");
    let log = gateway.log();
    assert!(log.contains("unreachable.example.com: ") && log.contains("Failed to connect"), "{log}");
    let again = log.split("again_in_s=").nth(1).and_then(|rest| rest.split_whitespace().next());
    let again: u32 = again.and_then(|seconds| seconds.parse().ok()).expect("the time of the next attempt");
    assert!((60..=75).contains(&again), "{again}");
    gateway.wait_for_metric("quadrille_acme_orders_total", &["failed"], |value| value == 1.0);
}

/// Starts an HTTPS server that responds to every request with these bytes.
fn nonsense(certificates: &Certificates, answer: &'static [u8]) -> u16 {
    let inner = TcpListener::bind("127.0.0.1:0").expect("a port");
    let behind = inner.local_addr().expect("an address");
    thread::spawn(move || {
        for mut stream in inner.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer);
        }
    });
    https_before(certificates, behind)
}

#[test]
fn an_authority_that_answers_nonsense_harms_nothing() {
    let answers: [&[u8]; 5] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nno JSON!!",
        b"\x00\xff\x16\x03\x01 nothing that is HTTP",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 503 Busy\r\nRetry-After: 7777\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 503 Busy\r\nDate: Sun, 06 Nov 1994 08:00:00 GMT\r\nRetry-After: Sun, 06 Nov 1994 10:09:37 GMT\r\n\
          Content-Length: 0\r\n\r\n",
    ];
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["localhost"]);
    for answer in answers {
        let port = nonsense(&certificates, answer);
        let directory = tempfile::tempdir().expect("a directory");
        let state = directory.path().join("state");
        let file = directory.path().join("quadrille.yaml");
        let text = format!(
            "admin: 127.0.0.1:0\nacme: {{ directory: \"https://localhost:{port}/dir\", ca_file: {}, state: {} }}\n\
             listeners:\n  - address: 127.0.0.1:0\n    certificates: [ {{ chain: {}, key: {} }}, {{ acme: {{ names: \
             [a.example.com] }} }} ]\n    respond: hello\n",
            certificates.ca().display(),
            state.display(),
            pair.chain.display(),
            pair.key.display(),
        );
        fs::write(&file, text).expect("writing");
        let mut gateway = Gateway::with_config(&file, 1);
        gateway.wait_for_log("no certificate could be ordered");
        shown(gateway.address(0), &certificates.ca(), "localhost", &[])
            .expect("the existing certificate is served");
        let log = gateway.log();
        if answer.starts_with(b"HTTP/1.1 503") {
            assert!(log.contains("again_in_s=7777"), "{log}");
        }
        assert!(!log.contains("panicked"), "{log}");
    }
}

/// Every certificate has expired for such a clock when it is issued. It is ordered only once.
#[test]
fn a_clock_that_is_an_hour_ahead_costs_no_further_orders() {
    let behaviour = Behaviour { life: 1800, ..Behaviour::default() };
    let Some(pebble) = Pebble::start(&behaviour) else { return };
    let mut command = serve_ahead(3600, &pebble.path(""));
    command.arg("--config").arg(pebble.configuration("{ names: [ahead.example.com] }", ""));
    let mut gateway = Gateway::start(command, 1);
    gateway.wait_for_log("the clock of this machine is wrong");
    wait_for_certificate(&gateway, &pebble.root(), "ahead.example.com", &[]);
    gateway.wait_for_metric("quadrille_acme_certificates", &["late"], |value| value == 1.0);
    // Due orders are checked every second.
    throughout(Duration::from_secs(5), "it is ordered again", || pebble.issued() == 1);
}

#[test]
fn a_check_reads_the_files_of_the_account() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("mac"), "not base64url!").expect("writing");
    fs::write(path("hook"), "#!/bin/sh\n").expect("writing");
    fs::write(path("ca"), "no certificate").expect("writing");
    let check = |mac: &str, hook: &str, ca: &str| {
        let text = format!(
            "acme:\n  state: {}\n  challenges: [dns-01]\n  dns_hook: {}\n  ca_file: {}\n  external_account:\n    id: \
             kid\n    key_file: {}\n  on_demand: {{ ask: \"https://service.example/\", ca_file: {} }}\nlisteners:\n  - \
             address: 127.0.0.1:0\n    certificates: [ {{ acme: {{ names: [a.example.com] }} }} ]\n    respond: hello\n",
            path("state"),
            path(hook),
            path(ca),
            path(mac),
            path(ca),
        );
        fs::write(path("quadrille.yaml"), text).expect("writing");
        output(quadrille("check").arg(path("quadrille.yaml")))
    };
    for (names, expected) in [
        (["gone", "gone", "gone"], ["No such file", "No such file", "does not exist"]),
        (["mac", "hook", "ca"], ["not executable", "no PEM certificates", "not a base64url-encoded key"]),
    ] {
        let [mac, hook, ca] = names;
        let (passed, said) = check(mac, hook, ca);
        assert!(!passed, "{said}");
        let keys = [
            (4, "dns_hook", 0),
            (5, "ca_file", 1),
            (8, "external_account.key_file", 2),
            (9, "on_demand.ca_file", 1),
        ];
        for (line, key, at) in keys {
            let place = format!("quadrille.yaml:{line}: acme.{key}: ");
            let found =
                said.lines().find(|text| text.contains(&place)).unwrap_or_else(|| panic!("{place}: {said}"));
            assert!(found.contains(expected[at]), "{found}");
        }
        assert!(!said.contains("not base64url!"), "{said}");
    }
    assert!(!directory.path().join("state").exists());
}

#[test]
fn an_account_belongs_to_the_one_that_the_authority_wants() {
    const KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let behaviour = Behaviour { external_account: Some(("kid-1", KEY)), ..Behaviour::default() };
    let Some(pebble) = Pebble::start(&behaviour) else { return };
    let file = pebble.configuration("{ names: [bound.example.com] }", "");
    let plain = fs::read_to_string(&file).expect("the configuration");
    let mut without = Gateway::with_config(&file, 1);
    without.wait_for_log("the certificate authority rejects the request");
    assert!(without.log().contains("externalAccountRequired"), "{}", without.log());
    without.wait_for_metric("quadrille_acme_orders_total", &["failed"], |value| value == 1.0);
    drop(without);
    fs::remove_file(pebble.state().join("progress.json")).expect("removing");
    let key = pebble.path("mac.key");
    let account = format!("acme: {{ external_account: {{ id: kid-1, key_file: {} }}, email", key.display());
    fs::write(&file, plain.replace("acme: { email", &account)).expect("writing");
    fs::write(&key, format!("{KEY}\n")).expect("writing");
    let gateway = Gateway::with_config(&file, 1);
    wait_for_certificate(&gateway, &pebble.root(), "bound.example.com", &[]);
    assert!(!gateway.log().contains(KEY));
}
