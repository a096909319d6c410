//! A running `quadrille keyserver`, and a site with its keys.

use super::{Certificates, Configuration, Gateway, Pair, configuration, ports, quadrille};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A running key server; killed when dropped.
pub struct KeyServer {
    pub process: Gateway,
    pub port: u16,
}

impl KeyServer {
    /// Serves the site's keys on this port, with further flags.
    pub fn start_at(site: &Site, port: u16, flags: &[&str]) -> Self {
        Self::run(site.command(), port, flags)
    }

    /// Runs a command of [`Site::command`] on this port, with further flags.
    pub fn run(mut command: Command, port: u16, flags: &[&str]) -> Self {
        command.args(["--listen", &format!("127.0.0.1:{port}"), "--admin", "127.0.0.1:0"]).args(flags);
        Self { process: Gateway::start(command, 1), port }
    }

    pub fn start(site: &Site, flags: &[&str]) -> Self {
        Self::start_at(site, ports::free(), flags)
    }

    /// Returns its name in a gateway's configuration: its certificate is for localhost.
    pub fn name(&self) -> String {
        format!("localhost:{}", self.port)
    }
}

/// Certificates, a directory with keys for the key server, and the gateway's client certificate.
pub struct Site {
    pub certificates: Certificates,
    pub server: Pair,
    pub gateway: Pair,
}

impl Site {
    pub fn new() -> Self {
        let certificates = Certificates::new();
        std::fs::create_dir(certificates.path("keys")).expect("a directory");
        let server = certificates.ecdsa("P-256", &["localhost", "keys.example"]);
        let gateway = certificates.ecdsa("P-256", &["gateway.example"]);
        Self { certificates, server, gateway }
    }

    /// Returns the key server's directory.
    pub fn keys(&self) -> PathBuf {
        self.certificates.path("keys")
    }

    /// Moves a pair's key to the key server under this name.
    pub fn give_away(&self, pair: &Pair, name: &str) -> PathBuf {
        let file = self.keys().join(format!("{name}.pem"));
        std::fs::rename(&pair.key, &file).expect("moving the key");
        file
    }

    /// Returns `quadrille keyserver` without a listener.
    pub fn command(&self) -> Command {
        self.command_of(&self.keys())
    }

    /// Returns `quadrille keyserver` with this directory of keys, without a listener.
    pub fn command_of(&self, keys: &Path) -> Command {
        let mut command = quadrille("keyserver");
        command.arg("--keys").arg(keys).arg("--client-ca").arg(self.certificates.ca());
        command.arg("--cert").arg(&self.server.chain).arg("--key").arg(&self.server.key);
        command
    }

    /// Returns the `key` of a certificate for these key servers, in YAML's flow style.
    pub fn keyless(&self, servers: &[String], keys: &str) -> String {
        let (ca, gateway) = (self.certificates.ca(), &self.gateway);
        format!(
            "{{keyless: {{servers: [{}], ca: {}, certificate: {}, key: {}, {keys}}}}}",
            servers.iter().map(|server| format!("'{server}'")).collect::<Vec<_>>().join(", "),
            ca.display(),
            gateway.chain.display(),
            gateway.key.display()
        )
    }

    /// Returns a listener on a free port with a certificate whose key is on key servers.
    pub fn listener(&self, chain: &Path, key: &str, keys: &str) -> String {
        let chain = chain.display();
        format!(
            "{{address: \"127.0.0.1:0\", certificates: [{{chain: {chain}, key: {key}}}], respond: right, {keys}}}"
        )
    }

    /// Starts a gateway with these listeners.
    pub fn serve(&self, listeners: &[String]) -> (Gateway, Configuration) {
        let file = Configuration::new(&configuration::document(listeners, ""));
        (Gateway::with_config(&file.path(), listeners.len()), file)
    }

    /// Returns the flags of `ping` and `sign` for this gateway.
    pub fn as_gateway(&self, command: &mut Command) {
        command.arg("--ca").arg(self.certificates.ca());
        command.arg("--cert").arg(&self.gateway.chain).arg("--key").arg(&self.gateway.key);
    }
}
