//! Envoy's command-line arguments and shutdown.

use super::{certificates, with_common};
use crate::support::{Configuration, Gateway, curl, eventually, output, succeed};
use std::{net::TcpStream, process::Command};

const KEY_IN_A_FILE: &str = include_str!("../../../../envoy/src/tests/published/key-in-a-file.yaml");

/// Arguments as passed by Istio's agent.
const ARGUMENTS: &[&str] = &[
    "--drain-time-s",
    "45",
    "--drain-strategy",
    "immediate",
    "--local-address-ip-version",
    "v4",
    "--file-flush-interval-msec",
    "1000",
    "--disable-hot-restart",
    "--allow-unknown-static-fields",
    "-l",
    "info",
    "--component-log-level",
    "misc:error",
    "--log-format",
    "%Y-%m-%dT%T.%fZ\t%l\tenvoy %n %g:%#\t%v\tthread=%t",
    "--skip-deprecated-logs",
    "--concurrency",
    "2",
];

fn envoys(file: &Configuration) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quadrille"));
    command.arg("-c").arg(file.path());
    command
}

fn post(gateway: &Gateway, path: &str, more: &[&str]) -> String {
    succeed(Command::new("curl").args(["-sS", "-X", "POST"]).args(more).arg(gateway.admin(path)))
}

#[test]
fn it_serves_and_ends() {
    let (certificates, pair) = certificates();
    let file = Configuration::new(&with_common(KEY_IN_A_FILE, &pair));
    let mut command = envoys(&file);
    command.args(ARGUMENTS);
    let mut gateway = Gateway::start(command, 1);
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "ok");
    let configuration: serde_json::Value =
        serde_json::from_str(&gateway.admin_page("/config")).expect("JSON");
    assert_eq!(configuration["threads"], 2);
    assert_eq!(gateway.admin_page("/ready"), "LIVE\n");
    assert_eq!(post(&gateway, "/drain_listeners?skip_exit", &[]), "skip_exit requires graceful\n");
    // A page of another site may make a browser send this.
    assert!(
        post(&gateway, "/quitquitquit", &["-H", "Origin: https://site.example"])
            .contains("but not change anything")
    );
    assert_eq!(post(&gateway, "/drain_listeners?graceful", &[]), "OK\n");
    let headers = curl(&gateway, &certificates, &["--http1.1", "-o", "/dev/null", "-D", "-"], "/");
    assert!(headers.to_lowercase().contains("connection: close"), "{headers}");
    let address = gateway.address(0);
    assert_eq!(post(&gateway, "/drain_listeners", &[]), "OK\n");
    eventually("the listener is still open", || TcpStream::connect(address).is_err());
    assert_eq!(gateway.admin_page("/ready"), "LIVE\n", "the process keeps running, as Envoy does");
    assert_eq!(post(&gateway, "/quitquitquit", &[]), "OK\n");
    let status = gateway.wait(crate::support::PATIENCE).expect("the end");
    assert!(status.success(), "{status}");
}

#[test]
fn a_bootstrap_is_validated() {
    let (_certificates, pair) = certificates();
    let file = Configuration::new(&with_common(KEY_IN_A_FILE, &pair));
    let (good, said) = output(envoys(&file).args(["--mode", "validate"]));
    assert!(good && said.ends_with("ok (1 listener, 0 upstreams)\n"), "{said}");
    file.replace("static_resources: { listeners: [ {} ] }");
    let (good, said) = output(envoys(&file).args(["--mode", "validate"]));
    assert!(!good && said.contains("`address` is missing"), "{said}");
}
