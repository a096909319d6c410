//! A running `quadrille serve`.

use super::{PATIENCE, Pair, clock::Clock, logs};
use std::{
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// A running gateway or key server; killed when dropped.
pub struct Gateway {
    child: Child,
    listeners: Vec<SocketAddr>,
    admin: Option<String>,
    log: Arc<Mutex<String>>,
    /// The process that took over most recently.
    successor: Option<u32>,
}

impl Gateway {
    /// Starts a gateway with one certificate and these further flags, on free ports.
    pub fn with_flags(pair: &Pair, flags: &[&str]) -> Self {
        Self::with_command(serve(), pair, flags)
    }

    /// Starts a gateway with a clock that is ahead. The library for this is written to `directory`.
    pub fn ahead(seconds: u32, directory: &Path, pair: &Pair, flags: &[&str]) -> Self {
        Self::with_command(serve_ahead(seconds, directory), pair, flags)
    }

    fn with_command(mut command: Command, pair: &Pair, flags: &[&str]) -> Self {
        command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--cert"]).arg(&pair.chain);
        command.arg("--key").arg(&pair.key).args(flags);
        if !flags.contains(&"--lame-duck") {
            command.args(["--lame-duck", "0"]);
        }
        Self::start(command, 1)
    }

    /// Starts a gateway with a configuration file that has `listeners` listeners. Use port 0 for free ports.
    pub fn with_config(file: &Path, listeners: usize) -> Self {
        let mut command = serve();
        command.arg("--config").arg(file);
        Self::start(command, listeners)
    }

    /// Starts any `quadrille serve` command, and waits until `listeners` listeners are open.
    pub fn start(mut command: Command, listeners: usize) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("starting quadrille");
        let stderr = child.stderr.take().expect("a pipe");
        let log = Arc::new(Mutex::new(String::new()));
        let copy = Arc::clone(&log);
        let subcommand = command.get_args().next().map(|name| name.to_string_lossy().into_owned());
        let mut file = logs::create(&format!("quadrille-{}", subcommand.unwrap_or_default()));
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _ = writeln!(file, "{line}");
                let mut log = copy.lock().expect("the log");
                log.push_str(&line);
                log.push('\n');
            }
        });
        let mut gateway = Self { child, listeners: Vec::new(), admin: None, log, successor: None };
        gateway.wait_until("its listeners", |gateway| gateway.read_addresses() >= listeners);
        gateway
    }

    /// Returns the port of the first listener.
    pub fn port(&self) -> u16 {
        self.address(0).port()
    }

    /// Returns the address of a listener, in the configuration's order.
    pub fn address(&self, index: usize) -> SocketAddr {
        self.listeners[index]
    }

    /// Returns the URL of an admin page.
    pub fn admin(&self, path: &str) -> String {
        format!("{}{path}", self.admin.as_ref().expect("an admin endpoint"))
    }

    /// Returns the text of an admin page, which must exist.
    pub fn admin_page(&self, path: &str) -> String {
        let url = self.admin(path);
        super::succeed(Command::new("curl").args(["-sS", "--fail", "--globoff", "--max-time", "180", &url]))
    }

    /// Returns the admin endpoint's metrics.
    pub fn metrics(&self) -> String {
        self.admin_page("/metrics")
    }

    /// Returns the sum over all series of a metric whose line contains all `labels`.
    pub fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let matches = |line: &&str| {
            let series = line.split([' ', '{']).next();
            series == Some(name) && labels.iter().all(|label| line.contains(label))
        };
        let value = |line: &str| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
        self.metrics().lines().filter(matches).filter_map(value).sum()
    }

    /// Waits until a metric has a value; prints all metrics on failure.
    #[track_caller]
    pub fn wait_for_metric(&self, name: &str, labels: &[&str], done: impl Fn(f64) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !done(self.metric(name, labels)) {
            assert!(Instant::now() < end, "waited for {name} {labels:?}: {}", self.metrics());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("the log").clone()
    }

    /// Waits until the log contains this.
    #[track_caller]
    pub fn wait_for_log(&mut self, text: &str) {
        self.wait_until(&format!("{text:?} in the log"), |gateway| gateway.log().contains(text));
    }

    /// Returns the process id, for /proc and signals.
    pub fn pid(&self) -> u32 {
        self.successor.unwrap_or_else(|| self.child.id())
    }

    /// Triggers a takeover by a new process, and waits until it serves. The previous process drains.
    pub fn take_over(&mut self) {
        const DONE: &str = "a new process has taken over pid=";
        let before = self.log().matches(DONE).count();
        self.signal("USR2");
        super::eventually("no process takes over", || self.log().matches(DONE).count() > before);
        let log = self.log();
        let pid = log.rsplit(DONE).next().and_then(|rest| rest.lines().next()).expect("its process id");
        self.successor = Some(pid.parse().expect("a number"));
    }

    /// Sends a signal by its name, such as HUP.
    pub fn signal(&self, name: &str) {
        super::succeed(Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]));
    }

    /// Waits for the process to end by itself.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + limit;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("waiting") {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        None
    }

    #[track_caller]
    fn wait_until(&mut self, what: &str, done: impl Fn(&mut Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !done(self) {
            let ended = self.child.try_wait().expect("waiting");
            // The last lines may have been written since.
            let over = ended.is_some() && !done(self);
            assert!(!over && Instant::now() < end, "waited for {what}: {ended:?}\n{}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn read_addresses(&mut self) -> usize {
        let log = self.log();
        let fields = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok();
        let after = |line: &str, mark: &str| Some(line.split_once(mark)?.1.trim().to_owned());
        let listener = |line: &str| match fields(line) {
            Some(fields) => fields["address"].as_str()?.parse().ok(),
            None => {
                let keys = || after(line, "serving keys address=");
                let plain = || after(line, "serving plain text address=");
                after(line, "serving HTTPS address=").or_else(plain).or_else(keys)?.parse().ok()
            }
        };
        let admin = |line: &str| match fields(line) {
            Some(fields) => after(fields["message"].as_str()?, "metrics at "),
            None => after(line, "metrics at "),
        };
        self.listeners = log.lines().filter_map(listener).collect();
        self.admin = log.lines().find_map(admin).map(|url| url.trim_end_matches("/metrics").to_owned());
        self.listeners.len()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(pid) = self.successor {
            // The process may have ended by itself.
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).stderr(Stdio::null()).status();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the command `quadrille serve`.
pub fn serve() -> Command {
    quadrille("serve")
}

/// Returns `quadrille serve` with a clock that is ahead. The library for this is written to `directory`.
pub fn serve_ahead(seconds: u32, directory: &Path) -> Command {
    let clock = Clock::new(directory);
    clock.runs_ahead(seconds.into());
    clock.serve()
}

/// Returns a subcommand of the binary under test.
pub fn quadrille(subcommand: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quadrille"));
    command.arg(subcommand);
    command
}

/// Returns the resident memory of a process in KiB.
pub fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its size");
    line.trim().trim_end_matches(" kB").trim().parse().expect("a number")
}
