//! The servers: how each is configured for a scenario, and which version it is.
//!
//! Every one gets one worker, the same key, no log, and otherwise its own defaults. The configuration files are in
//! `bench/handshakes/rivals`.

mod keyless;
mod provider;
mod quadrille;
pub(crate) mod template;
mod version;

use std::{
    ffi::OsString,
    fmt, fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};
use clap::ValueEnum;

pub use self::provider::Provider;
use self::template::configuration;
use crate::{certificate::CertificateFiles, scenario::Resumption};
use quadrille_profile::load::TlsVersion;

/// A server that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rival {
    /// nginx.
    Nginx,
    /// HAProxy.
    Haproxy,
    /// Envoy.
    Envoy,
    /// This project's gateway.
    Quadrille,
    /// The same without the key, which a key server on the client's core holds: not counted.
    Keyless,
    /// hitch, which ends TLS and passes bytes on.
    Hitch,
    /// HAProxy doing the same: `mode tcp`.
    HaproxyTcp,
    /// This project's gateway doing the same: `--mode tcp`.
    QuadrilleTcp,
}

/// What a server does with the request; only servers with the same job are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Understands HTTP, and answers by itself where it may.
    Answer,
    /// Ends TLS and passes bytes on to an upstream.
    PassOn,
}

impl Job {
    /// In the order of the report.
    pub const ALL: [Self; 2] = [Self::Answer, Self::PassOn];

    /// The servers that ratios are taken to.
    pub fn baselines(self) -> [Rival; 2] {
        match self {
            Self::Answer => [Rival::Nginx, Rival::Envoy],
            Self::PassOn => [Rival::Hitch, Rival::HaproxyTcp],
        }
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "HTTP, answered by the server itself",
            Self::PassOn => "TLS ended, bytes passed on to one plain upstream",
        })
    }
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Envoy => "envoy",
            Self::Quadrille => "quadrille",
            Self::Keyless => "keyless",
            Self::Hitch => "hitch",
            Self::HaproxyTcp => "haproxy-tcp",
            Self::QuadrilleTcp => "quadrille-tcp",
        })
    }
}

/// What a server is set up for.
#[derive(Debug)]
pub struct Setup<'a> {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where a second process listens, for those that need one.
    pub beside: SocketAddr,
    /// The only TLS version it accepts.
    pub version: TlsVersion,
    /// Its key and certificate.
    pub certificate: &'a CertificateFiles,
    /// Connections it must be able to hold.
    pub connections: usize,
    /// A place for its files.
    pub directory: &'a Path,
    /// Whether it resumes sessions.
    pub resumption: Resumption,
    /// The plain HTTP server behind it; without one it answers `ok` by itself.
    pub upstream: Option<SocketAddr>,
    /// Its worker processes, for servers that have such.
    pub workers: usize,
    /// What its OpenSSL loads, for servers that have one.
    pub provider: Option<&'a Provider>,
}

/// A second process that a server needs.
#[derive(Debug)]
pub struct Beside {
    /// Its program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Whether its work is the server's, and stands on the server's core.
    pub counts: bool,
}

impl Rival {
    /// What it does with the request.
    pub fn job(self) -> Job {
        match self {
            Self::Nginx | Self::Haproxy | Self::Envoy | Self::Quadrille | Self::Keyless => Job::Answer,
            Self::Hitch | Self::HaproxyTcp | Self::QuadrilleTcp => Job::PassOn,
        }
    }

    /// The arguments that make it serve `setup` with one worker, in the foreground. Writes its configuration file, if it has one.
    pub fn arguments(self, setup: &Setup<'_>) -> Result<Vec<OsString>> {
        ensure!(
            self.job() == Job::Answer || setup.upstream.is_some(),
            "it needs an upstream to pass bytes on to"
        );
        Ok(match self {
            Self::Nginx => {
                let parameters = include_str!("../../rivals/ffdhe2048.pem");
                fs::write(template::dh_parameters(setup), parameters)?;
                let file = configuration(self, setup, "nginx.conf", include_str!("../../rivals/nginx.conf"))?;
                vec!["-p".into(), setup.directory.into(), "-e".into(), "stderr".into(), "-c".into(), file]
            }
            Self::Haproxy | Self::HaproxyTcp => {
                let file =
                    configuration(self, setup, "haproxy.cfg", include_str!("../../rivals/haproxy.cfg"))?;
                vec!["-db".into(), "-f".into(), file]
            }
            Self::Hitch => {
                let file = configuration(self, setup, "hitch.conf", include_str!("../../rivals/hitch.conf"))?;
                vec!["--config".into(), file]
            }
            Self::Envoy => {
                let file = configuration(self, setup, "envoy.yaml", include_str!("../../rivals/envoy.yaml"))?;
                let mut arguments: Vec<OsString> = vec!["-c".into(), file];
                let flags = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"];
                arguments.extend(flags.map(OsString::from));
                arguments
            }
            Self::Quadrille => quadrille::arguments(setup, "http", &[]),
            Self::QuadrilleTcp => quadrille::arguments(setup, "tcp", &[]),
            Self::Keyless => quadrille::arguments(setup, "http", &keyless::gateway_arguments(setup)?),
        })
    }

    /// The second process that it needs beside `program`. Writes the files that either of them reads.
    pub fn beside(self, setup: &Setup<'_>, program: &Path) -> Result<Option<Beside>> {
        match (self, setup.provider) {
            (Self::Keyless, _) => {
                let arguments = keyless::key_server_arguments(setup)?;
                Ok(Some(Beside { program: program.into(), arguments, counts: false }))
            }
            (Self::Nginx, Some(provider)) => provider.key_server(setup).map(Some),
            _ => Ok(None),
        }
    }

    /// Environment variables that belong to its configuration. Writes the files they name.
    pub fn environment(self, setup: &Setup<'_>) -> Result<Vec<(&'static str, OsString)>> {
        let of_contexts = match self {
            Self::Haproxy | Self::HaproxyTcp | Self::Hitch if setup.resumption == Resumption::Off => {
                include_str!("../../rivals/openssl.cnf")
            }
            _ => "",
        };
        let of_providers = setup.provider.map_or("", |_| include_str!("../../rivals/providers.cnf"));
        if of_contexts.is_empty() && of_providers.is_empty() {
            return Ok(Vec::new());
        }
        let text = ["openssl_conf = defaults\n\n", of_contexts, of_providers].concat();
        Ok(vec![("OPENSSL_CONF", configuration(self, setup, "openssl.cnf", &text)?)])
    }

    /// Its version and that of its TLS library, as the program itself says.
    pub fn version(self, program: &Path) -> Result<String> {
        version::version(self, program)
    }

    /// Where the program is found when nobody says otherwise; Envoy is fetched by `bench/compare.sh`.
    pub fn default_program(self) -> PathBuf {
        match self {
            Self::Nginx => "/usr/sbin/nginx".into(),
            Self::Haproxy | Self::HaproxyTcp => "/usr/sbin/haproxy".into(),
            Self::Hitch => "/usr/sbin/hitch".into(),
            Self::Envoy => "envoy".into(),
            Self::Quadrille | Self::QuadrilleTcp | Self::Keyless => "bin/quadrille".into(),
        }
    }
}
