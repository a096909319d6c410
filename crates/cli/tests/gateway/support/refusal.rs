//! `quadrille serve` with input that it must reject.

use super::{PATIENCE, serve};
use std::{
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Runs a command that must end with exit code 2; returns its output on both streams.
#[track_caller]
pub fn refused(command: &mut Command) -> String {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starting quadrille");
    let end = Instant::now() + PATIENCE;
    let served = loop {
        match child.try_wait().expect("waiting") {
            Some(_) => break false,
            None if Instant::now() > end => break true,
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    if served {
        child.kill().expect("ending quadrille");
    }
    let output = child.wait_with_output().expect("reading the output");
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(!served, "{command:?} was served\n{text}");
    assert_eq!(output.status.code(), Some(2), "{command:?}\n{text}");
    assert!(!text.contains("panicked"), "{command:?}\n{text}");
    text
}

/// Serves a configuration file that must be rejected; returns the output.
#[track_caller]
pub fn refused_file(file: &Path, content: &str) -> String {
    std::fs::write(file, content).expect("writing the configuration");
    refused(serve().arg("--config").arg(file))
}

/// Returns the lines of a PEM file that must not appear in output.
pub fn secrets_of(key: &Path) -> Vec<String> {
    let pem = String::from_utf8_lossy(&std::fs::read(key).expect("reading the key")).into_owned();
    pem.lines().filter(|line| line.len() > 20 && !line.starts_with("-----")).map(str::to_owned).collect()
}
