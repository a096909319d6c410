//! `quadrille profile system` against a gateway under load: the expected classes are present, and errors are
//! reported.
//!
//! Where perf cannot be used, these tests print a note and check the error message instead.

use crate::support::{Certificates, Gateway, logs, output, quadrille};
use serde_json::Value;
use std::{
    io::Write,
    net::TcpListener,
    process::{Child, Command, Stdio},
};

/// A load that ends by itself or with the test.
struct Bench(Child);

impl Bench {
    fn on(gateway: &Gateway, arguments: &[&str]) -> Self {
        let mut command = quadrille("bench");
        command.arg(format!("https://localhost:{}/", gateway.port()));
        command.args(["--connect", &format!("127.0.0.1:{}", gateway.port()), "--insecure"]);
        command.args(["--duration", "60", "--connections", "8"]).args(arguments);
        Self(
            command
                .stdout(Stdio::null())
                .stderr(logs::create("quadrille-bench"))
                .spawn()
                .expect("quadrille bench"),
        )
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the reason why sampling is impossible, if it is.
fn no_perf() -> Option<String> {
    let mut probe = Command::new("perf");
    probe.args(["record", "--quiet", "--event", "cpu-clock", "--output", "/dev/null", "--", "true"]);
    match probe.output() {
        Ok(done) if done.status.success() => None,
        Ok(done) => Some(String::from_utf8_lossy(&done.stderr).into_owned()),
        Err(error) => Some(error.to_string()),
    }
}

/// Prints the reason, bypassing the output capture of tests, because the test passes.
fn skipped(why: &str) {
    let why = why.lines().next().unwrap_or_default();
    let _ = writeln!(std::io::stderr(), "SKIPPED: perf cannot be used here, so nothing is sampled: {why}");
}

fn profile(arguments: &[&str]) -> Command {
    let mut command = quadrille("profile");
    command.arg("system").args(arguments);
    command
}

fn json(command: &mut Command) -> Value {
    let done = command.arg("--json").output().expect("quadrille profile system");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).expect("JSON and nothing else")
}

/// Returns whether the test can continue. If not, checks that the command's error contains advice.
fn can_sample(gateway: &Gateway) -> bool {
    let Some(why) = no_perf() else { return true };
    skipped(&why);
    let (done, text) = output(&mut profile(&["--seconds", "1", "--pid", &gateway.pid().to_string()]));
    assert!(
        !done && (text.contains("apt-get install linux-perf") || text.contains("perf_event_paranoid")),
        "{text}"
    );
    false
}

#[test]
fn a_gateway_that_signs_with_rsa_is_seen_to() {
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["localhost"]);
    let gateway = Gateway::with_flags(&pair, &["--respond", "ok", "--backend", "scalar"]);
    if !can_sample(&gateway) {
        return;
    }
    let _load = Bench::on(&gateway, &["--tls", "1.2", "--groups", "X25519"]);
    let svg = certificates.path("flame.svg");
    let admin = gateway.admin("").trim_start_matches("http://").to_owned();
    let seen = json(profile(&["--seconds", "3", "--listens-on", &admin, "--svg"]).arg(&svg));
    assert!(seen["samples"].as_u64() > Some(20), "{seen}");
    let share = |class: &str| seen["shares"][class].as_f64().expect("a share");
    // One scalar private-key operation takes more than all the rest; here unoptimised code adds to that.
    assert!(share("rsa") > 0.2, "{seen}");
    assert!(share("unknown") < 0.1, "the binary has names for its functions: {seen}");
    let sum: f64 = seen["shares"].as_object().expect("shares").values().filter_map(Value::as_f64).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{seen}");
    let picture = std::fs::read_to_string(svg).expect("a flame graph");
    assert!(
        picture.starts_with("<svg ") && picture.contains("SSL_do_handshake"),
        "names of functions in boxes"
    );
}

#[test]
fn a_gateway_and_a_load_of_its_own() {
    if let Some(why) = no_perf() {
        return skipped(&why);
    }
    let seen = json(&mut profile(&["--seconds", "2", "--key", "p256", "--tls", "1.3"]));
    let what = seen["what"].as_str().expect("a description");
    assert!(what.contains("TLS 1.3, P-256") && what.contains(" full and 0 resumed handshakes"), "{what}");
    let share = |class: &str| seen["shares"][class].as_f64().expect("a share");
    assert!(share("elliptic-curve") > 0.02 && share("tls") > 0.02, "{seen}");
    assert!(share("rsa") < share("elliptic-curve") / 2.0, "resumed handshakes have no signature: {seen}");
}

#[test]
fn what_cannot_be_sampled_is_said() {
    if no_perf().is_none() {
        let absent = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = absent.expect("a free port").to_string();
        let (done, text) = output(&mut profile(&["--listens-on", &address]));
        assert!(!done && text.contains(&format!("no process listens on {address}")), "{text}");
        let (done, text) = output(&mut profile(&["--pid", "4194305"]));
        assert!(!done && text.contains("there is no process 4194305"), "{text}");
    }
    let (done, text) = output(profile(&["--seconds", "1"]).env("PATH", "/nonexistent"));
    assert!(!done && text.contains("apt-get install linux-perf"), "{text}");
    let (done, text) = output(&mut profile(&["--pid", "1", "--key", "p256"]));
    assert!(!done && text.contains("cannot be used with"), "{text}");
}
