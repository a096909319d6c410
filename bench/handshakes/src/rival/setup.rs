//! What a server is given, and what it needs.

use std::{
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use crate::{certificate::CertificateFiles, scenario::Resumption};
use quadrille_profile::load::TlsVersion;

/// What a server is set up for.
#[derive(Debug)]
pub struct Setup<'a> {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where a second process listens, for those that need one; or where the gateway says what it does, if it serves HTTP/3.
    pub beside: SocketAddr,
    /// The only TLS version it accepts.
    pub version: TlsVersion,
    /// The groups of key exchange that it accepts, colon-separated; of servers that have a word for it.
    pub groups: String,
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
    /// Whether it serves HTTP/3 too; of servers that speak it.
    pub http3: bool,
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

/// What is loaded into OpenSSL, and the program that has the key server.
#[derive(Clone, Debug)]
pub struct Provider {
    /// The module.
    pub module: PathBuf,
    /// nginx's module for asynchronous handshakes, if there is one.
    pub nginx_module: Option<PathBuf>,
    /// This project's program.
    pub quadrille: PathBuf,
}

impl Setup<'_> {
    /// nginx's module, where nginx is to have it: a single worker shares no key server with others.
    pub(super) fn nginx_module(&self) -> Option<&Path> {
        self.provider?.nginx_module.as_deref().filter(|_| self.workers == 1)
    }
}
