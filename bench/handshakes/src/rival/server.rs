//! The servers.

use std::fmt;

use clap::ValueEnum;

use super::setup::{Behind, Protocol};

/// A server that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rival {
    /// nginx.
    Nginx,
    /// HAProxy.
    Haproxy,
    /// HAProxy of a later release with AWS-LC, built by `bench/haproxy-awslc.sh`.
    #[value(name = "haproxy-awslc")]
    HaproxyAwsLc,
    /// Envoy.
    Envoy,
    /// A small server on rustls with AWS-LC (`bench/rustls`).
    Rustls,
    /// This project's gateway.
    Quadrille,
    /// This project's gateway without the key, which a key server on the client's core holds: not counted.
    Keyless,
    /// hitch, which terminates TLS and forwards bytes.
    Hitch,
    /// HAProxy with the same job: `mode tcp`.
    HaproxyTcp,
    /// This project's gateway with the same job: `--mode tcp`.
    QuadrilleTcp,
}

/// Job of a server; only servers with the same job are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Parses HTTP, and responds directly where possible.
    Answer,
    /// Terminates TLS and forwards bytes to an upstream.
    PassOn,
}

impl Job {
    /// All jobs, in the order of the report.
    pub const ALL: [Self; 2] = [Self::Answer, Self::PassOn];

    /// Returns the servers that ratios are relative to.
    pub fn baselines(self) -> &'static [Rival] {
        match self {
            Self::Answer => &[Rival::Nginx, Rival::Envoy, Rival::HaproxyAwsLc],
            Self::PassOn => &[Rival::Hitch, Rival::HaproxyTcp],
        }
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "HTTP, served by the server itself",
            Self::PassOn => "TLS terminated, bytes forwarded to one plain upstream",
        })
    }
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::HaproxyAwsLc => "haproxy-awslc",
            Self::Envoy => "envoy",
            Self::Rustls => "rustls",
            Self::Quadrille => "quadrille",
            Self::Keyless => "keyless",
            Self::Hitch => "hitch",
            Self::HaproxyTcp => "haproxy-tcp",
            Self::QuadrilleTcp => "quadrille-tcp",
        })
    }
}

impl Rival {
    /// Returns whether it supports HTTP/3, in the build used here.
    pub fn has_http3(self) -> bool {
        matches!(self, Self::Envoy | Self::Quadrille)
    }

    /// Returns whether it is configured here to forward requests like this.
    pub fn forwards(self, behind: &Behind) -> bool {
        match (behind.origin, behind.filters) {
            (Protocol::Http1, None) => true,
            (_, Some(_)) => matches!(self, Self::Envoy | Self::Quadrille),
            (Protocol::Http2, None) => {
                matches!(self, Self::Haproxy | Self::HaproxyAwsLc | Self::Envoy | Self::Quadrille)
            }
        }
    }

    /// Returns its job.
    pub fn job(self) -> Job {
        match self {
            Self::Nginx
            | Self::Haproxy
            | Self::HaproxyAwsLc
            | Self::Envoy
            | Self::Rustls
            | Self::Quadrille
            | Self::Keyless => Job::Answer,
            Self::Hitch | Self::HaproxyTcp | Self::QuadrilleTcp => Job::PassOn,
        }
    }
}
