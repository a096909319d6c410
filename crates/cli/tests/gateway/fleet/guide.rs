//! The commands of the guide page, unmodified.

use crate::support::missing;
use std::{
    path::Path,
    process::{Command, Stdio},
};

const PAGE: &str = include_str!("../../../../../docs/guide/fleet-resumption.md");

/// Returns the page's shell blocks, in order.
fn commands() -> String {
    let mut blocks = PAGE.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let first = blocks.next().expect("a block of commands");
    blocks.fold(first.to_owned(), |script, block| script + block)
}

#[test]
fn the_guides_commands_do_what_it_says() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let quadrille = Path::new(env!("CARGO_BIN_EXE_quadrille")).parent().expect("a directory");
    let path = format!("{}:{}", quadrille.display(), std::env::var("PATH").unwrap_or_default());
    // Replaces a manual step: end the started processes by their ids.
    let script = format!("set -e\ntrap 'kill $(jobs -p)' EXIT\n{}", commands());
    let mut command = Command::new("bash");
    command.arg("-c").arg(script).env("PATH", path).current_dir(directory.path()).stdin(Stdio::null());
    let output = command.output().unwrap_or_else(|error| missing(&command, &error));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{complained}");
    let resumed = said.lines().filter(|line| line.starts_with("Reused, ")).count();
    assert_eq!(resumed, 3, "TLS 1.3, a ticket, a session id\n{said}\n{complained}");
    assert!(said.contains("current   encrypts since"), "{said}");
}
