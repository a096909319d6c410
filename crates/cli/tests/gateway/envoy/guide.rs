//! The commands of the guide page, unmodified.

use crate::support::{missing, ports};
use std::{
    path::Path,
    process::{Command, Stdio},
};

const PAGE: &str = include_str!("../../../../../docs/guide/envoy.md");

#[test]
fn the_guides_commands_do_what_it_says() {
    let blocks = PAGE.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let script = format!("set -e\ntrap 'kill $(jobs -p)' EXIT\n{}", blocks.collect::<String>());
    // Tests run in parallel: the ports of the guide may be in use.
    let script =
        ["8443", "9901"].iter().fold(script, |text, port| text.replace(port, &ports::free().to_string()));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let quadrille = Path::new(env!("CARGO_BIN_EXE_quadrille")).parent().expect("a directory");
    let path = format!("{}:{}", quadrille.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.arg("-c").arg(script).env("PATH", path).current_dir(directory.path()).stdin(Stdio::null());
    let output = command.output().unwrap_or_else(|error| missing(&command, &error));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    for line in [
        "bootstrap.yaml: ok (1 listener, 0 upstreams)",
        "Hello from Envoy's configuration",
        "ssl.handshake: 1",
        "cryptomb.rsa_queue_sizes: P0(nan,1)",
        "ingress gateway istio-ingressgateway in istio-system: cryptomb, pollDelay 1ms",
        "replaces the mesh's default (cryptomb, pollDelay 10ms)",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
}
