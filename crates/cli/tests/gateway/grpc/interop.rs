//! gRPC's own server and client in Go: its interoperability tests and its health service.

use crate::support::{Certificates, Gateway, Pair};
use std::{
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::OnceLock,
};

/// A server of the interoperability tests; it ends with the test.
pub(crate) struct Server {
    child: Child,
    commands: ChildStdin,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts the server; `None` if Go is not installed.
    pub(crate) fn start(pair: Option<&Pair>) -> Option<Self> {
        let mut command = Command::new(program()?);
        command.arg("server");
        if let Some(pair) = pair {
            command.arg("-cert").arg(&pair.chain).arg("-key").arg(&pair.key);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("its address");
        let commands = child.stdin.take().expect("a pipe");
        Some(Self { child, commands, address: line.trim().parse().expect("its address") })
    }

    /// Sets a service, or with an empty name the whole server, to `SERVING` or `NOT_SERVING`.
    pub(crate) fn set(&mut self, service: &str, state: &str) {
        writeln!(self.commands, "{service}={state}").expect("the server");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs these cases against the gateway; each must pass.
pub(crate) fn pass(gateway: &Gateway, certificates: &Certificates, cases: &[&str]) {
    let mut command = Command::new(program().expect("the server was built"));
    command.args(["client", "-server", &gateway.address(0).to_string(), "-ca"]).arg(certificates.ca());
    let (good, said) = crate::support::output(command.args(cases));
    assert!(good, "{said}\n{}", gateway.log());
}

/// Builds the program once for each test run; Go skips unchanged builds.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM
        .get_or_init(|| {
            if Command::new("go").arg("version").output().is_err() {
                // Bypasses the output capture of tests, because a skipped test passes.
                let _ = writeln!(std::io::stderr(), "SKIPPED: no Go to build gRPC's client and server with");
                return None;
            }
            // Built in the target directory, by one test process at a time.
            let program = std::env::current_exe().expect("the tests").with_file_name("grpc-interop");
            let lock = std::fs::File::create(program.with_extension("lock")).expect("a lock");
            lock.lock().expect("a lock");
            let mut build = Command::new("go");
            let built = build
                .args(["build", "-o"])
                .arg(&program)
                .arg(".")
                .current_dir("tests/gateway/grpc/interop")
                .output();
            let built = built.expect("Go");
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            Some(program)
        })
        .as_deref()
}
