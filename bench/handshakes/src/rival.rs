//! The servers: how each is configured for a scenario, and which version it is.
//!
//! Every one gets one worker, the same key, a fixed answer, no resumption, no log, and otherwise its own defaults. The
//! configuration files are in `bench/handshakes/rivals`.

use std::{
    ffi::OsString,
    fmt, fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::{certificate::CertificateFiles, keyless};
use quadrille_profile::load::TlsVersion;

/// Files a server may need beyond its connections.
const SPARE_FILES: usize = 1_000;

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
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Envoy => "envoy",
            Self::Quadrille => "quadrille",
            Self::Keyless => "keyless",
        })
    }
}

/// What a server is set up for.
#[derive(Debug)]
pub struct Setup<'a> {
    /// Where it listens.
    pub address: SocketAddr,
    /// The only TLS version it accepts.
    pub version: TlsVersion,
    /// Its key and certificate.
    pub certificate: &'a CertificateFiles,
    /// Connections it must be able to hold.
    pub connections: usize,
    /// A place for its files.
    pub directory: &'a Path,
}

impl Rival {
    /// The arguments that make it serve `setup` with one worker, in the foreground. Writes its configuration file, if it has one.
    pub fn arguments(self, setup: &Setup<'_>) -> Result<Vec<OsString>> {
        Ok(match self {
            Self::Nginx => {
                let file = configuration(setup, "nginx.conf", include_str!("../rivals/nginx.conf"))?;
                vec!["-p".into(), setup.directory.into(), "-e".into(), "stderr".into(), "-c".into(), file]
            }
            Self::Haproxy => {
                let file = configuration(setup, "haproxy.cfg", include_str!("../rivals/haproxy.cfg"))?;
                vec!["-db".into(), "-f".into(), file]
            }
            Self::Envoy => {
                let file = configuration(setup, "envoy.yaml", include_str!("../rivals/envoy.yaml"))?;
                let mut arguments: Vec<OsString> = vec!["-c".into(), file];
                let flags = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"];
                arguments.extend(flags.map(OsString::from));
                arguments
            }
            Self::Quadrille => quadrille_arguments(setup, &[]),
            Self::Keyless => quadrille_arguments(setup, &keyless::gateway_arguments(setup)?),
        })
    }

    /// Arguments of a second process of the same program that it needs, and that is not counted.
    pub fn companion(self, setup: &Setup<'_>) -> Result<Option<Vec<OsString>>> {
        match self {
            Self::Keyless => keyless::key_server_arguments(setup).map(Some),
            _ => Ok(None),
        }
    }

    /// Environment variables that belong to its configuration. Writes the files they name.
    pub fn environment(self, setup: &Setup<'_>) -> Result<Vec<(&'static str, OsString)>> {
        Ok(match self {
            Self::Haproxy => {
                let text = include_str!("../rivals/openssl.cnf");
                vec![("OPENSSL_CONF", configuration(setup, "openssl.cnf", text)?)]
            }
            Self::Nginx | Self::Envoy | Self::Quadrille | Self::Keyless => Vec::new(),
        })
    }

