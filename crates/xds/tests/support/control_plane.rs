//! A real control plane, `tests/control-plane`: built by Go into the target directory, and controlled over stdin.

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Condvar, Mutex, OnceLock},
    time::{Duration, Instant},
};

/// A running control plane, which is stopped on drop.
pub(crate) struct ControlPlane {
    process: Child,
    stdin: ChildStdin,
    /// Address on which it listens: `127.0.0.1:PORT`, or the socket's path.
    pub(crate) address: String,
    heard: Arc<Heard>,
}

/// Lines that the control plane has written, by kind.
#[derive(Default)]
struct Heard {
    lines: Mutex<Lines>,
    more: Condvar,
}

#[derive(Default)]
struct Lines {
    answers: Vec<Value>,
    requests: Vec<Value>,
    listening: Option<String>,
}

const PATIENCE: Duration = Duration::from_secs(180);

impl ControlPlane {
    /// Starts a control plane; returns `None`, and prints a message, if Go is not installed.
    pub(crate) fn start(arguments: &[&str]) -> Option<Self> {
        let program = program()?;
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the control plane has just been built");
        let stdin = process.stdin.take().expect("the control plane");
        let stdout = BufReader::new(process.stdout.take().expect("the control plane"));
        let heard = Arc::new(Heard::default());
        let listener = heard.clone();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                listener.hear(serde_json::from_str(&line).expect("the control plane"));
            }
        });
        let address = heard.wait("an address", |lines| lines.listening.clone());
        Some(Self { process, stdin, address, heard })
    }

    /// Serves these resources: `version`, and lists of `clusters`, `endpoints`, `listeners`, `routes`, `secrets` in
    /// protobuf's JSON.
    pub(crate) fn set(&mut self, resources: &Value) {
        let before = self.heard.lines.lock().expect("the control plane").answers.len();
        let line = json!({ "set": resources }).to_string() + "\n";
        self.stdin.write_all(line.as_bytes()).expect("the control plane");
        let answer = self.heard.wait("a response", |lines| lines.answers.get(before).cloned());
        assert_eq!(answer, json!({ "done": true }), "the control plane rejects its resources");
    }

    /// Waits for a request with this property. Requests before the `from`th do not count.
    pub(crate) fn wait(&self, what: &str, from: usize, fits: impl Fn(&Value) -> bool) -> Value {
        self.heard.wait(what, |lines| {
            lines.requests[from.min(lines.requests.len())..].iter().find(|r| fits(r)).cloned()
        })
    }

    /// Returns the number of requests received.
    pub(crate) fn requests(&self) -> usize {
        self.heard.lines.lock().expect("the control plane").requests.len()
    }

    /// Returns all requests.
    #[allow(dead_code)] // not in every test that includes this file
    pub(crate) fn log(&self) -> Vec<Value> {
        self.heard.lines.lock().expect("the control plane").requests.clone()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Heard {
    fn hear(&self, mut line: Value) {
        let mut lines = self.lines.lock().expect("the control plane");
        if let Some(address) = line["listening"].as_str() {
            lines.listening = Some(address.to_owned());
        } else if line["request"].is_object() {
            lines.requests.push(line["request"].take());
        } else {
            lines.answers.push(line);
        }
        self.more.notify_all();
    }

    fn wait<T>(&self, what: &str, look: impl Fn(&Lines) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut lines = self.lines.lock().expect("the control plane");
        loop {
            if let Some(found) = look(&lines) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "no {what} from or at the control plane; requests: {:#?}",
                lines.requests
            );
            lines = self.more.wait_timeout(lines, left).expect("the control plane").0;
        }
    }
}

/// Builds the program once for each test run; Go determines whether a rebuild is necessary.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM
        .get_or_init(|| {
            if Command::new("go").arg("version").output().is_err() {
                // Written directly to stderr, past the test harness's capture, since a skipped test passes.
                let _ = writeln!(
                    std::io::stderr(),
                    "SKIPPED: Go is required to build the control plane; install Go 1.23 or later"
                );
                return None;
            }
            // Placed next to the test's executable, so in the target directory; the lock serialises the tests'
            // processes.
            let program = std::env::current_exe().expect("the control plane").with_file_name("control-plane");
            let lock = std::fs::File::create(program.with_extension("lock")).expect("the control plane");
            lock.lock().expect("the control plane");
            let built = Command::new("go")
                .args(["build", "-o"])
                .arg(&program)
                .arg(".")
                .current_dir("../xds/tests/control-plane")
                .output()
                .expect("the control plane");
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            Some(program)
        })
        .as_deref()
}
