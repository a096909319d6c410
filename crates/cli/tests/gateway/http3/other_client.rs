//! aioquic, a QUIC implementation independent of quiche: its requests, and protocol violations.

use super::Served;
use crate::support::{echo_server, output};
use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const SCRIPT: &str = "tests/gateway/http3/other_client.py";

/// Returns a Python with aioquic. If it cannot be installed, prints the reason and returns `None`.
fn python() -> Option<PathBuf> {
    let installed = Command::new("bash")
        .args(["../../scripts/install-tools.sh", "aioquic"])
        .stderr(Stdio::inherit())
        .output()
        .expect("bash");
    if !installed.status.success() {
        // Bypasses the output capture of tests, because a skipped test passes.
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: aioquic cannot be installed from the Python package index");
        return None;
    }
    Some(Path::new(String::from_utf8_lossy(&installed.stdout).trim()).join("python"))
}

/// Returns the client's output for an action, with a gateway that responds with `hi` and echoes bodies on `/echo`.
fn said(python: &Path, served: &Served, what: &str) -> String {
    let mut command = Command::new(python);
    command.arg(SCRIPT).arg(served.gateway.address(0).to_string()).arg(served.certificates.ca()).arg(what);
    let (good, said) = output(&mut command);
    assert!(good, "{what}: {said}");
    said
}

fn served() -> Served {
    let upstream = format!("echo: {{servers: [\"{}\"]}}", echo_server());
    Served::new("routes: [{path: /echo, upstream: echo}], respond: hi", &upstream)
}

#[test]
fn it_is_answered_as_every_client() {
    let Some(python) = python() else { return };
    let served = served();
    assert_eq!(
        said(&python, &served, "requests").lines().collect::<Vec<_>>(),
        [
            "get: 200 hi",
            "echo: 200 True",
            "after a key update: 200 hi",
            "after another connection id: 200 hi",
            "at once: {('200', b'hi')}",
        ]
    );
    assert_eq!(said(&python, &served, "resumption").trim(), "resumed: True 200 hi");
}

/// The codes are in RFC 9000 section 20.1.
#[test]
fn flow_control_violations_close_the_connection() {
    let Some(python) = python() else { return };
    let mut served = served();
    let wrong: Vec<_> = [
        ("stream_data", "0x3"),
        ("connection_data", "0x3"),
        ("streams", "0x4"),
        ("final_size", "0x6"),
        ("handshake_data", "0xd"),
        ("acknowledgement", "0xa"),
    ]
    .into_iter()
    .filter_map(|(rule, code)| {
        let told = said(&python, &served, rule);
        (told.trim() != code).then(|| format!("{rule}: {} instead of {code}", told.trim()))
    })
    .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(served.connect().get("/").text(), "hi", "other clients are served");
    served.gateway.wait_for_metric("quadrille_connections", &[], |open| open <= 1.0);
}