    /// Its version and that of its TLS library, as the program itself says.
    pub fn version(self, program: &Path) -> Result<String> {
        let argument = match self {
            Self::Nginx => "-V",
            Self::Haproxy => "-vv",
            Self::Envoy | Self::Quadrille | Self::Keyless => "--version",
        };
        let output = Command::new(program)
            .arg(argument)
            .output()
            .with_context(|| format!("{} does not run", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        match parse_version(self, &text) {
            Some(version) => Ok(version),
            None => bail!("{} {argument} names no version: {}", program.display(), text.trim()),
        }
    }

    /// Where the program is found when nobody says otherwise; Envoy is fetched by `bench/compare.sh`.
    pub fn default_program(self) -> PathBuf {
        match self {
            Self::Nginx => "/usr/sbin/nginx".into(),
            Self::Haproxy => "/usr/sbin/haproxy".into(),
            Self::Envoy => "envoy".into(),
            Self::Quadrille | Self::Keyless => "bin/quadrille".into(),
        }
    }
}

fn quadrille_arguments(setup: &Setup<'_>, key: &[OsString]) -> Vec<OsString> {
    let version = setup.version.number();
    let mut arguments: Vec<OsString> =
        vec!["serve".into(), "--listen".into(), setup.address.to_string().into()];
    arguments.extend(["--cert".into(), setup.certificate.chain.clone().into()]);
    match key {
        [] => arguments.extend(["--key".into(), setup.certificate.key.clone().into()]),
        elsewhere => arguments.extend_from_slice(elsewhere),
    }
    let flags = ["--tls-min", version, "--tls-max", version, "--respond", "ok", "--threads", "1"];
    arguments.extend(flags.map(OsString::from));
    let off = ["--session-tickets", "off", "--session-cache", "off", "--admin", "off"];
    arguments.extend(off.map(OsString::from));
    arguments
}

/// Writes a configuration file and says where it is.
fn configuration(setup: &Setup<'_>, name: &str, template: &str) -> Result<OsString> {
    let path = setup.directory.join(name);
    fs::write(&path, fill(template, setup)).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path.into())
}

/// Replaces every `@name@` of a template.
fn fill(template: &str, setup: &Setup<'_>) -> String {
    let values = [
        ("@port@", setup.address.port().to_string()),
        ("@version@", setup.version.number().to_owned()),
        ("@version_underscored@", setup.version.number().replace('.', "_")),
        ("@chain@", setup.certificate.chain.display().to_string()),
        ("@key@", setup.certificate.key.display().to_string()),
        ("@combined@", setup.certificate.combined.display().to_string()),
        ("@connections@", (setup.connections + SPARE_FILES).to_string()),
        ("@files@", (setup.connections + 2 * SPARE_FILES).to_string()),
        ("@directory@", setup.directory.display().to_string()),
    ];
    values.iter().fold(template.to_owned(), |text, (name, value)| text.replace(name, value))
}

fn parse_version(rival: Rival, text: &str) -> Option<String> {
    let after = |mark: &str| text.split_once(mark)?.1.split_whitespace().next();
    let with_openssl = |version: &str, mark: &str| match after(mark) {
        Some(library) => format!("{version}, OpenSSL {library}"),
        None => version.to_owned(),
    };
    Some(match rival {
        Rival::Nginx => with_openssl(after("nginx/")?, "built with OpenSSL "),
        Rival::Haproxy => with_openssl(after("HAProxy version ")?, "Running on OpenSSL version : OpenSSL "),
        Rival::Envoy => {
            // "... version: COMMIT/VERSION/STATE/TYPE/LIBRARY"
            let (_, build) = after("version: ")?.split_once('/')?;
            let (version, rest) = build.split_once('/')?;
            format!("{version}, {}", rest.rsplit('/').next()?)
        }
        Rival::Quadrille | Rival::Keyless => after("quadrille ")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_the_programs_print_them() {
        let cases = [
            (
                Rival::Nginx,
                "nginx version: nginx/1.22.1\nbuilt with OpenSSL 3.0.15 3 Sep 2024\nTLS SNI support enabled\n",
                "1.22.1, OpenSSL 3.0.15",
            ),
            (
                Rival::Haproxy,
                "HAProxy version 2.6.12-1+deb12u1 2023/12/16 - https://haproxy.org/\n\
                 Running on OpenSSL version : OpenSSL 3.0.15 3 Sep 2024\n",
                "2.6.12-1+deb12u1, OpenSSL 3.0.15",
            ),
            (Rival::Envoy, "\nenvoy  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL\n\n", "1.40.0, BoringSSL"),
            (Rival::Quadrille, "quadrille 0.1.0\n", "0.1.0"),
        ];
        for (rival, printed, version) in cases {
            assert_eq!(parse_version(rival, printed).as_deref(), Some(version));
            assert_eq!(parse_version(rival, "command not understood"), None);
        }
    }

    #[test]
    fn no_placeholder_is_left_in_a_configuration() {
        let certificate = CertificateFiles {
            chain: "/d/chain.pem".into(),
            key: "/d/key.pem".into(),
            combined: "/d/combined.pem".into(),
        };
        let setup = Setup {
            address: SocketAddr::from(([127, 0, 0, 1], 8443)),
            version: TlsVersion::V1_2,
            certificate: &certificate,
            connections: 32,
            directory: Path::new("/d"),
        };
        for template in [
            include_str!("../rivals/nginx.conf"),
            include_str!("../rivals/haproxy.cfg"),
            include_str!("../rivals/envoy.yaml"),
        ] {
            let filled = fill(template, &setup).replace("\"@type\"", "");
            assert!(!filled.contains('@'), "{filled}");
            assert!(filled.contains("8443"));
        }
    }
}
