//! A Redis server on its own port.

use super::{Pair, eventually, logs, missing, ports, succeed};
use std::{
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// A running redis-server; killed when dropped.
pub struct Redis {
    directory: TempDir,
    port: u16,
    child: Child,
    flags: Vec<String>,
}

impl Redis {
    pub fn start() -> Self {
        let this = Self::on_port("--port", &[]);
        this.wait();
        this
    }

    /// Starts Redis with TLS only, and this certificate for localhost.
    pub fn with_tls(pair: &Pair, ca: &Path) -> Self {
        let [chain, key, ca] = [&pair.chain, &pair.key, ca].map(|file| file.display().to_string());
        let tls = ["--port", "0", "--tls-cert-file", &chain, "--tls-key-file", &key];
        let clients = ["--tls-ca-cert-file", &ca, "--tls-auth-clients", "no"];
        let this = Self::on_port("--tls-port", &[&tls[..], &clients].concat());
        eventually("redis listens", || TcpStream::connect(("127.0.0.1", this.port)).is_ok());
        this
    }

    /// Starts three masters of a cluster.
    pub fn cluster() -> [Self; 3] {
        let nodes = [(); 3].map(|()| {
            let bus = ports::free().to_string();
            let node = Self::on_port("--port", &["--cluster-enabled", "yes", "--cluster-port", &bus]);
            node.wait();
            node
        });
        let addresses = nodes.each_ref().map(|node| format!("127.0.0.1:{}", node.port));
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]).args(&addresses).args(["--cluster-yes"]);
        succeed(&mut create);
        for node in &nodes {
            eventually("the cluster is ready", || {
                node.cli(&["cluster", "info"]).contains("cluster_state:ok")
            });
        }
        nodes
    }

    fn on_port(flag: &str, flags: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let port = ports::free();
        let mut flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        flags.extend([flag.to_owned(), port.to_string()]);
        let child = spawn(&directory, &flags);
        Self { directory, port, child, flags }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Returns the output of redis-cli.
    pub fn cli(&self, arguments: &[&str]) -> String {
        succeed(Command::new("redis-cli").args(["-p", &self.port.to_string()]).args(arguments))
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("killing redis");
        self.child.wait().expect("waiting for redis");
    }

    /// Restarts it, empty, on the same port.
    pub fn restart(&mut self) {
        self.child = spawn(&self.directory, &self.flags);
        self.wait();
    }

    /// Sends a signal: after STOP, connections open without responses, until CONT.
    pub fn signal(&self, name: &str) {
        succeed(Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]));
    }

    fn wait(&self) {
        eventually("redis responds", || {
            let ping = Command::new("redis-cli").args(["-p", &self.port.to_string(), "ping"]).output();
            ping.is_ok_and(|output| output.stdout.starts_with(b"PONG"))
        });
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(directory: &TempDir, flags: &[String]) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
    command.args(flags).arg("--dir").arg(directory.path());
    command.stdout(logs::create("redis-server")).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| missing(&command, &error))
}
