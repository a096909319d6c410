//! Flags of the key server.

use crate::{
    flags::{self, AdminFlag},
    logging::Logging,
};
use quadrille_config::{
    Problem, enums,
    model::{AccessLog, BackendChoice, EngineSettings, KeyServer, Listen, Place, Source, UnixAccess},
    values,
};
use quadrille_gateway::{KeyServerBound, serve_keys};
use std::{net::SocketAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

#[derive(clap::Args)]
pub(super) struct Serve {
    /// Directory of private keys, each in an unencrypted PEM file, or the pkcs11: URI of one in a token.
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
    /// Address that gateways connect to: address:port (usually port 2407), or unix:/path. May be repeated.
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    listen: Vec<Listen>,
    /// Shorthand for --listen unix:PATH, for servers on this machine, which need no certificates. The kernel
    /// identifies the peer's user. Without --policy, only this user and root may connect; with it, members of
    /// --unix-group too.
    #[arg(long, value_name = "PATH")]
    unix: Vec<PathBuf>,
    /// Group of Unix sockets, by name or number: with --policy, its members may connect [default: the process's].
    #[arg(long, value_name = "GROUP")]
    unix_group: Option<String>,
    /// Mode of Unix sockets, in octal [default: 0660 with --policy, 0600 without].
    #[arg(long, value_name = "MODE", value_parser = values::file_mode)]
    unix_mode: Option<u32>,
    /// CA certificates in PEM that verify the gateways' certificates.
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Certificate revocation lists in PEM, of all CAs of --client-ca: revoked certificates are refused, and their
    /// open connections are closed.
    #[arg(long, value_name = "FILE")]
    client_crl: Option<PathBuf>,
    /// The key server's own certificate chain in PEM, leaf first.
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// The private key for --cert.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Policy in YAML: the clients, keys and operations allowed (see docs/reference/key-policy.md).
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Metrics and health, in plain HTTP: an address or off.
    #[arg(long, value_name = "ADDRESS", value_parser = flags::admin, default_value = "127.0.0.1:2406")]
    admin: AdminFlag,
    /// Event-loop threads [default: one for every eight CPUs].
    #[arg(long, value_name = "N", value_parser = values::count)]
    threads: Option<NonZeroUsize>,
    /// Backend for private-key operations: auto, gpu (auto, but do not start without one), lanes (no GPU) or scalar.
    #[arg(long, value_name = "BACKEND", value_parser = enums::word::<BackendChoice>, default_value = "auto")]
    backend: BackendChoice,
    /// Compute threads [default: one for each CPU].
    #[arg(long, value_name = "N", value_parser = values::count)]
    compute_threads: Option<NonZeroUsize>,
    /// Maximum time that a drain waits for pending operations.
    #[arg(long, value_name = "TIME", value_parser = values::timeout, default_value = "10s")]
    drain_timeout: Duration,
    #[command(flatten)]
    logging: Logging,
}

impl Serve {
    pub(super) fn run(self) -> Result<(), Vec<String>> {
        let logging = self.logging.clone();
        let model = self.into_model()?;
        let _guard = logging.start(&AccessLog::Off, None)?;
        serve_keys(model, announce)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    fn into_model(self) -> Result<KeyServer, Vec<String>> {
        let mut problems = Vec::new();
        if self.keys.is_none() {
            problems.push("--keys is missing; for example: --keys /etc/quadrille/keys".to_owned());
        }
        let unix = self.unix.into_iter().map(|path| (Listen::Unix(path), Place::flag("--unix")));
        let listen: Vec<_> =
            self.listen.into_iter().map(|listen| (listen, Place::flag("--listen"))).chain(unix).collect();
        if listen.is_empty() {
            problems.push("--listen is missing; for example: --listen 0.0.0.0:2407".to_owned());
        }
        let over_tcp = listen.iter().any(|(listen, _)| matches!(listen, Listen::Tcp(_)));
        let tls = [(&self.cert, "--cert"), (&self.key, "--key"), (&self.client_ca, "--client-ca")];
        let some = tls.iter().any(|(file, _)| file.is_some());
        for (_, flag) in tls.iter().filter(|(file, _)| (over_tcp || some) && file.is_none()) {
            problems.push(format!("{flag} is missing; mutual TLS needs --cert, --key and --client-ca"));
        }
        if self.client_crl.is_some() && self.client_ca.is_none() {
            problems.push("--client-crl needs --client-ca".to_owned());
        }
        let sources = tls.map(|(file, flag)| Some((Source::File(file.clone()?), Place::flag(flag))));
        if !problems.is_empty() {
            return Err(problems);
        }
        let [certificate, key, ca] = sources;
        let tls = certificate.zip(key).zip(ca).map(|((certificate, key), ca)| [certificate, key, ca]);
        let engine = EngineSettings {
            backend: self.backend,
            threads: self.compute_threads,
            // The key server itself performs few handshakes.
            key_exchange: false,
            ..EngineSettings::default()
        };
        Ok(KeyServer {
            keys: (self.keys.unwrap_or_default(), Place::flag("--keys")),
            listen,
            unix_access: UnixAccess { group: self.unix_group, mode: self.unix_mode },
            tls,
            client_crl: self.client_crl.map(|file| (Source::File(file), Place::flag("--client-crl"))),
            policy: self.policy,
            admin: self.admin.into_model(),
            threads: self.threads,
            engine,
            drain_timeout: self.drain_timeout,
        })
    }
}

fn listen(text: &str) -> Result<Listen, Problem> {
    match text.strip_prefix("unix:") {
        Some("") => {
            Err(Problem::new("the path of the socket is missing", "write unix:/run/quadrille/keys.sock"))
        }
        Some(path) => Ok(Listen::Unix(path.into())),
        None => values::listen_address(text).map(|address: SocketAddr| Listen::Tcp(address)),
    }
}

fn announce(bound: &KeyServerBound) {
    if let Some(address) = bound.admin {
        tracing::info!("metrics at http://{address}/metrics");
    }
    for address in &bound.listeners {
        tracing::info!(%address, "serving keys");
    }
}
