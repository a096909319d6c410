//! A gateway of its own with a load on it, to be sampled.

use crate::{bench::share, rsa_key};
use clap::ValueEnum;
use quadrille_profile::load::{Live, Load, LoadError, Offer, Outcome, TlsVersion};
use rcgen::{CertificateParams, KeyPair};
use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

const CONNECTIONS: usize = 32;
const START_TIME: Duration = Duration::from_secs(20);
/// Time limit of the load, in case the gateway stops responding.
const LONGEST: Duration = Duration::from_secs(900);

/// Load for a gateway that the command starts, used if there is no server to sample.
#[derive(clap::Args)]
#[command(next_help_heading = "Built-in gateway and load")]
pub(super) struct OwnLoad {
    /// Key type of the gateway's certificate.
    #[arg(long, value_enum, default_value = "rsa2048", conflicts_with_all = ["pid", "listens_on"])]
    key: Key,
    /// The TLS version.
    #[arg(long, value_name = "VERSION", default_value = "1.3", conflicts_with_all = ["pid", "listens_on"])]
    tls: TlsVersion,
    /// Key exchange groups that the client offers, colon-separated.
    #[arg(long, value_name = "GROUPS", default_value = "X25519", conflicts_with_all = ["pid", "listens_on"])]
    groups: String,
    /// Share of connections that offer an earlier session, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share,
          conflicts_with_all = ["pid", "listens_on"])]
    resumed: f64,
    /// Requests on each connection.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..),
          conflicts_with_all = ["pid", "listens_on"])]
    requests: u32,
    /// Backend for private-key operations: auto or scalar.
    #[arg(long, value_enum, default_value = "auto", conflicts_with_all = ["pid", "listens_on"])]
    backend: Backend,
}

/// Key types.
#[derive(Clone, Copy, ValueEnum)]
enum Key {
    Rsa2048,
    Rsa4096,
    P256,
}

/// `--backend` of `quadrille serve`.
#[derive(Clone, Copy, ValueEnum)]
enum Backend {
    Auto,
    Scalar,
}

/// A gateway in a child process, and a load in a thread of this process.
pub(super) struct SampleLoad {
    gateway: Gateway,
    stop: Arc<AtomicBool>,
    load: JoinHandle<Result<Outcome, LoadError>>,
    what: String,
}

impl SampleLoad {
    /// Starts both, and returns when the load is running.
    pub(super) fn start(own: &OwnLoad, directory: &Path) -> Result<Self, String> {
        let (chain, key) = certificate(own.key, directory)?;
        let gateway = Gateway::start(own, &chain, &key)?;
        let load = Load {
            offer: Offer::new(own.tls, &own.groups),
            resumed: own.resumed,
            connections: CONNECTIONS,
            requests: own.requests,
            count: u64::MAX,
            time_limit: LONGEST,
            ..Load::new(gateway.address, "localhost")
        };
        gateway.wait_until_it_answers(&load)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let load = thread::spawn(move || load.watched(&Live::default(), &stopped));
        let key = match own.key {
            Key::Rsa2048 => "RSA-2048",
            Key::Rsa4096 => "RSA-4096",
            Key::P256 => "P-256",
        };
        let backend = if matches!(own.backend, Backend::Scalar) { ", scalar backend" } else { "" };
        let what = format!("a built-in gateway: TLS {}, {key}, {}{backend}", own.tls, own.groups);
        Ok(Self { gateway, stop, load, what })
    }

    pub(super) fn process(&self) -> u32 {
        self.gateway.child.id()
    }

    /// Stops both, and returns a summary.
    pub(super) fn finish(self) -> Result<String, String> {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.load.join().map_err(|_| "the load generator has crashed".to_owned())?;
        let seen = seen.map_err(|error| error.to_string())?;
        if seen.ok == 0 {
            return Err(format!(
                "the load failed: {}",
                seen.failure().unwrap_or_else(|| "no response".to_owned())
            ));
        }
        Ok(format!(
            "{}: {} full and {} resumed handshakes, {:.0} a second",
            self.what,
            seen.full(),
            seen.resumed,
            seen.per_second()
        ))
    }
}

struct Gateway {
    child: Child,
    address: SocketAddr,
}

impl Gateway {
    fn start(own: &OwnLoad, chain: &Path, key: &Path) -> Result<Self, String> {
        let cannot = |error: std::io::Error| format!("cannot start a gateway: {error}");
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| listener.local_addr())
            .map_err(cannot)?;
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        command.args(["serve", "--listen", &address.to_string(), "--respond", "ok", "--admin", "off"]);
        command.arg("--cert").arg(chain).arg("--key").arg(key).args(["--threads", "1"]);
        command.args(["--backend", if matches!(own.backend, Backend::Scalar) { "scalar" } else { "auto" }]);
        if own.resumed == 0.0 {
            command.args(["--session-tickets", "off", "--session-cache", "off"]);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Self { child: child.map_err(cannot)?, address })
    }

    fn wait_until_it_answers(&self, load: &Load) -> Result<(), String> {
        let once = Load { connections: 1, count: 1, time_limit: Duration::from_secs(1), ..load.clone() };
        let deadline = Instant::now() + START_TIME;
        loop {
            let seen = once.run().map_err(|error| error.to_string())?;
            if seen.ok == 1 {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("the gateway does not respond: {}", seen.failure().unwrap_or_default()));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn certificate(key: Key, directory: &Path) -> Result<(PathBuf, PathBuf), String> {
    let make = || -> Result<(String, String), Box<dyn std::error::Error>> {
        let key = match key {
            Key::P256 => KeyPair::generate()?,
            Key::Rsa2048 => rsa_key::generate(2048)?,
            Key::Rsa4096 => rsa_key::generate(4096)?,
        };
        let certificate = CertificateParams::new(["localhost".to_owned()])?.self_signed(&key)?;
        Ok((certificate.pem(), key.serialize_pem()))
    };
    let (certificate, key) = make().map_err(|error| format!("cannot make a certificate: {error}"))?;
    let files = (directory.join("chain.pem"), directory.join("key.pem"));
    let write = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    // Only this user can read the directory, and the key is temporary.
    write(&files.0, &certificate)?;
    write(&files.1, &key)?;
    Ok(files)
}
