//! The servers: their configuration for a scenario, and their versions.
//!
//! Each server has one worker, the same key, no log, and otherwise its own defaults. The configuration files are in
//! `bench/handshakes/rivals`.

mod envoy;
mod keyless;
mod provider;
mod quadrille;
mod server;
mod setup;
pub(crate) mod template;
mod version;

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};

use self::template::configuration;
pub use self::{
    server::{Job, Rival},
    setup::{Behind, Beside, Filters, Protocol, Provider, Setup},
};
use crate::scenario::Resumption;
use quadrille_profile::load::TlsVersion;

impl Rival {
    /// Returns the arguments to serve `setup` with one worker, in the foreground. Writes the configuration file, if
    /// there is one.
    pub fn arguments(self, setup: &Setup<'_>) -> Result<Vec<OsString>> {
        ensure!(
            self.job() == Job::Answer || setup.upstream.is_some(),
            "it needs an upstream to forward bytes to"
        );
        ensure!(self.forwards(&setup.behind), "it is not configured to forward like this");
        Ok(match self {
            Self::Nginx => {
                let parameters = include_str!("../../rivals/ffdhe2048.pem");
                fs::write(template::dh_parameters(setup), parameters)?;
                let file = configuration(self, setup, "nginx.conf", include_str!("../../rivals/nginx.conf"))?;
                vec!["-p".into(), setup.directory.into(), "-e".into(), "stderr".into(), "-c".into(), file]
            }
            Self::Haproxy | Self::HaproxyAwsLc | Self::HaproxyTcp => {
                let file =
                    configuration(self, setup, "haproxy.cfg", include_str!("../../rivals/haproxy.cfg"))?;
                vec!["-db".into(), "-f".into(), file]
            }
            Self::Hitch => {
                let file = configuration(self, setup, "hitch.conf", include_str!("../../rivals/hitch.conf"))?;
                vec!["--config".into(), file]
            }
            Self::Envoy => envoy_arguments(self, setup)?,
            Self::Rustls => rustls_arguments(setup)?,
            // This project's gateway runs with Envoy's configuration file and arguments.
            Self::Quadrille if setup.behind.filters.is_some() => envoy_arguments(self, setup)?,
            Self::Quadrille if setup.behind.origin == Protocol::Http2 => {
                let template = include_str!("../../rivals/quadrille.yaml");
                let file = configuration(self, setup, "quadrille.yaml", template)?;
                vec!["serve".into(), "--config".into(), file]
            }
            Self::Quadrille => quadrille::arguments(setup, "http", &[]),
            Self::QuadrilleTcp => quadrille::arguments(setup, "tcp", &[]),
            Self::Keyless => quadrille::arguments(setup, "http", &keyless::gateway_arguments(setup)?),
        })
    }

    /// Returns the second process needed besides `program`. Writes the files that both read.
    pub fn beside(self, setup: &Setup<'_>, program: &Path) -> Result<Option<Beside>> {
        match (self, setup.provider) {
            (Self::Keyless, _) => {
                let arguments = keyless::key_server_arguments(setup)?;
                Ok(Some(Beside { program: program.into(), arguments, counts: false }))
            }
            (Self::Nginx, Some(provider)) if setup.nginx_module().is_none() => {
                provider::key_server(provider, setup).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns the environment variables of its configuration. Writes the files they name.
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

    /// Returns the server's version and that of its TLS library, as the program reports them.
    pub fn version(self, program: &Path) -> Result<String> {
        version::version(self, program)
    }

    /// Returns the default path of the program; Envoy, HAProxy with AWS-LC and the server on rustls are fetched or built
    /// by `bench/compare.sh`.
    pub fn default_program(self) -> PathBuf {
        match self {
            Self::Nginx => "/usr/sbin/nginx".into(),
            Self::Haproxy | Self::HaproxyTcp => "/usr/sbin/haproxy".into(),
            Self::Hitch => "/usr/sbin/hitch".into(),
            Self::HaproxyAwsLc => "haproxy-awslc".into(),
            Self::Envoy => "envoy".into(),
            Self::Rustls => "quadrille-bench-rustls".into(),
            Self::Quadrille | Self::QuadrilleTcp | Self::Keyless => "bin/quadrille".into(),
        }
    }
}

/// Returns the arguments of the server on rustls, which only responds, and never resumes.
fn rustls_arguments(setup: &Setup<'_>) -> Result<Vec<OsString>> {
    let is_full = setup.resumption == Resumption::Off && setup.version == TlsVersion::V1_3;
    ensure!(
        is_full && setup.upstream.is_none(),
        "it serves full TLS 1.3 handshakes without an upstream only"
    );
    let (chain, key) = (setup.certificate.chain.clone(), setup.certificate.key.clone());
    Ok(vec!["serve".into(), setup.address.to_string().into(), chain.into(), key.into()])
}

/// Returns Envoy's arguments for one worker. Writes its configuration file.
fn envoy_arguments(rival: Rival, setup: &Setup<'_>) -> Result<Vec<OsString>> {
    let file = configuration(rival, setup, "envoy.yaml", include_str!("../../rivals/envoy.yaml"))?;
    let flags = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"];
    Ok(["-c".into(), file].into_iter().chain(flags.map(OsString::from)).collect())
}
