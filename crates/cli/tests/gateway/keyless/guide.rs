//! The guide's commands, unmodified.

use crate::support::{PATIENCE, logs, ports};
use std::{
    path::Path,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

const GUIDE: &str = include_str!("../../../../../docs/guide/keyless.md");

/// Maximum number of commands in the guide.
const MOST_COMMANDS: usize = 9;

#[test]
fn the_guide_leads_to_a_gateway_without_a_key() {
    let commands = commands();
    assert!((5..=MOST_COMMANDS).contains(&commands.len()), "{} commands", commands.len());
    let directory = tempfile::tempdir().expect("a directory");
    let binary = Path::new(env!("CARGO_BIN_EXE_quadrille")).parent().expect("a directory");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").expect("a path"));
    // Tests run in parallel: the ports of the guide may be in use.
    let ports = ["2407", "2406", "8443", "9901"].map(|port| (port, ports::free().to_string()));
    let mut background = Vec::new();
    let mut last = String::new();
    for command in &commands {
        let text = ports.iter().fold(command.clone(), |text, (port, free)| text.replace(port, free));
        let mut shell = Command::new("bash");
        shell.args(["-e", "-c"]).env("PATH", &path).current_dir(directory.path());
        match text.strip_suffix('&') {
            Some(server) => {
                let child = shell.arg(format!("exec {server}")).stderr(logs::create("server")).spawn();
                background.push(Server(child.expect("starting")));
            }
            None => last = patiently(|| shell_output(shell.arg(&text))),
        }
    }
    assert!(last.contains("Hello from a gateway without a key"), "{last}");
    assert!(!directory.path().join("site.key").exists(), "the gateway's side still has the key");
}

/// Returns the shell commands of the guide, with continued lines joined.
fn commands() -> Vec<String> {
    let mut commands = Vec::new();
    let mut blocks = GUIDE.split("```");
    while let (Some(_), Some(code)) = (blocks.next(), blocks.next()) {
        let Some(lines) = code.strip_prefix("sh\n") else { continue };
        let joined = lines.replace("\\\n", " ");
        commands.extend(joined.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned));
    }
    commands
}

/// Runs a server command, and waits until it can be reached.
fn patiently(mut run: impl FnMut() -> (bool, String)) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let (ok, said) = run();
        if ok {
            return said;
        }
        assert!(Instant::now() < end, "{said}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn shell_output(command: &mut Command) -> (bool, String) {
    crate::support::output(command)
}

/// A process that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
