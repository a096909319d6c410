//! `quadrille bench` against the gateway: its results match the peer's, and its errors are specific.

use crate::support::{Certificates, Gateway, eventually, output, quadrille};
use serde_json::Value;
use std::{
    net::TcpListener,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

fn gateway(certificates: &Certificates, flags: &[&str]) -> Gateway {
    Gateway::with_flags(&certificates.ecdsa("P-256", &["localhost"]), &[&["--respond", "ok"], flags].concat())
}

fn bench(gateway: &Gateway, arguments: &[&str]) -> Command {
    let mut command = quadrille("bench");
    command.arg(format!("https://localhost:{}/", gateway.port()));
    command.args(["--connect", &format!("127.0.0.1:{}", gateway.port())]).args(arguments);
    command
}

fn json(command: &mut Command) -> Value {
    let done = command.arg("--json").output().expect("quadrille bench");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).expect("JSON and nothing else")
}

fn refused(command: &mut Command) -> String {
    let (done, text) = output(command);
    assert!(!done, "{text}");
    text
}

#[test]
fn counts_agree_with_the_gateways_own() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, &[]);
    let ca = certificates.ca();
    let ca = ca.to_str().expect("a path in UTF-8");
    let common = ["--ca", ca, "--count", "200", "--connections", "4"];
    for tls in ["1.2", "1.3"] {
        let before =
            |session| gateway.metric("quadrille_handshakes_total", &[&format!("TLSv{tls}"), session]);
        let (full, resumed) = (before("full"), before("resumed"));
        let seen = json(bench(&gateway, &common).args(["--tls", tls, "--resumed", "0.5"]));
        assert_eq!(seen["failed"], 0, "{seen}");
        assert_eq!(seen["full"].as_u64().unwrap() + seen["resumed"].as_u64().unwrap(), 200, "{seen}");
        let share = seen["resumed"].as_u64().unwrap();
        assert!((80..=100).contains(&share), "TLS {tls}: half of the connections offer a session: {seen}");
        // The connection before the load, which verifies the certificate, is a full handshake too.
        assert_eq!(before("full") - full, seen["full"].as_f64().unwrap() + 1.0, "{}", gateway.metrics());
        assert_eq!(before("resumed") - resumed, seen["resumed"].as_f64().unwrap(), "{}", gateway.metrics());
        assert_eq!(seen["negotiated"][0]["version"], format!("TLSv{tls}"));
        let latency = |percentile: &str| seen["latency_us"][percentile].as_u64().expect("a number");
        assert!(0 < latency("p50") && latency("p50") <= latency("p90") && latency("p99") <= latency("p999"));
        assert!(
            seen["handshakes_per_second"].as_f64().unwrap() > 0.0
                && seen["bytes_received"].as_u64() > Some(200)
        );
    }
}

#[test]
fn the_file_of_cas_is_read_to_its_end() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, &[]);
    let file = certificates.path("marked.pem");
    let ca = std::fs::read_to_string(certificates.ca()).expect("a CA certificate");
    std::fs::write(&file, format!("\u{feff}{ca}")).expect("writing");
    let arguments = ["--ca", file.to_str().expect("UTF-8"), "--count", "2", "--connections", "1"];
    assert_eq!(json(&mut bench(&gateway, &arguments))["failed"], 0);
    std::fs::write(&file, format!("{ca}-----BEGIN CERTIFICATE-----\n")).expect("writing");
    let said = refused(&mut bench(&gateway, &arguments));
    assert!(said.contains("BEGIN CERTIFICATE without END"), "{said}");
}

#[test]
fn text_and_picture_for_people() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, &[]);
    let picture = certificates.path("latency.svg");
    let began = Instant::now();
    let mut command =
        bench(&gateway, &["--insecure", "--rate", "100", "--count", "50", "--requests", "3", "--svg"]);
    let (done, text) = output(command.arg(&picture));
    assert!(done, "{text}");
    assert!(text.contains("handshakes/s: ") && text.contains(" full, 0 resumed, 0 failed in "), "{text}");
    assert!(text.contains("p999") && text.contains("TLSv1.3"), "{text}");
    let svg = std::fs::read_to_string(picture).expect("a picture");
    assert!(svg.starts_with("<svg ") && svg.contains("<polyline"), "{svg}");
    let made: u64 =
        text.split("s: ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).expect("a number");
    assert!((49..=50).contains(&made), "{text}");
    assert!(
        began.elapsed() >= Duration::from_millis(450),
        "fifty, a hundred a second: {:?}",
        began.elapsed()
    );
}

