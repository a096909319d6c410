//! Parameters of a server, and its requirements.

use std::{
    ffi::OsString,
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use serde::Serialize;

use crate::{certificate::CertificateFiles, scenario::Resumption};
use quadrille_profile::load::TlsVersion;

/// Parameters of a server.
#[derive(Debug)]
pub struct Setup<'a> {
    /// Address to listen on.
    pub address: SocketAddr,
    /// Address of a second process, for servers that need one; or of the gateway's admin listener, with HTTP/3.
    pub beside: SocketAddr,
    /// The only TLS version it accepts.
    pub version: TlsVersion,
    /// Key exchange groups to accept, colon-separated; for servers with a setting for them.
    pub groups: String,
    /// Key and certificate.
    pub certificate: &'a CertificateFiles,
    /// Connections that it must be able to hold.
    pub connections: usize,
    /// Directory for its files.
    pub directory: &'a Path,
    /// Whether it resumes sessions.
    pub resumption: Resumption,
    /// The plain HTTP upstream; without one the server itself responds with `ok`.
    pub upstream: Option<SocketAddr>,
    /// Forwarding of requests to the upstream.
    pub behind: Behind,
    /// Number of worker processes, for servers that have workers.
    pub workers: usize,
    /// Whether it serves HTTP/3 too; for servers that support it.
    pub http3: bool,
    /// Provider that its OpenSSL loads, for servers on OpenSSL.
    pub provider: Option<&'a Provider>,
}

/// Forwarding of requests; by default over HTTP/1.1, without filters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Behind {
    /// Protocol of the upstream.
    pub origin: Protocol,
    /// External authorization, retries, a mirror and compression.
    pub filters: Option<Filters>,
}

/// Protocol of an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2 with prior knowledge, in plain text.
    Http2,
}

/// Servers that the filters need, over HTTP/1.1.
#[derive(Clone, Copy, Debug)]
pub struct Filters {
    /// Authorization server.
    pub authorization: SocketAddr,
    /// Server that receives a copy of each request.
    pub mirror: SocketAddr,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        })
    }
}

/// A second process that a server needs.
#[derive(Debug)]
pub struct Beside {
    /// Path of the program.
    pub program: PathBuf,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
    /// Whether its work counts as the server's; it then runs on the server's core.
    pub counts: bool,
}

/// The provider loaded into OpenSSL, and the program of the key server.
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
    /// Returns nginx's module, if nginx is to load it: a single worker does not share a key server.
    pub(super) fn nginx_module(&self) -> Option<&Path> {
        self.provider?.nginx_module.as_deref().filter(|_| self.workers == 1)
    }
}