#[test]
fn interrupting_keeps_what_was_measured() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, &[]);
    let mut command = bench(&gateway, &["--insecure", "--duration", "3600", "--json"]);
    let child = command.stdout(Stdio::piped()).spawn().expect("quadrille bench");
    gateway.wait_for_metric("quadrille_handshakes_total", &[], |count| count > 20.0);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    let done = child.wait_with_output().expect("its end");
    let seen: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert!(done.status.success() && seen["full"].as_u64() >= Some(10), "{seen}");
}

#[test]
fn what_is_wrong_is_said_with_the_remedy() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, &["--tls-min", "1.3"]);
    let untrusted = refused(&mut bench(&gateway, &["--count", "1"]));
    assert!(untrusted.contains("not trusted") && untrusted.contains("--insecure"), "{untrusted}");
    let version = refused(&mut bench(&gateway, &["--count", "1", "--insecure", "--tls", "1.2"]));
    assert!(version.contains("handshake failed") && version.contains("Offered: TLS 1.2"), "{version}");
    let group = refused(&mut bench(&gateway, &["--count", "1", "--insecure", "--groups", "P-1"]));
    assert!(group.contains("`P-1`"), "{group}");
    let endless = refused(&mut bench(&gateway, &["--insecure"]));
    assert!(endless.contains("--duration") && endless.contains("required"), "{endless}");
    let ticketless = refused(&mut bench(&gateway, &["--count", "1", "--resumed", "1", "--requests", "0"]));
    assert!(ticketless.contains("--requests 1"), "{ticketless}");

    let absent = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let url = |text: &str| refused(quadrille("bench").args([text, "--count", "1", "--insecure"]));
    assert!(url(&format!("https://{absent}/")).contains("refused"));
    assert!(url("http://localhost/").contains("https://HOST"));
    assert!(url("https://no-such-host.invalid/").contains("cannot resolve no-such-host.invalid"));
}

#[test]
fn running_out_of_file_descriptors_is_a_kind_of_failure() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, &[]);
    let line = format!(
        "ulimit -n 40 && exec {} bench https://localhost:{port}/ --connect 127.0.0.1:{port} --insecure --requests 200 --connections 200 --duration 2 --json",
        env!("CARGO_BIN_EXE_quadrille"),
        port = gateway.port()
    );
    // On a busy machine, two seconds may be too short for this failure, or for any handshake, without which the command
    // fails.
    eventually("no such failure", || {
        let done = Command::new("sh").args(["-c", &line]).output().expect("quadrille bench");
        let seen: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
        seen["full"].as_u64() > Some(0) && seen["failures"].to_string().contains("ulimit -n")
    });
}

/// The server stops during the run: results until then are kept, and failures are counted by kind.
#[test]
fn a_server_that_dies_is_reported() {
    let certificates = Certificates::new();
    let mut seconds = 2;
    // On a busy machine, the load may be over before the server goes away.
    eventually("no failure", || {
        let gateway = gateway(&certificates, &[]);
        let duration = seconds.to_string();
        seconds *= 2;
        let arguments = ["--insecure", "--duration", &duration, "--connections", "4", "--json"];
        let mut child = bench(&gateway, &arguments).stdout(Stdio::piped()).spawn().expect("quadrille bench");
        eventually("few handshakes", || {
            let is_over = child.try_wait().expect("waiting").is_some();
            is_over || gateway.metric("quadrille_handshakes_total", &[]) > 20.0
        });
        drop(gateway);
        let done = child.wait_with_output().expect("its end");
        let seen: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        assert!(done.status.success() && seen["full"].as_u64() > Some(0), "{seen}");
        seen["failed"].as_u64() > Some(0) && seen["failures"].to_string().contains("refused")
    });
}

/// A server that refuses connections gives each of them back at once; the load still ends when it is interrupted.
#[test]
fn an_interruption_ends_a_load_whose_server_refuses_connections() {
    let certificates = Certificates::new();
    let gateway = gateway(&certificates, &[]);
    let arguments = ["--insecure", "--duration", "3600", "--connections", "4", "--json"];
    let mut child = bench(&gateway, &arguments).stdout(Stdio::piped()).spawn().expect("quadrille bench");
    gateway.wait_for_metric("quadrille_handshakes_total", &[], |count| count > 20.0);
    drop(gateway);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
    eventually("the load does not end", || child.try_wait().expect("waiting").is_some());
    let done = child.wait_with_output().expect("its output");
    let seen: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert!(done.status.success() && seen["full"].as_u64() > Some(0), "{seen}");
}
